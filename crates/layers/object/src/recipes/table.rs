//! Table of the recipes for users of object stores, one line each: the question, the load without it and with it, and the advice.

/// One side of a recipe.
pub(super) struct Side {
    /// Operations of the side, in words.
    pub(super) words: &'static str,
    /// Options of the load.
    pub(super) options: &'static [(&'static str, &'static str)],
}

/// A recipe.
pub(super) struct Recipe {
    pub(super) name: &'static str,
    /// Question that the recipe answers.
    pub(super) question: &'static str,
    /// Unit that is counted.
    pub(super) unit: &'static str,
    /// Options of both sides.
    pub(super) common: &'static [(&'static str, &'static str)],
    pub(super) without: Side,
    pub(super) with: Side,
    /// Advice for a store where it matters.
    pub(super) advice: &'static str,
    /// Each phase works on objects that nobody has made yet.
    pub(super) is_fresh: bool,
    /// It needs a store with more than one target.
    pub(super) needs_targets: bool,
}

const INDEX: &[(&str, &str)] = &[("dkeys", "1000"), ("value-size", "64"), ("count", "20000")];
const SMALL_ARRAYS: &[(&str, &str)] = &[("objects", "256"), ("records", "1"), ("value-size", "4k")];

const fn side(words: &'static str, options: &'static [(&'static str, &'static str)]) -> Side {
    Side { words, options }
}

