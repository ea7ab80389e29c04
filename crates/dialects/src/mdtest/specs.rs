//! From settings to specs: one for each phase of each iteration, in mdtest's order.

use units::ParseError;
use workload::spec::{OnError, Spec, Warmup};

use super::settings::Settings;
use crate::options::{Said, said, said_if, say, switch};

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    DirectoryCreation,
    DirectoryStat,
    DirectoryRename,
    DirectoryRemoval,
    FileCreation,
    FileStat,
    FileRead,
    FileRemoval,
    TreeCreation,
    TreeRemoval,
}

/// All rows, in the order of the table, with their names and whether they are of directories that are items.
pub(crate) const TESTS: &[(Test, &str, Option<bool>)] = &[
    (Test::DirectoryCreation, "Directory creation", Some(true)),
    (Test::DirectoryStat, "Directory stat", Some(true)),
    (Test::DirectoryRename, "Directory rename", Some(true)),
    (Test::DirectoryRemoval, "Directory removal", Some(true)),
    (Test::FileCreation, "File creation", Some(false)),
    (Test::FileStat, "File stat", Some(false)),
    (Test::FileRead, "File read", Some(false)),
    (Test::FileRemoval, "File removal", Some(false)),
    (Test::TreeCreation, "Tree creation", None),
    (Test::TreeRemoval, "Tree removal", None),
];

/// A phase: which number of tasks, which iteration, which row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) group: usize,
    pub(crate) iteration: u32,
    pub(crate) test: Test,
}

/// The specs, and the step that each is.
#[derive(Debug, Default)]
pub(crate) struct Programme {
    pub(crate) specs: Vec<Spec>,
    pub(crate) steps: Vec<Step>,
}

/// Makes the specs.
///
/// # Errors
/// Values that no load has.
pub(crate) fn build(settings: &Settings) -> Result<Programme, ParseError> {
    let mut programme = Programme::default();
    for (group, &tasks) in settings.tasks.iter().enumerate() {
        for iteration in 0..settings.iterations {
            for test in tests(settings) {
                let step = Step { group, iteration, test };
                programme.specs.push(spec(settings, tasks, step)?);
                programme.steps.push(step);
            }
        }
    }
    Ok(programme)
}

/// Phases of one iteration.
fn tests(settings: &Settings) -> Vec<Test> {
    use Test::{
        DirectoryCreation, DirectoryRemoval, DirectoryRename, DirectoryStat, FileCreation, FileRead,
        FileRemoval, FileStat, TreeCreation, TreeRemoval,
    };
    let Settings { create, stat, read, remove, rename, dirs, files, .. } = *settings;
    let all = [
        (TreeCreation, create),
        (DirectoryCreation, dirs && create),
        (DirectoryStat, dirs && stat),
        (DirectoryRename, dirs && rename && settings.items() > 1),
        (DirectoryRemoval, dirs && remove),
        (FileCreation, files && create),
        (FileStat, files && stat),
        (FileRead, files && read),
        (FileRemoval, files && remove),
        (TreeRemoval, remove),
    ];
    all.into_iter().filter(|(_, is_asked)| *is_asked).map(|(test, _)| test).collect()
}

fn operation(settings: &Settings, test: Test) -> &'static str {
    match test {
        Test::DirectoryCreation => "mkdir",
        Test::DirectoryStat => "dir-stat",
        Test::DirectoryRename => "dir-rename",
        Test::DirectoryRemoval => "rmdir",
        Test::FileCreation if settings.mknod => "mknod",
        Test::FileCreation if settings.write_bytes > 0 => "write",
        Test::FileCreation => "create",
        Test::FileStat => "stat",
        Test::FileRead => "read",
        Test::FileRemoval => "unlink",
        Test::TreeCreation => "tree-create",
        Test::TreeRemoval => "tree-remove",
    }
}

