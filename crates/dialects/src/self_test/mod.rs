//! The dialect of CaRT's self_test: RPCs to the endpoints of engines.

mod grammar;
mod render;
mod table;
#[cfg(test)]
mod tests;

use driver::Error;
use units::ParseError;
use workload::spec::{OnError, Spec, Warmup};

use crate::options::{said, said_if, say, switch};
use crate::words::Words;
use crate::{Piece, Progress, Request, Run, World};
use grammar::Payload;
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
            "Usage: {TOOL} [OPTIONS]\n\nSends RPCs to the endpoints of engines (strata engine). Options:\n{}",
            TABLE.help()
        ))]));
    }
    if let Some(word) = words.paths.first() {
        return TABLE.refuse(
            format!("{} does not belong to an option", crate::words::quoted(word)),
            "quote the message sizes, as in --message-sizes \"(0 0) (b1048578 0)\"",
        );
    }
    let mut warnings = words.warnings.clone();
    let settings = Settings::read(&words, &mut warnings)?;
    let specs = settings.specs().map_err(|error| usage(&error))?;
    let render = Box::new(settings.model(&words));
    Ok(Request::Run(Box::new(Run {
        tasks: None,
        specs,
        render,
        warnings,
        token_file: None,
        secrets: Vec::new(),
        progress: Progress::Auto,
    })))
}

/// A command line.
struct Settings {
    group: String,
    /// Rank and tag of each.
    endpoints: Vec<(u32, u32)>,
    sizes: Vec<(Payload, Payload)>,
    /// RPCs of each master for each size.
    repetitions: u64,
    in_flight: u32,
    align: Option<u64>,
    /// Fields that the phases of all sizes have in common.
    base: Spec,
}

impl Settings {
    fn read(words: &Words, warnings: &mut Vec<String>) -> Result<Self, Error> {
        let number = |long: &str, max: u64| {
            let text = words.value(long);
            text.map(|text| units::parse_u64_in(long, text, 1..=max))
                .transpose()
                .map_err(|error| usage(&error))
        };
        let mut base = Spec::of_layer("network").map_err(|error| usage(&error))?;
        let mut endpoints = all_endpoints(words, "endpoint", &mut base, "endpoint")?;
        if endpoints.is_empty() {
            let tag = if words.has("use-daos-agent-env") { 2 } else { 0 };
            endpoints.push((0, tag));
            say(&mut base, [said("endpoint", format!("0:{tag}"))]).map_err(|error| usage(&error))?;
            if tag == 0 {
                warnings.push("no --endpoint is given: using 0:0, the metadata service".to_owned());
            }
        }
        all_endpoints(words, "master-endpoint", &mut base, "master")?;
        let sizes = words.value("message-sizes").unwrap_or(SIZES);
        say(&mut base, [said("message-sizes", sizes)]).map_err(|error| usage(&error))?;
        let sizes = grammar::sizes(sizes);
        let each = number("repetitions-per-size", u64::from(u32::MAX))?.unwrap_or(REPETITIONS);
        let repetitions = each.saturating_mul(endpoints.len() as u64);
        let asked = number("max-inflight-rpcs", 65_536)?.unwrap_or(IN_FLIGHT);
        if asked > repetitions {
            warnings.push(format!(
                "--max-inflight-rpcs {asked} is more than the RPCs per size: only {repetitions} are in flight"
            ));
        }
        let align = words.value("align").map(|text| units::parse_u64_in("align", text, 0..=255));
        let align = align.transpose().map_err(|error| usage(&error))?;
        if words.value("path") == Some("") {
            return TABLE.refuse("-p/--path is empty", "give the directory of the group's attach info");
        }
        let group = words.value("group-name").unwrap_or(GROUP);
        let in_flight = asked.min(repetitions) as u32;
        let own = [
            said("group", group),
            said_if("path", words.value("path")),
            said("inflight", in_flight),
            said_if("order", words.has("randomize-endpoints").then_some("random")),
            said_if("buffer-align", align),
            switch("no-sync", words.has("no-sync")),
        ];
        say(&mut base, own).map_err(|error| usage(&error))?;
        Ok(Self { group: group.to_owned(), endpoints, sizes, repetitions, in_flight, align, base })
    }

    /// One phase a size.
    fn specs(&self) -> Result<Vec<Spec>, ParseError> {
        let spec = |sizes: &(Payload, Payload)| {
            let typed = grammar::typed(*sizes);
            let mut spec = self.base.clone();
            say(&mut spec, [said("message-sizes", &typed)])?;
            Ok(Spec {
                name: Some(typed),
                count: Some(self.repetitions),
                warmup: Some(Warmup::None),
                on_error: Some(OnError::Continue),
                ..spec
            })
        };
        self.sizes.iter().map(spec).collect()
    }

    fn model(&self, words: &Words) -> Model {
        let added = |long: &str| {
            let texts = words.values(long).map(Added::of).collect::<Vec<_>>();
            if long == "endpoint" && texts.is_empty() {
                self.endpoints.iter().map(|(rank, tag)| Added::of(&format!("{rank}:{tag}"))).collect()
            } else {
                texts
            }
        };
        Model {
            group: self.group.clone(),
            added: added("endpoint"),
            added_masters: added("master-endpoint"),
            endpoints: self.endpoints.clone(),
            has_masters: words.has("master-endpoint"),
            sizes: self.sizes.clone(),
            align: self.align,
            repetitions: self.repetitions,
            in_flight: self.in_flight,
            bits: words.has("Mbits"),
            json: words.has("json"),
        }
    }
}

/// Endpoints that an option which may be repeated lists, in order; the option of the load with this `name` gets them.
fn all_endpoints(
    words: &Words,
    long: &str,
    base: &mut Spec,
    name: &'static str,
) -> Result<Vec<(u32, u32)>, Error> {
    let mut all = Vec::new();
    for text in words.values(long) {
        say(base, [said(name, text)]).map_err(|error| usage(&error).with("option", format!("--{long}")))?;
        all.extend(grammar::endpoints(text));
    }
    Ok(all)
}
