//! A plan of any layer: name, layer, load, and a body that its layer alone looks into.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use units::{clean, counted, rate};

use super::{LoadPlan, MasterPlan};
use crate::layers::Layer;
use crate::spec::{Spacing, Spec};
use crate::target::TargetPlan;

/// Terms of a layer in tables, ladders and charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Operations, several of them: `operations`, `RPCs`.
    pub operations: &'static str,
    /// The queue depth: `depth`, `RPCs in flight`.
    pub depth: &'static str,
    /// The same as the head of a column.
    pub depth_column: &'static str,
    /// The same for the points of a chart.
    pub depth_points: &'static str,
    /// The size of an operation: `block size`, `payloads`.
    pub size: &'static str,
    /// The same as the head of a column.
    pub size_column: &'static str,
    /// The same for the points of a chart.
    pub size_points: &'static str,
}

impl Terms {
    /// Those of a layer of which nothing else is known.
    pub const COMMON: Self = Self {
        operations: "operations",
        depth: "operations in flight",
        depth_column: "in flight",
        depth_points: "operations in flight",
        size: "operation size",
        size_column: "size",
        size_points: "operation sizes",
    };
}

/// The sort of load: reads or writes, in order or at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// Reads in order.
    SequentialRead,
    /// Writes in order.
    SequentialWrite,
    /// Reads at random.
    RandomRead,
    /// Writes at random.
    RandomWrite,
}

/// Body of a plan: the operations of one layer and how they are carried out, every default resolved.
pub trait LayerPlan: AnyPlan {
    /// Name of the layer, as job files and records have it.
    fn layer(&self) -> &'static str;

    /// Name of the phase in tables.
    fn name(&self) -> &String;

    /// The same, to change it.
    fn name_mut(&mut self) -> &mut String;

    /// Driver.
    fn engine(&self) -> &String;

    /// How the load is put on.
    fn load(&self) -> &LoadPlan;

    /// The same, to change it.
    fn load_mut(&mut self) -> &mut LoadPlan;

    /// Name of the operation, as users type it.
    fn operation_name(&self) -> &'static str {
        self.layer()
    }

    /// Size of an operation in words: the block size as typed, or the payloads of request and reply.
    fn operation_size(&self) -> String {
        units::ByteSize(self.operation_bytes_max()).to_string()
    }

    /// Largest size of an operation in bytes.
    fn operation_bytes_max(&self) -> u64 {
        0
    }

    /// Operations in words: `4KiB random reads`; `RPCs, 1MiB bulk out, nothing back`; `4KiB put`.
    fn operation_words(&self) -> String;

    /// Driver and options in words, one each.
    fn manner(&self) -> Vec<String> {
        vec![clean(self.engine()).into_owned()]
    }

    /// Targets as one list of names: paths, endpoints, the URL of a store.
    fn target_names(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Targets by names that tell those of one system from those of another: a label of an endpoint is the same in every group.
    fn target_addresses(&self) -> Vec<&str> {
        self.target_names()
    }

    /// Terms of the layer.
    fn terms(&self) -> &'static Terms {
        &Terms::COMMON
    }

    /// Queue depth in words: `16 in flight`, `depth 32`.
    fn depth_words(&self) -> String {
        format!("{} in flight", self.load().depth)
    }

    /// Fields of its own in a table of all phases, by the names of their columns.
    fn fields(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Ranges of files and devices; none of other layers than media.
    fn targets(&self) -> &[TargetPlan] {
        &[]
    }

    /// Other processes that drive the phase (masters); none where this one does.
    fn master_plans(&self) -> &[MasterPlan] {
        &[]
    }

    /// How many other processes drive the phase; 0 where this one does.
    fn masters(&self) -> usize {
        self.master_plans().len()
    }

    /// Whether a rank serves operations of the phase.
    fn is_served_by(&self, _rank: u32) -> bool {
        false
    }

    /// Bytes of an operation that leave and that come, where they are told apart.
    fn direction_bytes(&self) -> Option<(u64, u64)> {
        None
    }

    /// Label of a part of the target that is told apart, by its number: an endpoint.
    fn part_label(&self, _part: usize) -> Option<&str> {
        None
    }

    /// Groups of its workers that `--profile` tells apart, by name.
    fn profile_groups(&self) -> Vec<&str> {
        vec!["workers"]
    }

    /// The group of a worker of this process, by its place in [`LayerPlan::profile_groups`].
    fn profile_group(&self, _worker: u32) -> Option<usize> {
        Some(0)
    }

    /// Whether a group works behind the others: what it waits for holds nobody back.
    fn works_behind(&self, _group: &str) -> bool {
        false
    }

    /// Whether it keeps processors busy by its nature: memory, the tool itself, workers that ask again and never sleep.
    fn is_busy_on_purpose(&self) -> bool {
        false
    }

    /// Whether it only stores what other phases need.
    fn is_fill(&self) -> bool {
        false
    }

    /// Whether the hosts of a run meet while they get ready for it; else the first does so before the others.
    fn meets_to_prepare(&self) -> bool {
        false
    }

    /// Whether workers stop now and then, or at the end, to make their writes durable: nothing completes meanwhile.
    fn stops_to_sync(&self) -> bool {
        false
    }

    /// Whether writes go to the page cache, and a sync at the end, whose time counts, makes them durable.
    fn is_synced_at_end(&self) -> bool {
        false
    }

    /// Endpoints that are served on this machine, as far as the plan says it.
    fn local_endpoints(&self) -> u64 {
        0
    }

    /// The sort of load, where it is one of the four common ones.
    fn load_kind(&self) -> Option<LoadKind> {
        None
    }

    /// Most operations that are handed to the driver at once at a queue depth, where the user says nothing.
    fn batch(&self, depth: u32) -> u32 {
        depth
    }

    /// Settles what else follows from a queue depth, as `spec` leaves it open.
    fn settle_depth(&mut self, _depth: u32, _spec: &Spec) {}
}

