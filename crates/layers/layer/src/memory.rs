//! Memory of the buffers of a worker, for any layer: registered, or on a GPU, with the copies of operations and the content that is made and checked there.
#![allow(unsafe_code)]

mod direct;

use std::path::Path;
use std::sync::Arc;

use driver::{Arena, Driver, Error, Fault, Opened, PageSize};
use gpu::{
    BlockTerms, ContentKernels, Context, DeviceBuffers, Exchange, GpuPath, GpuPer, GpuPlan, MemoryPlan,
    PciePlace, Pinned, Share, Staged, Staging, Stream, Transfers, WorkerNotes,
};
use workload::content::Recipe;
use workload::plan::LoadPlan;

pub use direct::DirectMemory;

/// Buffers on a device.
#[derive(Clone, Debug)]
pub struct DeviceRequest {
    /// One a slot, each with the room of those of the host.
    pub buffers: Arc<DeviceBuffers>,
    /// How data come and go.
    pub plan: GpuPlan,
    /// Where the driver notes what it saw.
    pub notes: WorkerNotes,
}

/// Places on PCIe of the devices that paths are on.
fn storage_places<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Vec<PciePlace> {
    let numbers = paths.into_iter().flat_map(|path| host::block::numbers_of(path.as_ref()));
    let devices = numbers.filter_map(host::block::BlockDevice::read);
    let bottoms = devices.flat_map(|device| {
        device
            .bottoms()
            .into_iter()
            .map(|bottom| format!("/sys/dev/block/{}", bottom.number))
            .collect::<Vec<_>>()
    });
    bottoms.filter_map(|directory| PciePlace::of_directory(Path::new(&directory))).collect()
}

impl DeviceRequest {
    /// The request of a driver that works on a device; engine `engine`.
    ///
    /// # Errors
    /// Bad usage where the buffers are on none.
    pub fn required<'a>(request: Option<&'a Self>, engine: &str) -> Result<&'a Self, Error> {
        request.ok_or_else(|| {
            Error::usage("open", "the buffers are not on a GPU")
                .with("engine", engine)
                .remedy("give --memory gpu")
        })
    }
}

/// Notes of workers about their devices ([`WorkerNotes`]), which know where `paths` are stored; paths are looked at where the buffers are on devices.
pub fn worker_notes<P: AsRef<Path>>(memory: &MemoryPlan, paths: impl IntoIterator<Item = P>) -> WorkerNotes {
    if memory.gpu().is_none() {
        return WorkerNotes::default();
    }
    WorkerNotes::near(storage_places(paths))
}

/// A driver with the memory of its worker.
pub struct Attached<Op> {
    /// The driver, with the copies to the device and from it where they are a part of its operations.
    pub driver: Box<dyn Driver<Op>>,
    /// Maker of content there, which keeps the memory.
    pub device: OnDevice,
    /// Notes of the memory and of the driver, for the record.
    pub notes: Vec<String>,
}

/// Memory of a worker as its plan has it.
#[derive(Clone, Copy, Debug)]
pub struct WorkerNeeds<'a> {
    /// Memory of the plan.
    pub memory: &'a MemoryPlan,
    /// Number by which it gets a device.
    pub worker: u32,
    /// Operations in flight.
    pub depth: u32,
    /// Whether content is made or checked while it runs.
    pub makes_content: bool,
    /// Whether the driver works on buffers of the device itself.
    pub is_of_device: bool,
}

/// Number by which worker `worker` of this host gets a device: its own, or that of its host, as the plan deals them out.
fn receiver(memory: &MemoryPlan, load: &LoadPlan, worker: u32) -> u32 {
    match memory.gpu().map(|gpu| gpu.per) {
        Some(GpuPer::Host) => load.place.map_or(0, |place| place.rank),
        _ => load.worker_by_rank(worker),
    }
}

