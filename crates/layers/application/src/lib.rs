//! The application layer: descriptions of applications, and loads that carry them out on storage of the layers below.

mod beside;
mod builtin;
mod checkpoint;
mod commands;
mod commits;
mod content;
pub mod description;
mod dlio;
mod driver;
mod feeding;
mod formats;
mod help;
mod hosts;
mod log;
mod meter;
mod operation;
mod options;
mod plan;
mod planning;
mod progress;
mod report;
mod run;
mod sharing;
mod source;
mod spec;
mod stack;
mod staging;
mod trying;
mod wal;
mod words;

pub use beside::{BesidePlan, TriedRemedy};
pub use builtin::{BUILTIN, Builtin};
pub use operation::{APP_CLASSES, AppClass, AppOperation};
pub use options::LAYER;
pub use plan::{
    AfterPlan, AppPlan, CallPlan, ComputeWith, Dimension, GroupPlan, Layout, LogPlan, ParameterPlan,
    Selection, SetPlan, Space, StepPlan, UtilisationPlan,
};
pub use report::VIEW;
pub use run::Applications;
pub use source::AppSource;
pub use spec::AppSpec;