/// The methods of [`LayerPlan`] about the parts that all plans have: `name`, `engine` and `load` are fields of the type. Given is the name of
/// the layer.
#[macro_export]
macro_rules! plan_parts {
    ($layer:literal) => {
        fn layer(&self) -> &'static str {
            $layer
        }

        fn name(&self) -> &String {
            &self.name
        }

        fn name_mut(&mut self) -> &mut String {
            &mut self.name
        }

        fn engine(&self) -> &String {
            &self.engine
        }

        fn load(&self) -> &$crate::plan::LoadPlan {
            &self.load
        }

        fn load_mut(&mut self) -> &mut $crate::plan::LoadPlan {
            &mut self.load
        }
    };
}

/// Operations that a plan has whatever it is, so that plans of all layers are kept, compared and written alike.
pub trait AnyPlan: Any + fmt::Debug + Send + Sync {
    /// The plan, to look whether it is one of a certain layer.
    fn as_any(&self) -> &dyn Any;

    /// The same, to change it.
    fn as_any_mut(&mut self) -> &mut dyn Any;

    /// A copy.
    fn copied(&self) -> Box<dyn LayerPlan>;

    /// Whether the other is the same plan.
    fn is_same(&self, other: &dyn LayerPlan) -> bool;

    /// The plan for a serializer.
    fn as_serialize(&self) -> &dyn erased_serde::Serialize;
}

impl<T: LayerPlan + Clone + PartialEq + Serialize + fmt::Debug + Send + Sync> AnyPlan for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn copied(&self) -> Box<dyn LayerPlan> {
        Box::new(self.clone())
    }

    fn is_same(&self, other: &dyn LayerPlan) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn as_serialize(&self) -> &dyn erased_serde::Serialize {
        self
    }
}

/// One phase, fully resolved: a plan of the layer that it measures.
pub struct PhasePlan(Box<dyn LayerPlan>);

impl PhasePlan {
    /// A plan of a layer.
    #[must_use]
    pub fn new(plan: impl LayerPlan) -> Self {
        Self(Box::new(plan))
    }

    /// The plan, where it is one of this type.
    #[must_use]
    pub fn of<T: LayerPlan>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    /// The same, to change it.
    pub fn of_mut<T: LayerPlan>(&mut self) -> Option<&mut T> {
        self.0.as_any_mut().downcast_mut()
    }

    /// Workers and operations in flight: `4 threads x depth 32`, `2 masters x 1 thread x 16 in flight`, `8 hosts x 4 threads x depth 32`, `8 hosts with 20 threads x depth 32`.
    #[must_use]
    pub fn concurrency(&self) -> String {
        if let Some(place) = self.load().place.filter(|place| place.is_uneven()) {
            let (hosts, threads) =
                (counted(place.hosts.into(), "host"), counted(place.workers.into(), "thread"));
            return format!("{hosts} with {threads} x {}", self.depth_words());
        }
        let masters = match (self.masters(), self.load().place) {
            (0, None) => String::new(),
            (0, Some(place)) if place.is_subset() => {
                format!("{} of {} x ", place.hosts, counted(place.run_hosts.into(), "host"))
            }
            (0, Some(place)) if place.rotated > 0 => {
                format!("{} rotated by {} x ", counted(place.hosts.into(), "host"), place.rotated)
            }
            (0, Some(place)) => format!("{} x ", counted(place.hosts.into(), "host")),
            (count, _) => format!("{} x ", counted(count as u64, "master")),
        };
        format!("{masters}{} x {}", counted(self.load().threads.into(), "thread"), self.depth_words())
    }

    /// Whether other processes drive it (masters), and this one collects what they measure.
    #[must_use]
    pub fn is_driven_elsewhere(&self) -> bool {
        self.masters() > 0
    }