impl<'a> WorkerNeeds<'a> {
    /// Needs of worker `worker` of this host, whose content is made on the host and whose driver works on memory of the host. A load
    /// that moves no data needs no memory of a device.
    #[must_use]
    pub fn of(memory: &'a MemoryPlan, load: &LoadPlan, worker: u32, moves_data: bool) -> Self {
        const HOST: &MemoryPlan = &MemoryPlan::Host;
        Self {
            memory: if moves_data { memory } else { HOST },
            worker: receiver(memory, load, worker),
            depth: load.depth,
            makes_content: false,
            is_of_device: false,
        }
    }

    /// Pages of its buffers: few where they are registered.
    #[must_use]
    pub fn pages(&self) -> PageSize {
        if self.memory.is_host() { PageSize::Base } else { PageSize::Transparent }
    }

    /// Whether data go through buffers of the host to those of a device.
    fn is_staged(&self) -> bool {
        !self.is_of_device && self.memory.gpu().is_some_and(|gpu| gpu.path == GpuPath::Staged)
    }
}

/// Memory of one worker besides its arena, as its plan has it.
pub struct WorkerMemory {
    /// Buffers on a device, for the driver.
    pub request: Option<DeviceRequest>,
    notes: Vec<String>,
    pinned: Option<Pinned>,
    share: Option<Share>,
}

impl WorkerMemory {
    /// Takes the memory of a worker, which notes whether its device is far from it or from the storage.
    ///
    /// # Errors
    /// When a library or a device is missing, or there is too little memory.
    pub fn take(needs: &WorkerNeeds<'_>, arena: &Arc<Arena>, notes: &WorkerNotes) -> Result<Self, Error> {
        let (devices, gpu) = match needs.memory {
            MemoryPlan::Host => {
                return Ok(Self { request: None, notes: Vec::new(), pinned: None, share: None });
            }
            MemoryPlan::Pinned => (&[][..], None),
            MemoryPlan::Gpu(gpu) => (gpu.devices.as_slice(), Some(gpu)),
        };
        let per = gpu.map(|gpu| gpu.per).unwrap_or_default();
        let share = Share::of_worker(devices, per, needs.worker, notes)?;
        let context = Context::of(share.device())?;
        let is_staged = needs.is_staged();
        let pins = gpu.is_none_or(|gpu| is_staged && gpu.staging == Staging::Pinned);
        let pinned = if pins { Some(Pinned::new(&context, arena)?) } else { None };
        let Some(gpu) = gpu else {
            return Ok(Self { request: None, notes: Vec::new(), pinned, share: Some(share) });
        };
        let buffers = Arc::new(DeviceBuffers::new(&context, needs.depth, arena.slot_bytes())?);
        let told = vec![format!("buffers on GPU {} ({})", context.device().number, context.device().name)];
        let request = DeviceRequest { buffers, plan: gpu.clone(), notes: notes.clone() };
        Ok(Self { request: Some(request), notes: told, pinned, share: Some(share) })
    }

    /// Puts the copy into the operations of a driver that works on memory of the host, where the plan has it staged, and gives what makes content on the device.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn attach<Op: Transfers>(
        self,
        needs: &WorkerNeeds<'_>,
        opened: Opened<Op>,
        arena: &Arc<Arena>,
    ) -> Result<Attached<Op>, Error> {
        self.attach_exchange(needs, opened, arena, Exchange::default())
    }

    /// The same for operations that send a part of their buffers and receive another.
    ///
    /// # Errors
    /// As for [`WorkerMemory::attach`].
    pub fn attach_exchange<Op: Transfers>(
        self,
        needs: &WorkerNeeds<'_>,
        opened: Opened<Op>,
        arena: &Arc<Arena>,
        exchange: Exchange,
    ) -> Result<Attached<Op>, Error> {
        let (driver, mut notes) = (opened.driver, self.notes);
        notes.extend(opened.notes);
        let Some(request) = self.request else {
            let device = OnDevice { device: None, _pinned: self.pinned, _share: self.share };
            return Ok(Attached { driver, device, notes });
        };
        let device = OnDevice {
            device: Some(Content {
                kernels: if needs.makes_content {
                    Some(ContentKernels::new(request.buffers.context())?)
                } else {
                    None
                },
                stream: Stream::new(request.buffers.context())?,
                buffers: Arc::clone(&request.buffers),
                arena: Arc::clone(arena),
                failure: None,
            }),
            _pinned: None,
            _share: self.share,
        };
        let driver: Box<dyn Driver<Op>> = if needs.is_staged() {
            let staged = Staged::new(driver, arena, &request.buffers, self.pinned, needs.depth)?;
            Box::new(staged.exchanging(exchange))
        } else {
            driver
        };
        Ok(Attached { driver, device, notes })
    }
}

