//! A plan of an object store as a plan of any layer.

use units::clean;

use layer::CacheBefore;
use vos::Durability;
use workload::plan::{HostTargets, LayerPlan, Pattern, Terms};

use super::{ObjectPlan, Scope};

/// Terms of object stores.
const TERMS: Terms =
    Terms { size: "value size", size_column: "value", size_points: "value sizes", ..Terms::COMMON };

impl LayerPlan for ObjectPlan {
    workload::plan_parts!("object");

    fn operation_name(&self) -> &'static str {
        match self.mix.as_slice() {
            _ if !self.sequence.is_empty() => "sequence",
            [] => "",
            [only] => only.operation.name(),
            _ => "mix",
        }
    }

    fn operation_size(&self) -> String {
        self.dataset.value_size.clone()
    }

    fn operation_bytes_max(&self) -> u64 {
        self.dataset.value_size_bytes_max
    }

    fn operation_words(&self) -> String {
        let what = if self.sequence.is_empty() {
            match self.mix.as_slice() {
                [only] => only.operation.name().to_owned(),
                several => {
                    let shares =
                        several.iter().map(|share| format!("{}% {}", share.percent, share.operation.name()));
                    shares.collect::<Vec<_>>().join(", ")
                }
            }
        } else {
            self.sequence.iter().map(|operation| operation.name()).collect::<Vec<_>>().join(" then ")
        };
        let size = if self.any(|operation| operation.stores() || operation.loads()) {
            format!("{} ", clean(&self.dataset.value_size))
        } else {
            String::new()
        };
        let order = match &self.pattern {
            Pattern::Sequential => String::new(),
            pattern => format!(", {pattern}"),
        };
        format!("{size}{what}{order}")
    }

    fn manner(&self) -> Vec<String> {
        let flags = [
            (self.object_scope == Scope::Private, "separate objects per worker"),
            (self.containers == Scope::Private, "a container a worker"),
            (self.options.zero_copy, "zero copy"),
            (self.short_read_bytes.is_some(), "short reads"),
            (!self.keeps_handles, "handles opened for each operation"),
            (self.options.cache == CacheBefore::Drop, "cache dropped"),
            (self.verify, "verified"),
            (self.is_fill, "to fill"),
            (self.load.workers() > self.load.threads, "objects distributed over all hosts"),
        ];
        let mut words = vec![clean(&self.engine).into_owned(), format!("class {}", self.class)];
        words.extend(self.snapshot.map(|epoch| format!("at snapshot {epoch}")));
        words.extend(flags.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_owned()));
        let is_own = self.load.place.is_some_and(|place| place.targets == HostTargets::Own);
        words.extend(is_own.then(|| "a separate store per host".to_owned()));
        words.extend(
            (self.rank_shift > 0)
                .then(|| format!("records of the worker {} positions later", self.rank_shift)),
        );
        words.extend(self.memory.words().filter(|_| self.moves_values()));
        match self.options.durability {
            Durability::Sync => {}
            Durability::Batch => words.push("durability batch".to_owned()),
            Durability::None => words.push("durability none".to_owned()),
        }
        words
    }

    fn target_names(&self) -> Vec<&str> {
        vec![&self.target]
    }

    fn terms(&self) -> &'static Terms {
        &TERMS
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("pattern", self.pattern.to_string()),
            ("object_class", self.class.to_string()),
            ("objects", self.dataset.objects.to_string()),
            ("dkeys", self.dataset.dkeys.to_string()),
            ("akeys", self.dataset.akeys.to_string()),
            ("records", self.dataset.records.to_string()),
            ("durability", format!("{:?}", self.options.durability).to_lowercase()),
        ]
    }

    /// A store in this process is memory and arithmetic.
    fn is_busy_on_purpose(&self) -> bool {
        matches!(self.engine.as_str(), "vos" | "null")
    }

    fn is_fill(&self) -> bool {
        self.is_fill
    }
}
