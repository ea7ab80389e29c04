//! Agent of an engine on its control channel: it says what it is, and drives loads.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use driver::{Error, Secret};
use fleet::{Agent, Description, PlanMessage, Prepared, Role, SessionHost};
use host::Environment;
use layer::Control;
use layer::masters::{self, MasterSettings};
use layer::{RunContext, SCHEMA_VERSION};
use rpc::engine::EngineRequest;

/// An engine as its callers see it.
pub(super) struct EngineAgent {
    description: Description,
    uri: OnceLock<String>,
    masters: MasterSettings,
    host: Arc<dyn SessionHost>,
    end: Sender<String>,
}

impl EngineAgent {
    /// The agent of an engine that is about to start.
    pub(super) fn new(
        request: &EngineRequest,
        secret: Option<Secret>,
        (context, host): (RunContext, Arc<dyn SessionHost>),
        end: Sender<String>,
    ) -> Self {
        let environment = Environment::gather(&[]);
        let description = Description {
            role: Role::Engine,
            strata_version: env!("CARGO_PKG_VERSION").to_owned(),
            schema_version: SCHEMA_VERSION,
            host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            rank: Some(request.rank),
            group: Some(request.group.clone()),
            data_uri: None,
            tags: request.tags.tags(),
            targets: request.tags.targets(),
            environment: serde_json::to_value(environment).unwrap_or_default(),
        };
        let masters = MasterSettings {
            context,
            control: Control { secret, tls: false, domain: request.domain.clone() },
            cores: request.cores.clone(),
        };
        Self { description, uri: OnceLock::new(), masters, host, end }
    }

    /// The endpoints serve.
    pub(super) fn serves_at(&self, uri: &str) {
        // Told once, by the one that started it.
        let _ = self.uri.set(uri.to_owned());
    }
}

impl Agent for EngineAgent {
    fn describe(&self) -> Description {
        Description { data_uri: self.uri.get().cloned(), ..self.description.clone() }
    }

    fn prepare(&self, plan: PlanMessage, _stop: &Arc<AtomicBool>) -> Result<Box<dyn Prepared>, Error> {
        masters::prepare(&plan, &self.masters)
    }

    fn host(&self) -> Option<Arc<dyn SessionHost>> {
        Some(Arc::clone(&self.host))
    }

    fn quit(&self) -> Result<(), Error> {
        // When nobody waits any more the process is ending already.
        let _ = self.end.send("stopped over the control channel".to_owned());
        Ok(())
    }
}