/// Buffers of the source on a device, or registered ones; those of the process by default.
#[derive(Default)]
pub struct OnDevice {
    device: Option<Content>,
    /// Keeps buffers of the host registered as long as the source.
    _pinned: Option<Pinned>,
    /// Other workers look for a device with fewer as long.
    _share: Option<Share>,
}

impl OnDevice {
    /// Whether the buffers are on a device.
    #[inline]
    pub fn has_content(&self) -> bool {
        self.device.is_some()
    }

    /// Maker of content on the device; none where the buffers are memory of the host.
    #[inline]
    pub fn content(&mut self) -> Option<&mut Content> {
        self.device.as_mut()
    }
}

/// Makes, fetches and checks the content of buffers on a device.
pub struct Content {
    /// Where content is made or checked: the driver takes its time to compile them.
    kernels: Option<ContentKernels>,
    stream: Stream,
    buffers: Arc<DeviceBuffers>,
    arena: Arc<Arena>,
    failure: Option<Error>,
}

/// Byte of a buffer that holds no data.
const SPOILED: u8 = 0xdb;

/// A part of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct BufferPart {
    /// Slot of the buffer.
    pub slot: u32,
    /// Where in the buffer it begins, in bytes.
    pub at: usize,
    /// Its length in bytes.
    pub length: usize,
}

impl Content {
    /// The first kernel or copy outside of an operation that failed since this was asked last.
    ///
    /// # Errors
    /// The data of the operation are unknown then: its content was not as it should be, or cannot be checked.
    pub fn settle(&mut self) -> Result<(), Fault> {
        match self.failure.take() {
            Some(error) => Err(Fault { cause: "device", detail: error.to_string() }),
            None => Ok(()),
        }
    }

