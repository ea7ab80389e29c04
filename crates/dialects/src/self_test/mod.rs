//! The dialect of CaRT's self_test: RPCs to the endpoints of engines.

mod render;
mod table;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use driver::Error;
use units::ParseError;
use workload::network::{EndpointOrder, NetworkSpec, Payload, RankTag, parse_endpoints, parse_message_sizes};
use workload::spec::{Layer, OnError, Spec, Warmup};

use crate::words::Words;
use crate::{Piece, Progress, Request, Run, World};
use render::{Added, Model};
use table::{TABLE, TOOL};

/// Message sizes when none are given.
const SIZES: &str = "0 0,0 b1048578,b1048578 0";
/// The group when none is given.
const GROUP: &str = "daos_server";
/// RPCs for each size, master and endpoint when no number is given.
const REPETITIONS: u64 = 100_000;
/// RPCs in flight when no number is given.
const IN_FLIGHT: u64 = 16;

fn usage(error: &ParseError) -> Error {
    Error::usage(TOOL, error.to_string())
}

/// Reads the words after the name.
///
/// # Errors
/// Bad usage.
pub fn parse(words: &[String], _world: &dyn World) -> Result<Request, Error> {
    let words = TABLE.split(words)?;
    if words.has("help") {
        return Ok(Request::Show(vec![Piece::stdout(format!(
            "Usage: {TOOL} [OPTIONS]\n\nRPCs to the endpoints of engines (strata engine). Options:\n{}",
            TABLE.help()
        ))]));
    }
    if let Some(word) = words.paths.first() {
        return TABLE.refuse(
            format!("{} belongs to no option", crate::words::quoted(word)),
            "quote the message sizes, as in --message-sizes \"(0 0) (b1048578 0)\"",
        );
    }
    let mut warnings = words.warnings.clone();
    let settings = Settings::read(&words, &mut warnings)?;
    let specs = settings.specs();
    let render = Box::new(settings.model(&words));
    Ok(Request::Run(Box::new(Run { specs, render, warnings, secrets: Vec::new(), progress: Progress::Auto })))
}

/// A command line.
struct Settings {
    group: String,
    endpoints: Vec<RankTag>,
    masters: Vec<RankTag>,
    sizes: Vec<(Payload, Payload)>,
    /// RPCs of each master for each size.
    repetitions: u64,
    in_flight: u32,
    align: Option<u8>,
    random: bool,
    path: Option<PathBuf>,
    no_sync: bool,
}

impl Settings {
    fn read(words: &Words, warnings: &mut Vec<String>) -> Result<Self, Error> {
        let number = |long: &str, max: u64| {
            let text = words.value(long);
            text.map(|text| units::parse_u64_in(long, text, 1..=max))
                .transpose()
                .map_err(|error| usage(&error))
        };
        let mut endpoints = all_endpoints(words, "endpoint")?;
        if endpoints.is_empty() {
            let tag = if words.has("use-daos-agent-env") { 2 } else { 0 };
            endpoints.push(RankTag { rank: 0, tag });
            if tag == 0 {
                warnings.push("no --endpoint: 0:0 is used, the metadata service".to_owned());
            }
        }
        let mut masters = all_endpoints(words, "master-endpoint")?;
        masters.sort_unstable();
        masters.dedup();
        let sizes = words.value("message-sizes").unwrap_or(SIZES);
        let sizes = parse_message_sizes(sizes).map_err(|error| usage(&error))?;
        let each = number("repetitions-per-size", u64::from(u32::MAX))?.unwrap_or(REPETITIONS);
        let repetitions = each.saturating_mul(endpoints.len() as u64);
        let asked = number("max-inflight-rpcs", 65_536)?.unwrap_or(IN_FLIGHT);
        if asked > repetitions {
            warnings.push(format!(
                "--max-inflight-rpcs {asked} is more than the RPCs of a size: {repetitions} are in flight"
            ));
        }
        let align = words.value("align").map(|text| units::parse_u64_in("align", text, 0..=255));
        let align = align.transpose().map_err(|error| usage(&error))?.map(|byte| byte as u8);
        let path = words.value("path").map(|path| units::path_of(path).into_owned());
        if path.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            return TABLE.refuse("-p/--path is empty", "give the directory of the group's attach info");
        }
        Ok(Self {
            group: words.value("group-name").unwrap_or(GROUP).to_owned(),
            endpoints,
            masters,
            sizes,
            repetitions,
            in_flight: asked.min(repetitions) as u32,
            align,
            random: words.has("randomize-endpoints"),
            path,
            no_sync: words.has("no-sync"),
        })
    }

    /// One phase a size.
    fn specs(&self) -> Vec<Spec> {
        let spec = |sizes: &(Payload, Payload)| Spec {
            layer: Layer::NETWORK,
            name: Some(format!("({} {})", sizes.0, sizes.1)),
            count: Some(self.repetitions),
            warmup: Some(Warmup::None),
            on_error: Some(OnError::Continue),
            network: NetworkSpec {
                message_sizes: vec![*sizes],
                group: Some(self.group.clone()),
                path: self.path.clone(),
                endpoints: self.endpoints.clone(),
                masters: self.masters.clone(),
                inflight: Some(self.in_flight),
                order: self.random.then_some(EndpointOrder::Random),
                buffer_align: self.align,
                no_sync: self.no_sync,
                ..NetworkSpec::default()
            },
            ..Spec::default()
        };
        self.sizes.iter().map(spec).collect()
    }

    fn model(&self, words: &Words) -> Model {
        let added = |long: &str| {
            let texts = words.values(long).map(Added::of).collect::<Vec<_>>();
            if long == "endpoint" && texts.is_empty() {
                self.endpoints.iter().map(|own| Added::of(&format!("{}:{}", own.rank, own.tag))).collect()
            } else {
                texts
            }
        };
        Model {
            group: self.group.clone(),
            added: added("endpoint"),
            added_masters: added("master-endpoint"),
            endpoints: self.endpoints.clone(),
            has_masters: !self.masters.is_empty(),
            sizes: self.sizes.clone(),
            align: self.align,
            repetitions: self.repetitions,
            in_flight: self.in_flight,
            bits: words.has("Mbits"),
            json: words.has("json"),
        }
    }
}

/// Endpoints that an option which may be repeated lists, in order.
fn all_endpoints(words: &Words, long: &str) -> Result<Vec<RankTag>, Error> {
    let mut all = Vec::new();
    for text in words.values(long) {
        all.extend(parse_endpoints(text).map_err(|error| usage(&error).with("option", format!("--{long}")))?);
    }
    Ok(all)
}
