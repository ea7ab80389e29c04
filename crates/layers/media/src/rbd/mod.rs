//! Images of Ceph's block device (RBD), past the kernel: librbd at run time.

mod image;
mod library;
mod name;

pub use image::Images;
pub(crate) use image::{Image, Use};
pub(crate) use library::Api;
pub(crate) use name::ImageName;

use driver::Error;
use host::extents::Extents;
use workload::target::TargetPlan;

/// Prefix of the names of images.
const PREFIX: &str = "rbd:";

/// Whether a target is named as an image.
#[must_use]
pub fn is_image(target: &str) -> bool {
    target.starts_with(PREFIX)
}

/// Parts of a range that have objects in the cluster: reads of the rest reach no disk.
///
/// # Errors
/// When the image cannot be asked.
pub fn extents(target: &TargetPlan) -> Result<Extents, Error> {
    let name: ImageName = target.path.parse()?;
    let image = Image::open(&name, Use::Looked)?;
    let allocated_bytes = image.allocated_bytes(target.offset_bytes, target.size_bytes)?;
    Ok(Extents {
        allocated_bytes,
        hole_bytes: target.size_bytes.saturating_sub(allocated_bytes),
        ..Extents::default()
    })
}
