//! The drivers of the object layer: one file each, one line each in [`DRIVERS`].

use crate::Registration;

mod daos;
mod engine;
mod null;
mod rados;
pub(crate) mod s3;
mod vos;

pub use vos::check_new_pool;

/// All drivers of this layer. Help, `strata list`, the docs and the conformance suite follow from this table.
pub static DRIVERS: &[Registration] = &[
    // One line a driver.
    null::REGISTRATION,
    vos::REGISTRATION,
    engine::REGISTRATION,
    rados::REGISTRATION,
    daos::REGISTRATION,
    s3::REGISTRATION,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_the_forms_of_targets_of_the_table() {
        let forms: Vec<_> = DRIVERS.iter().map(|driver| driver.target).collect();
        assert_eq!(crate::definition::TARGETS, forms.join(", "));
    }
}
