//! The rules of ARCHITECTURE.md that a machine can check: edges between crates, drivers and their tables, sizes, words
//! that must not be there, links.
//!
//! Every rule is a function from text to complaints, so that each is also tried on a sample that breaks it.

mod drivers;
mod edges;
mod links;
mod masked;
mod messages;
mod repository;
mod sources;

use repository::Repository;

/// Fails with all complaints at once.
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n  {}", complaints.len(), complaints.join("\n  "));
}

#[test]
fn arrows_between_crates_point_one_way() {
    let repository = Repository::open();
    let manifests = repository.manifests();
    assert!(manifests.len() >= 11, "crates/ was not found as it should be: {} manifests", manifests.len());
    assert_none(&edges::complaints(&manifests));
}

#[test]
fn every_driver_file_stands_in_its_table() {
    let repository = Repository::open();
    let layers = repository.driver_directories();
    assert!(!layers.is_empty(), "no layer with drivers was found");
    assert_none(
        &layers.iter().flat_map(|(layer, files)| drivers::complaints(layer, files)).collect::<Vec<_>>(),
    );
}

#[test]
fn sources_keep_the_rules() {
    let repository = Repository::open();
    let sources = repository.sources();
    assert!(sources.len() > 50, "sources were not found as they should be: {}", sources.len());
    assert_none(&sources.iter().flat_map(|(path, text)| sources::complaints(path, text)).collect::<Vec<_>>());
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    let repository = Repository::open();
    let complaints = repository
        .texts()
        .iter()
        .flat_map(|(path, text)| sources::machine_paths(path, text))
        .collect::<Vec<_>>();
    assert_none(&complaints);
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let repository = Repository::open();
    let documents = repository.documents();
    assert!(documents.iter().any(|(path, _)| path == "README.md"), "README.md was not found");
    assert_none(&links::complaints(&documents, |path| repository.exists(path)));
}

/// Where the sentences of a crate stand.
fn messages_file(name: &str) -> String {
    format!("crates/testkit/tests/messages/{name}.txt")
}

#[test]
fn every_sentence_of_output_stands_in_the_files_of_messages() {
    let repository = Repository::open();
    let sources = repository.sources();
    let messages = messages::messages(&sources);
    assert!(messages.len() > 15, "sources were not found as they should be: {} crates", messages.len());
    if std::env::var_os("UPDATE_MESSAGES").is_some() {
        for (name, messages) in &messages {
            repository.write(&messages_file(name), &messages::page(messages));
        }
        return;
    }
    assert_none(&messages::unclear(&messages));
    assert_none(&messages::unprinted(&sources, &messages));
    let complaint = |(name, messages): (&String, &messages::Sentences)| {
        let file = messages_file(name);
        let is_so = repository.text(&file).as_ref() == Some(&messages::page(messages));
        (!is_so).then(|| format!("{file} is not what the sources print: UPDATE_MESSAGES=1 cargo test -p testkit --test architecture"))
    };
    assert_none(&messages.iter().filter_map(complaint).collect::<Vec<_>>());
}