    /// Operations in flight that are asked for, of all processes that drive together.
    #[must_use]
    pub fn in_flight(&self) -> f64 {
        f64::from(self.load().workers_of_all()) * f64::from(self.load().depth) * self.masters().max(1) as f64
    }

    /// How operations are carried out: driver and options, and the arrivals of an open loop.
    #[must_use]
    pub fn manner(&self) -> Vec<String> {
        let mut words = self.0.manner();
        if let Some(arrivals) = &self.load().arrivals {
            let kind = match arrivals.kind {
                Spacing::Constant => "constant",
                Spacing::Poisson => "Poisson",
            };
            words.push(format!("open loop {} {kind}", rate(arrivals.rate_per_second)));
        }
        words
    }

    /// A field of its own in a table of all phases; empty where it has none of that name.
    #[must_use]
    pub fn field(&self, column: &str) -> String {
        let found = self.fields().into_iter().find(|(name, _)| *name == column);
        found.map_or_else(String::new, |(_, text)| text)
    }

    /// A field of the plan as the record has it, by its JSON pointer: `/dataset/records`. It is written out each time, so not for a measured
    /// loop.
    #[must_use]
    pub fn value(&self, pointer: &str) -> Option<Value> {
        serde_json::to_value(self).ok()?.pointer(pointer).cloned()
    }

    /// Puts another number of operations in flight for each worker, at least as many as the batches that `spec` asks for. All else is as
    /// in a plan of `spec` with that depth: what it says of batches and pipelines holds, what it leaves open follows the depth.
    pub fn set_depth(&mut self, depth: u32, spec: &Spec) {
        self.settle_depth(depth, spec);
        let batch = self.batch(depth);
        let load = self.load_mut();
        load.depth = depth;
        load.batch = spec.batch.unwrap_or(batch);
        load.batch_max = spec.batch_max.unwrap_or(depth);
    }
}

impl std::ops::Deref for PhasePlan {
    type Target = dyn LayerPlan;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl std::ops::DerefMut for PhasePlan {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl Clone for PhasePlan {
    fn clone(&self) -> Self {
        Self(self.0.copied())
    }
}

impl PartialEq for PhasePlan {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&*other.0)
    }
}

impl fmt::Debug for PhasePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Plans of a layer in records: how they are read, and their schema.
#[derive(Clone, Copy)]
pub struct PlanKind {
    /// One line about them, for the schema.
    about: &'static str,
    read: fn(Value) -> Result<PhasePlan, serde_json::Error>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl PlanKind {
    /// No plans.
    pub(crate) const NONE: Self = Self {
        about: "",
        read: |_| Err(serde_json::Error::custom("a layer without plans")),
        schema: |_| Schema::default(),
    };

    /// Plans of this type, with one line about them.
    #[must_use]
    pub const fn of<T: LayerPlan + DeserializeOwned + JsonSchema>(about: &'static str) -> Self {
        Self {
            about,
            read: |value| Ok(PhasePlan::new(serde_json::from_value::<T>(value)?)),
            schema: |generator| generator.subschema_for::<T>(),
        }
    }
}

impl Serialize for PhasePlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// A plan with the name of its layer before its fields.
        #[derive(Serialize)]
        struct Tagged<'a> {
            layer: &'static str,
            #[serde(flatten)]
            plan: &'a dyn erased_serde::Serialize,
        }
        Tagged { layer: self.layer(), plan: self.0.as_serialize() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PhasePlan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        let layer = value.as_object_mut().and_then(|fields| fields.remove("layer"));
        let Some(Value::String(layer)) = layer else { return Err(D::Error::missing_field("layer")) };
        let layers = Layer::all();
        match layers.iter().find(|known| known.name == layer) {
            Some(known) => (known.plans.read)(value).map_err(D::Error::custom),
            None => {
                let names: Vec<&str> = layers.iter().map(|layer| layer.name).collect();
                let known = names.join(", ");
                Err(D::Error::custom(format!("unknown layer {:?}, expected one of {known}", clean(&layer))))
            }
        }
    }
}

impl JsonSchema for PhasePlan {
    fn schema_name() -> Cow<'static, str> {
        "PhasePlan".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = |layer: &Layer| {
            let mut schema = (layer.plans.schema)(generator);
            let tag = serde_json::json!({ "layer": { "type": "string", "const": layer.name } });
            schema.insert("type".to_owned(), "object".into());
            schema.insert("properties".to_owned(), tag);
            schema.insert("required".to_owned(), serde_json::json!(["layer"]));
            schema.insert("description".to_owned(), layer.plans.about.into());
            schema.to_value()
        };
        let plans: Vec<Value> = Layer::all().iter().map(one).collect();
        schemars::json_schema!({
            "description": "One phase, fully resolved: a plan of the layer that it measures.",
            "oneOf": plans
        })
    }
}
