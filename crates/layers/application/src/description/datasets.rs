//! Formats of objects that a description asks for, and the datasets of those in HDF5.

use driver::Error;
use layer::storage::{Dataset, ElementType, Transfers};
use units::ByteSize;

use super::Set;
use super::parse::refused;
use super::values::Values;
use crate::plan::{Layout, SetPlan};

/// Dataset of an object where a description names none.
const PLAIN: &str = "data:uint8";
/// Most datasets of an object.
const DATASETS_MAX: usize = 4096;

/// The form that a set asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedFormat {
    /// Form.
    pub choice: FormatChoice,
    /// The parameter that says it.
    pub parameter: Option<String>,
    /// Datasets of an object in HDF5, or why the items of the set do not go there.
    pub datasets: Result<Vec<Dataset>, String>,
    /// Transfers, where ranks of MPI have an object open together.
    pub transfers: Transfers,
    /// The parameter that says them.
    pub transfers_parameter: Option<String>,
}

/// A form, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatChoice {
    /// Bytes as they are.
    Raw,
    /// HDF5, or nothing.
    Hdf5,
    /// HDF5 where it can be had, raw elsewhere.
    Auto,
}

/// Words for them.
const CHOICES: &[(&str, FormatChoice)] =
    &[("raw", FormatChoice::Raw), ("hdf5", FormatChoice::Hdf5), ("auto", FormatChoice::Auto)];

/// Words for transfers of ranks of MPI; the first stands where nothing is said.
const TRANSFERS: &[(&str, Transfers)] =
    &[("collective", Transfers::Collective), ("independent", Transfers::Independent)];

/// The form that a set asks for.
///
/// # Errors
/// Words that are none; a set that cannot be of this form whatever its sizes are.
pub(super) fn asked(values: &Values<'_>, set: &Set, plan: &SetPlan) -> Result<AskedFormat, Error> {
    let text = set.format.as_deref().unwrap_or("raw");
    let choice = values.chosen("format", text, CHOICES)?;
    let named = datasets_of(set)?;
    if set.format.is_none() && (!set.datasets.is_empty() || set.transfers.is_some()) {
        let given = format!("the set {} has datasets or transfers but no format", set.name);
        return Err(refused(given, "format = \"auto\" or format = \"hdf5\" too"));
    }
    if (plan.is_index || plan.log.is_some()) && choice != FormatChoice::Raw {
        let given = format!("the set {} is of kind {}, which does not support a format", set.name, set.kind);
        return Err(refused(given, "a format only for sets of kind array"));
    }
    let way = set.transfers.as_deref().unwrap_or(TRANSFERS[0].0);
    let transfers = values.chosen("transfers", way, TRANSFERS)?;
    let parameter = |text: &str| values.word(text).map(|_| text.to_owned());
    let (parameter, transfers_parameter) = (parameter(text), parameter(way));
    Ok(AskedFormat { choice, parameter, datasets: fit(plan, named), transfers, transfers_parameter })
}

/// The datasets that a set names.
fn datasets_of(set: &Set) -> Result<Vec<Dataset>, Error> {
    let plain = [PLAIN.to_owned()];
    let texts = if set.datasets.is_empty() { &plain[..] } else { &set.datasets[..] };
    let mut datasets: Vec<Dataset> = Vec::new();
    for text in texts {
        let (name, element) = text.split_once(':').unwrap_or((text, ""));
        let element =
            ElementType::NAMES.iter().find(|(known, _)| *known == element).map(|(_, element)| *element);
        let is_name = !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'-');
        let is_new = datasets.iter().all(|known| known.name != name);
        let (Some(element), true, true) = (element, is_name, is_new) else {
            let names: Vec<&str> = ElementType::NAMES.iter().map(|(name, _)| *name).collect();
            let accepted = format!("NAME:TYPE, each name once, with one of the types {}", names.join(", "));
            return Err(refused(format!("{text:?} is not a dataset of the set {}", set.name), &accepted));
        };
        datasets.push(Dataset { name: name.to_owned(), element });
    }
    if datasets.len() > DATASETS_MAX {
        let given = format!("the set {} has {} datasets", set.name, datasets.len());
        return Err(refused(given, &format!("{DATASETS_MAX} at most")));
    }
    Ok(datasets)
}