/// All recipes, in the order of the report.
pub(super) static RECIPES: &[Recipe] = &[
    Recipe {
        name: "index-kv",
        question: "One index for all processes, or one index each?",
        unit: "records",
        common: INDEX,
        without: side(
            "puts into one index that all workers share",
            &[("op", "put"), ("object-scope", "shared")],
        ),
        with: side("puts into a separate index per worker", &[("op", "put"), ("object-scope", "private")]),
        advice: "use a separate index (key-value object) for each process, and a small index over them",
        is_fresh: false,
        needs_targets: false,
    },
    Recipe {
        name: "container-handle",
        question: "Container opened by every process, or its handle shared?",
        unit: "records",
        common: INDEX,
        without: side("opening the container for each put", &[("sequence", "open-container,put")]),
        with: side("puts through one open handle", &[("op", "put")]),
        advice: "open the container once and share its handle (local2global, MPI), also across processes",
        is_fresh: false,
        needs_targets: false,
    },
    Recipe {
        name: "containers",
        question: "Many containers, or one?",
        unit: "records",
        common: INDEX,
        without: side(
            "puts into a separate container per worker",
            &[("op", "put"), ("containers", "private")],
        ),
        with: side("puts into one container", &[("op", "put"), ("containers", "shared")]),
        advice: "use one container, and separate the data of different owners by objects",
        is_fresh: false,
        needs_targets: false,
    },
    Recipe {
        name: "open-with-attr",
        question: "Arrays opened by reading their stored attributes, or with known attributes?",
        unit: "records",
        common: SMALL_ARRAYS,
        without: side("opening an array by its stored attributes to read it", &[("sequence", "open,read")]),
        with: side(
            "opening an array with known attributes to read it",
            &[("sequence", "open-with-attr,read")],
        ),
        advice: "use byte arrays and open_with_attr, with the same cell and chunk size everywhere",
        is_fresh: false,
        needs_targets: false,
    },
    Recipe {
        name: "create",
        question: "Arrays created and written, or opened with attributes and written?",
        unit: "records",
        common: &[("objects", "2000"), ("records", "1"), ("value-size", "4k")],
        without: side("creating an array to write it", &[("sequence", "create,write")]),
        with: side(
            "opening a new array with attributes to write it",
            &[("sequence", "open-with-attr,write")],
        ),
        advice: "leave out create: a byte array that is opened with its attributes does not have to exist yet",
        is_fresh: true,
        needs_targets: false,
    },
    Recipe {
        name: "size-by-short-read",
        question: "Size of an array queried before reading, or found by reading into a larger buffer?",
        unit: "records",
        common: SMALL_ARRAYS,
        without: side("querying the size before the read", &[("sequence", "size,read")]),
        with: side("reading into a buffer twice as large", &[("op", "read"), ("read-size", "8k")]),
        advice: "allocate a larger buffer and use the length of the short read as the size",
        is_fresh: false,
        needs_targets: false,
    },
    Recipe {
        name: "size-in-index",
        question: "Size of an array queried, or kept in an index?",
        unit: "sizes",
        common: &[],
        without: side(
            "querying the size of an array",
            &[("op", "size"), ("objects", "256"), ("records", "1"), ("value-size", "4k")],
        ),
        with: side("reading a size from an index", &[("op", "get"), ("dkeys", "256"), ("value-size", "64")]),
        advice: "store the size with the reference to the array in the index",
        is_fresh: false,
        needs_targets: false,
    },
    Recipe {
        name: "ids-in-blocks",
        question: "Object ids allocated one by one, or in blocks?",
        unit: "ids",
        common: &[("op", "allocate-ids")],
        without: side("allocating ids one by one", &[("ids-per-call", "1")]),
        with: side("allocating ids a hundred at a time", &[("ids-per-call", "100")]),
        advice: "allocate a block of ids once per process, and assign them in the application",
        is_fresh: false,
        needs_targets: false,
    },
    Recipe {
        name: "get-not-list",
        question: "Key found by listing, or read by its name?",
        unit: "records",
        common: &[("dkeys", "1000"), ("value-size", "64")],
        without: side("listing 64 keys before each get", &[("sequence", "list,get"), ("list-max", "64")]),
        with: side("getting by a known key", &[("op", "get")]),
        advice: "build keys from information that the reader has, so that no listing is needed",
        is_fresh: false,
        needs_targets: false,
    },
    Recipe {
        name: "value-size",
        question: "Data in the values of an index, or references?",
        unit: "records",
        common: &[("op", "get"), ("dkeys", "256")],
        without: side("getting 64 KiB values", &[("value-size", "64k")]),
        with: side("getting 64 B values", &[("value-size", "64")]),
        advice: "keep references in the index, and the data in arrays",
        is_fresh: false,
        needs_targets: false,
    },
    Recipe {
        name: "one-array",
        question: "Many small arrays, or one chunked array?",
        unit: "records",
        common: &[("sequence", "open-with-attr,write"), ("value-size", "4k"), ("count", "10000")],
        without: side("writing 4 KiB into each of 1024 arrays", &[("objects", "1024"), ("records", "1")]),
        with: side("writing 4 KiB records of one array", &[("objects", "1"), ("records", "1024")]),
        advice: "put data that is written together into one array, with chunks that match the reads",
        is_fresh: false,
        needs_targets: false,
    },
    Recipe {
        name: "object-class",
        question: "An object on one target, or spread over all targets?",
        unit: "records",
        common: &[
            ("op", "write"),
            ("objects", "1"),
            ("records", "256"),
            ("value-size", "64k"),
            ("count", "1000"),
        ],
        without: side("writing to an array on one target (S1)", &[("class", "S1")]),
        with: side("writing to an array over all targets (SX)", &[("class", "SX")]),
        advice: "spread large shared objects over all targets (SX), and keep small private ones on one (S1)",
        is_fresh: false,
        needs_targets: true,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_every_option_is_one() {
        use workload::options;
        use workload::spec::Spec;
        for (at, recipe) in RECIPES.iter().enumerate() {
            assert!(RECIPES[..at].iter().all(|other| other.name != recipe.name), "{}", recipe.name);
            assert!(recipe.question.ends_with('?') && recipe.advice.len() < 110, "{}", recipe.name);
            for side in [&recipe.without, &recipe.with] {
                let mut spec = Spec { layer: crate::LAYER, ..Spec::default() };
                for (key, value) in recipe.common.iter().chain(side.options) {
                    options::apply(&mut spec, key, value).expect(recipe.name);
                }
            }
        }
    }
}
