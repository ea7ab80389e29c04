//! The layers there are: name, command, options and plans of each. The command line, job files and records follow from this list.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use units::ParseError;

use crate::help::Help;
use crate::options::{self, OptionDef};
use crate::plan::PlanKind;
use crate::spec::{Spec, choice};

const ONE_OPERATION: &str = "one operation";

/// A layer as users see it.
pub struct LayerDef {
    /// Name, as job files and records have it.
    pub name: &'static str,
    /// The command of strata that measures it.
    pub command: &'static str,
    /// One line about the command.
    pub about: &'static str,
    /// Short help of that command.
    pub help: Help,
    /// Words of its `--op`, for completions; none where it has no such option.
    pub operations: fn() -> Vec<&'static str>,
    /// Forms of its targets, for help.
    pub targets: &'static str,
    /// Fewest and most targets on a command line.
    pub target_count: (usize, usize),
    /// Its options in the order of help: those that it alone has, shared ones that mean something else here, whole tables of shared ones.
    pub options: &'static [&'static [OptionDef]],
    /// Options of several layers ([`options::SHARED`]) that it takes over as they are, besides.
    pub common: &'static [&'static str],
    /// Secrets that other tools have on their command lines: options without a flag and a key of job files, so that they stand in no record.
    pub secrets: &'static [OptionDef],
    /// Options that it does not have, and their substitutes.
    pub refused: &'static [(&'static str, &'static str)],
    /// Whether a spec asks for one phase, its ladder aside.
    pub is_one_phase: fn(&Spec) -> bool,
    /// Such a phase in words: it has `one operation`.
    pub one_phase: &'static str,
    /// Sets the size of operations in words, for a step of a ladder.
    pub set_size: fn(&mut Spec, String),
    /// How its plans are read from records.
    pub plans: PlanKind,
    /// Whether specs that name no layer are of this one.
    pub is_default: bool,
}

impl LayerDef {
    /// A layer with one operation and no options, for struct update: its name is its command too.
    #[must_use]
    pub const fn new(name: &'static str, about: &'static str, plans: PlanKind) -> Self {
        Self {
            name,
            command: name,
            about,
            help: Help::NONE,
            operations: Vec::new,
            targets: "Targets of the load",
            target_count: (0, usize::MAX),
            options: &[],
            common: &["threads", "depth", "time", "count", "seed", "concurrent"],
            secrets: &[],
            refused: &[],
            is_one_phase: |_| true,
            one_phase: ONE_OPERATION,
            set_size: |spec, size| spec.block_size = Some(size),
            plans,
            is_default: false,
        }
    }
}

/// The layer of specs that name none, while no layer was added: options of several layers, and no plans.
static NONE: LayerDef =
    LayerDef { options: options::SHARED, common: &[], ..LayerDef::new("none", "Nothing", PlanKind::NONE) };

/// Layers that were added, in the order of help and of the schema; that of specs that name none is the first.
static ADDED: RwLock<Vec<Layer>> = RwLock::new(Vec::new());

/// A layer of the list.
#[derive(Clone, Copy)]
pub struct Layer(&'static LayerDef);

impl Layer {
    /// The layer of this entry.
    #[must_use]
    pub const fn of(definition: &'static LayerDef) -> Self {
        Self(definition)
    }

    /// Adds a layer to the list. A name or command that the list has already leaves it as it is.
    pub fn add(layer: &'static LayerDef) {
        let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = |known: &Self| known.name != layer.name && known.command != layer.command;
        if added.iter().all(is_other) {
            let at = if layer.is_default { 0 } else { added.len() };
            added.insert(at, Self(layer));
        }
    }

    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its entry.
    #[must_use]
    pub fn definition(self) -> &'static LayerDef {
        self.0
    }

    /// The layer of a name.
    ///
    /// # Errors
    /// A name that this build has no layer for, with those that there are.
    pub fn named(name: &str) -> Result<Self, ParseError> {
        let all = Self::all();
        let choices: Vec<_> = all.iter().map(|layer| (layer.name, *layer)).collect();
        choice("layer", name, &choices)
    }

    /// The layer that a command of strata measures.
    #[must_use]
    pub fn of_command(command: &str) -> Option<Self> {
        Self::all().into_iter().find(|layer| layer.command == command)
    }
}

impl std::ops::Deref for Layer {
    type Target = LayerDef;

    fn deref(&self) -> &LayerDef {
        self.0
    }
}

impl Default for Layer {
    /// The first of the list.
    fn default() -> Self {
        ADDED.read().unwrap_or_else(PoisonError::into_inner).first().copied().unwrap_or(Self(&NONE))
    }
}

impl PartialEq for Layer {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Layer {}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Options of one layer, as typed.
pub trait OwnSpec: Any + fmt::Debug + Send + Sync {
    /// The options, to look whether they are of a certain layer.
    fn as_any(&self) -> &dyn Any;

    /// The same, to change them.
    fn as_any_mut(&mut self) -> &mut dyn Any;

    /// A copy.
    fn copied(&self) -> Box<dyn OwnSpec>;

    /// Whether the other are the same.
    fn is_same(&self, other: &dyn OwnSpec) -> bool;

    /// Whether they are as if nothing was said.
    fn is_default(&self) -> bool;
}

impl<T: Any + Clone + PartialEq + fmt::Debug + Send + Sync + Default> OwnSpec for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn copied(&self) -> Box<dyn OwnSpec> {
        Box::new(self.clone())
    }

    fn is_same(&self, other: &dyn OwnSpec) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn is_default(&self) -> bool {
        *self == T::default()
    }
}

/// Options of layers, one struct for each.
#[derive(Debug, Default)]
pub struct OwnSpecs(BTreeMap<TypeId, Box<dyn OwnSpec>>);

impl OwnSpecs {
    /// Options of this type; none where nothing was said.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        (**self.0.get(&TypeId::of::<T>())?).as_any().downcast_ref()
    }

    /// Options of this type, to say one.
    pub fn get_mut<T: Any + Clone + PartialEq + fmt::Debug + Send + Sync + Default>(&mut self) -> &mut T {
        let own = self.0.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        (**own).as_any_mut().downcast_mut().expect("it is kept under its own type")
    }
}

impl Clone for OwnSpecs {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|(of, own)| (*of, (**own).copied())).collect())
    }
}

impl PartialEq for OwnSpecs {
    fn eq(&self, other: &Self) -> bool {
        let is_in = |other: &Self, of: &TypeId, own: &dyn OwnSpec| match other.0.get(of) {
            Some(other) => own.is_same(&**other),
            None => own.is_default(),
        };
        self.0.iter().all(|(of, own)| is_in(other, of, &**own))
            && other.0.iter().all(|(of, own)| is_in(self, of, &**own))
    }
}