    /// Notes the first failure, and says whether there was none.
    fn noted<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failure.get_or_insert(error);
                None
            }
        }
    }

    fn terms(part: BufferPart, recipe: &Recipe, generation: u64, position: u64) -> BlockTerms {
        BlockTerms {
            interval_bytes: u64::from(recipe.interval_bytes),
            run: recipe.run,
            target: recipe.target,
            ..BlockTerms::of_stream(recipe.keys, generation, position, part.length as u64)
        }
    }

    /// Address on the device of a part of a buffer whose slot is the source's.
    fn address(&self, part: BufferPart) -> u64 {
        assert!(part.at + part.length <= self.buffers.slot_bytes());
        self.buffers.slot_address(part.slot) + part.at as u64
    }

    /// Whether kernels make blocks of `length_bytes` at such a position.
    pub fn makes(&self, recipe: &Recipe, position: u64, length_bytes: u64) -> bool {
        let terms = BlockTerms {
            interval_bytes: u64::from(recipe.interval_bytes),
            ..BlockTerms::of_stream(recipe.keys, 0, position, length_bytes)
        };
        self.kernels.is_some() && terms.fit()
    }

    /// Makes a part by a kernel; false where no kernel makes such a part, and nothing was done.
    pub fn make(&mut self, part: BufferPart, recipe: &Recipe, generation: u64, position: u64) -> bool {
        let (terms, address) = (Self::terms(part, recipe, generation, position), self.address(part));
        let Some(kernels) = self.kernels.as_mut().filter(|_| terms.fit()) else { return false };
        // SAFETY: a part of a buffer that is the source's before submission.
        let filled = unsafe { kernels.fill(address, &terms) };
        self.noted(filled);
        true
    }

    /// Whether a part is as it should be, by a kernel; none where no kernel can tell.
    pub fn is_right(
        &mut self,
        part: BufferPart,
        recipe: &Recipe,
        generation: u64,
        position: u64,
    ) -> Option<bool> {
        let (terms, address) = (Self::terms(part, recipe, generation, position), self.address(part));
        let kernels = self.kernels.as_mut().filter(|_| terms.fit())?;
        // SAFETY: a part of a buffer that is the source's again after completion.
        let found = unsafe { kernels.check(address, &terms) };
        Some(self.noted(found)?.is_none())
    }

    /// Overwrites a part with bytes that no content has, so that data that never arrive are not taken for earlier ones.
    pub fn spoil(&mut self, part: BufferPart) {
        let address = self.address(part);
        if part.length == 0 {
            return;
        }
        // SAFETY: a part of a buffer that is the source's before submission; it is waited for.
        let spoiled = unsafe { self.stream.fill(address, SPOILED, part.length) };
        let spoiled = spoiled.and_then(|()| self.stream.wait());
        self.noted(spoiled);
    }

    /// Copies the first `length` bytes of a buffer of the host to that of the device.
    pub fn send(&mut self, slot: u32, length: usize) {
        self.send_part(BufferPart { slot, at: 0, length });
    }

    /// Copies a part of a buffer of the host to that of the device.
    pub fn send_part(&mut self, part: BufferPart) {
        let to = self.address(part);
        let BufferPart { slot, at, length } = part;
        assert!(at + length <= self.arena.slot_bytes());
        if length == 0 {
            return;
        }
        // SAFETY: both buffers are the source's, and have that length; the copy is waited for.
        let begun = unsafe { self.stream.copy_in(to, self.arena.slot_ptr(slot).add(at), length) };
        let sent = begun.and_then(|()| self.stream.wait());
        self.noted(sent);
    }

    /// Copies them the other way.
    pub fn fetch(&mut self, slot: u32, length: usize) {
        self.fetch_part(BufferPart { slot, at: 0, length });
    }

    /// Copies a part the other way.
    pub fn fetch_part(&mut self, part: BufferPart) {
        let from = self.address(part);
        let BufferPart { slot, at, length } = part;
        assert!(at + length <= self.arena.slot_bytes());
        if length == 0 {
            return;
        }
        // SAFETY: as for `send`.
        let begun = unsafe { self.stream.copy_out(self.arena.slot_ptr(slot).add(at), from, length) };
        let fetched = begun.and_then(|()| self.stream.wait());
        self.noted(fetched);
    }
}

/// Options of the memory of buffers that are staged, of a layer whose spec (the type) keeps them in a field `memory`.
#[macro_export]
macro_rules! staged_memory_options {
    ($spec:ty) => {
        &[
            ::workload::option!(
                "memory",
                None,
                "host|pinned|gpu[:N,...]",
                "host",
                Engine,
                "Memory of the buffers: process memory, process memory registered with the GPU driver, or GPU memory (workers are distributed over the GPUs); copies count in the latency",
                |spec, text| {
                    spec.own.get_mut::<$spec>().memory.memory = Some(text.parse()?);
                    Ok(())
                }
            ),
            ::workload::option!(
                "gpu-staging",
                None,
                "pinned|pageable",
                "pinned",
                Engine,
                "Host memory that --memory gpu copies pass through: registered with the GPU driver, or not",
                |spec, text| {
                    let way = ::workload::spec::choice("gpu-staging", text, &::gpu::Staging::NAMED)?;
                    spec.own.get_mut::<$spec>().memory.gpu_staging = Some(way);
                    Ok(())
                }
            ),
            ::workload::option!(
                "gpu-per",
                None,
                "worker|host",
                "worker",
                Engine,
                "How --memory gpu assigns devices: the next one to each worker, or one to each host of a multi-host run",
                |spec, text| {
                    let to = ::workload::spec::choice("gpu-per", text, &::gpu::GpuPer::NAMED)?;
                    spec.own.get_mut::<$spec>().memory.gpu_per = Some(to);
                    Ok(())
                }
            ),
        ]
    };
}
