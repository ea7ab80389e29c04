//! The layers of this build: the one place that names them.

/// Adds the layers of this build to what the other crates know, in the order of help. Once is enough; more often changes nothing.
pub fn register() {
    layer::add(&media::Media);
    layer::add(&network::Network);
    layer::add(&object::Objects);
    layer::add(&filesystem::Filesystem);
    layer::add(&application::Applications);
    [media::VIEW, network::VIEW, object::VIEW, filesystem::VIEW, application::VIEW]
        .into_iter()
        .for_each(report::view::add);
}
