//! Memory of GPUs as where data comes from and goes to: the devices there are, buffers on them, copies, content that is made and checked
//! there, and GPUDirect Storage. libcuda, libcufile and libnvidia-ml are loaded at run time; nothing of them is needed to build.

mod choice;
mod content;
mod cuda;
mod cufile;
mod device;
mod facts;
mod memory;
mod nvml;
mod patience;
mod staged;
mod topology;
mod watch;

pub use choice::{GpuPath, GpuPer, GpuPlan, MemoryChoice, MemoryPlan, MemorySpec, Staging};
pub use content::{BlockTerms, ContentKernels, KERNEL_SOURCE, KERNELS};
pub use cufile::{
    Batches, Counters, CuFile, Queue, RegisteredBuffers, RegisteredFile, Request, Streams, Transport,
};
pub use device::{Context, Device, Share};
pub use facts::{DeviceFacts, DevicePair, GpuFacts};
pub use memory::{DeviceBuffers, Pinned, Stream};
pub use staged::{Exchange, Staged, Transfer, Transfers};
pub use topology::{Distance, PciePlace};
pub use watch::{CufileRequests, GpuActivity, GpuWatch, WorkerNotes};
