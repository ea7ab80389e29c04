//! Passing from door to door: what the last turn made goes, the mount comes and goes.

use std::path::PathBuf;
use std::sync::Arc;

use driver::{Error, ErrorKind};

use super::AccessPath;
use super::mounted::Mount;
use crate::drivers::Functions;
use crate::plan::FsPlan;

/// The door that a run stands at.
#[derive(Default)]
pub(crate) struct AccessPaths {
    mount: Option<Mount>,
    functions: Option<Arc<Functions>>,
    now: Option<(AccessPath, String, u32)>,
    /// Secret of the engines, for the process of the mount.
    token_file: Option<PathBuf>,
}

impl AccessPaths {
    /// Notes the file with the secret of the engines.
    pub(crate) fn set_token_file(&mut self, file: Option<PathBuf>) {
        self.token_file = file;
    }

    /// Whether the plan is of another turn than the last one that was passed.
    pub(crate) fn is_new(&self, plan: &FsPlan) -> bool {
        self.now != turn_of(plan)
    }

    /// Goes to the door of a plan. Whoever has the store open in this process has closed it before, where it is of one process at a time.
    ///
    /// # Errors
    /// When it cannot be mounted or unmounted, and an interception library that takes no calls.
    pub(crate) fn pass(&mut self, plan: &FsPlan) -> Result<(), Error> {
        let turn = turn_of(plan);
        if let (Some((AccessPath::Library, ..)) | None, true) = (&turn, self.is_exclusive()) {
            self.unmount()?;
        }
        if let Some((AccessPath::Mount | AccessPath::Intercept, url, _)) = &turn {
            if self.mount.as_ref().is_some_and(|mount| mount.url != *url) {
                self.unmount()?;
            }
            if self.mount.is_none() {
                self.mount = Some(Mount::begin(url, self.token_file.as_deref())?);
            }
        }
        if let (Some((AccessPath::Intercept, ..)), Some(mount), None) = (&turn, &self.mount, &self.functions)
        {
            let functions = Functions::of_intercept(&super::library()?)?;
            if !functions.takes(mount.directory()) {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "intercept",
                    "the interception library intercepts no calls on the mount",
                )
                .with("directory", mount.directory().display())
                .remedy(
                    "set STRATA_INTERCEPT_REPORT=1 to see the reason; STRATA_INTERCEPT_DISABLE must not be set",
                ));
            }
            self.functions = Some(functions);
        }
        self.now = turn;
        Ok(())
    }

    /// Functions that the driver `libc` calls in a phase of this plan.
    pub(crate) fn functions(&self, plan: &FsPlan) -> Option<Arc<Functions>> {
        self.functions.clone().filter(|_| plan.door == Some(AccessPath::Intercept))
    }

    /// Whether the store that is mounted is of one process at a time.
    fn is_exclusive(&self) -> bool {
        self.mount.as_ref().is_some_and(|mount| mount.url.starts_with("dfs+vos:"))
    }

    /// Unmounts, where something is mounted.
    ///
    /// # Errors
    /// Those of the process of the mount.
    pub(crate) fn unmount(&mut self) -> Result<(), Error> {
        self.functions = None;
        self.now = None;
        self.mount.take().map_or(Ok(()), Mount::end)
    }
}

fn turn_of(plan: &FsPlan) -> Option<(AccessPath, String, u32)> {
    Some((plan.door?, plan.door_target.clone()?, plan.door_turn?))
}