fn spec(settings: &Settings, tasks: u32, step: Step) -> Result<Spec, ParseError> {
    let test = step.test;
    let (_, name, _) = TESTS.iter().find(|(known, ..)| *known == test).copied().unwrap_or(TESTS[0]);
    let creates = matches!(test, Test::DirectoryCreation | Test::FileCreation | Test::TreeCreation);
    let moves = match test {
        Test::FileCreation => settings.write_bytes,
        Test::FileRead => settings.read_bytes,
        _ => 0,
    };
    let checks = test == Test::FileRead && settings.verify;
    let mut spec = Spec {
        name: Some(name.to_owned()),
        targets: settings.paths.clone(),
        threads: Some(tasks),
        warmup: Some(Warmup::None),
        // mdtest goes on after what it can only warn of.
        on_error: Some(if creates { OnError::Stop } else { OnError::Continue }),
        verify: !settings.is_dummy && ((test == Test::FileCreation && moves > 0) || checks),
        seed: settings.random_seed,
        keep: settings.create && !settings.remove,
        ..Spec::of_layer("filesystem")?
    };
    say(&mut spec, of_tree(settings))?;
    say(&mut spec, of_phase(settings, step, moves))?;
    if moves > 0 {
        say(&mut spec, settings.gpu.said())?;
    }
    let number = settings.data_number.filter(|_| spec.verify);
    say(&mut spec, [said_if("verify-run", number)])?;
    Ok(spec)
}

/// Options of the tree and its items: the same in all phases, so that they work on the same items.
fn of_tree(settings: &Settings) -> Vec<Said> {
    let tree = &settings.tree;
    let by_count = tree.directories;
    vec![
        said("shape", "tree"),
        said("names", "mdtest"),
        said_if("dirs", by_count),
        said_if("branch", by_count.is_none().then_some(tree.branch)),
        said_if("levels", by_count.is_none().then_some(tree.depth)),
        switch("leaves-only", by_count.is_none() && tree.leaf_only),
        said("files", tree.per_directory),
        said("items", settings.noted.unwrap_or(tree.items)),
        switch("shared-tree", !settings.unique),
        said_if("engine", settings.is_dummy.then_some("null")),
    ]
}

fn of_phase(settings: &Settings, step: Step, moves: u64) -> Vec<Said> {
    let test = step.test;
    let is_of_items = !matches!(test, Test::TreeCreation | Test::TreeRemoval);
    let shift = match test {
        Test::DirectoryStat | Test::DirectoryRename | Test::FileStat => 1,
        Test::FileRead => 2,
        Test::DirectoryRemoval | Test::FileRemoval => 3,
        _ => 0,
    } * u64::from(settings.stride);
    let creates = matches!(test, Test::DirectoryCreation | Test::FileCreation);
    let is_first = creates || (!settings.create && matches!(test, Test::DirectoryStat | Test::FileStat));
    let walled = creates && settings.stonewall_s > 0;
    let is_shuffled =
        settings.random && matches!(test, Test::DirectoryStat | Test::FileStat | Test::FileRead);
    let writes = test == Test::FileCreation && moves > 0;
    let size = matches!(test, Test::FileCreation | Test::FileRead).then_some(moves);
    vec![
        said("op", operation(settings, test)),
        said_if("file-size", size.filter(|&bytes| bytes > 0 || test == Test::FileRead)),
        said_if("block-size", (moves > 0).then_some(moves)),
        said_if("rank-shift", (shift > 0).then_some(shift)),
        said_if("item-order", is_shuffled.then_some("random")),
        said_if("time", walled.then(|| format!("{}s", settings.stonewall_s))),
        switch("wear-out", walled),
        said_if("start-delay", (is_first && settings.delay_s > 0).then(|| format!("{}s", settings.delay_s))),
        switch("end-fsync", writes && settings.fsync),
        switch("phase-sync", is_of_items && settings.sync),
        switch("direct", settings.direct && moves > 0),
        switch("no-fill", true),
    ]
}