/// Datasets that the items of a set fit into, or why they do not: an item lies in one dataset, and begins and ends with elements.
fn fit(set: &SetPlan, datasets: Vec<Dataset>) -> Result<Vec<Dataset>, String> {
    let (object, count) = (set.object_bytes(), datasets.len() as u64);
    let each = object / count;
    if !object.is_multiple_of(count) || !each.is_multiple_of(set.size_bytes_max) {
        let item = ByteSize(set.size_bytes_max);
        return Err(format!(
            "an object of the set {} has {} items of {item}, which do not divide evenly among {count} datasets",
            set.name,
            object / set.size_bytes_max
        ));
    }
    for Dataset { name, element } in &datasets {
        let bytes = element.bytes();
        let parts = [set.size_bytes_min, set.size_bytes_max, set.transfer_bytes];
        let is_whole = parts.iter().all(|part| part.is_multiple_of(bytes))
            && (set.size_bytes_min == set.size_bytes_max || bytes == 1);
        if !is_whole {
            return Err(format!(
                "items and transfers of the set {} are not multiples of the {bytes} bytes of an element of {name}",
                set.name
            ));
        }
    }
    Ok(datasets)
}

/// Whether several processes write an object of a set.
pub(crate) fn is_shared(set: &SetPlan) -> bool {
    matches!(set.layout, Layout::Iteration | Layout::Shared) && set.space.processes > 1
}

#[cfg(test)]
mod tests {
    use layer::storage::{DatasetPlace, ObjectFormat};
    use proptest::prelude::*;

    use super::*;
    use crate::description::{Application, parse, resolve};
    use crate::plan::Space;

    fn told(set: &str) -> Result<Application, String> {
        let text = format!(
            "format = 1\nname = 'a'\nversion = '1'\nsummary = 'b'\n[[set]]\nname = 'data'\nkind = 'array'\n\
             layout = 'iteration'\norder = 'item'\nsize = 64\n{set}\n[[group]]\nname = 'g'\nstage = 's'\n\
             processes = 2\niterations = 1\n[[group.step]]\nname = 'x'\nitems = 4\nbegin = ['create data']\n\
             each = ['write data']\nend = ['close data']\n"
        );
        resolve(&parse(&text).unwrap(), &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn formats_and_datasets_are_looked_at() {
        let raw = told("").unwrap();
        assert_eq!((raw.formats[0].choice, raw.sets[0].format), (FormatChoice::Raw, ObjectFormat::Raw));
        let plain = told("format = 'hdf5'").unwrap();
        assert_eq!(plain.formats[0].datasets.as_ref().unwrap()[0].name, "data");
        let four = "format = 'auto'\ndatasets = ['x:float32', 'y:float64', 'i:int32', 'b:uint8']";
        assert_eq!(told(four).unwrap().formats[0].datasets.as_ref().unwrap().len(), 4);
        let three = told("format = 'hdf5'\ndatasets = ['x:int64', 'y:int64', 'z:int64']").unwrap();
        let why = three.formats[0].datasets.as_ref().unwrap_err();
        assert!(why.contains("8 items of 64") && why.contains("3 datasets"), "{why}");
        for (set, said) in [
            ("format = 'netcdf'", "auto"),
            ("datasets = ['x:float32']", "no format"),
            ("format = 'hdf5'\ndatasets = ['x:float']", "float32, float64"),
            ("format = 'hdf5'\ndatasets = ['x']", "NAME:TYPE"),
            ("format = 'hdf5'\ndatasets = ['a/b:int32']", "NAME:TYPE"),
            ("format = 'hdf5'\ndatasets = ['x:int32', 'x:int32']", "each name once"),
        ] {
            let error = told(set).expect_err(set);
            assert!(error.contains(said) && !error.contains('\n'), "{set}: {error}");
        }
    }

    proptest! {
        #[test]
        fn an_item_that_fits_lies_in_one_dataset_and_on_its_elements(
            layout in 0usize..5, by_item: bool, processes in 1u64..6, items in 1u64..9, iterations in 1u64..4,
            count in 1usize..9, quads in 1u64..9, wide: bool,
        ) {
            let element = if wide { ElementType::Float64 } else { ElementType::Float32 };
            let set = SetPlan {
                name: "s".to_owned(),
                is_index: false,
                layout: crate::plan::LAYOUTS[layout].1,
                by_item,
                size_bytes_min: quads * 4,
                size_bytes_max: quads * 4,
                size_step_bytes: 1,
                transfer_bytes: quads * 4,
                space: Space { iterations, processes, items },
                describes: None,
                is_renamed: false,
                log: None,
                data_sync: false,
                format: ObjectFormat::Hdf5,
                datasets: Vec::new(),
                parallel: None,
            };
            let datasets = (0..count).map(|at| Dataset { name: at.to_string(), element }).collect();
            if fit(&set, datasets).is_ok() {
                for item in 0..set.space.total() {
                    let (_, offset) = set.place(item);
                    let place = |offset| DatasetPlace::of(offset, set.object_bytes(), count);
                    let (first, last) = (place(offset), place(offset + set.size(item) - 1));
                    prop_assert_eq!(first.dataset, last.dataset);
                    prop_assert!(first.dataset < count);
                    prop_assert_eq!(first.offset_bytes % element.bytes(), 0);
                }
            }
        }
    }
}
