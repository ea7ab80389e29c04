//! Devices, and the context that work on one takes place in.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use driver::{Error, ErrorKind};
use parking_lot::{Mutex, MutexGuard};

use crate::choice::GpuPer;
use crate::cuda::{ATTRIBUTE_PCI_BUS, ATTRIBUTE_PCI_DEVICE, ATTRIBUTE_PCI_DOMAIN, Api, Handle};
use crate::watch::WorkerNotes;

/// A device as the driver lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its number (`CUDA_VISIBLE_DEVICES` decides on it).
    pub number: u32,
    /// Its name: `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Its place on PCIe: `0000:1a:00.0`.
    pub pci_address: String,
    /// The node of processors and memory that it is attached to; none where the machine has one, or does not say.
    pub numa_node: Option<u32>,
}

impl Device {
    /// All devices that this process may use.
    ///
    /// # Errors
    /// When libcuda is missing, or the driver does not start.
    pub fn all() -> Result<Vec<Self>, Error> {
        let api = Api::ready()?;
        let mut count = 0;
        // SAFETY: a place for the number.
        api.check(unsafe { (api.cuDeviceGetCount)(&raw mut count) }, "cannot count the devices")?;
        (0..count).map(|number| Self::read(api, number)).collect()
    }

    fn read(api: &'static Api, number: c_int) -> Result<Self, Error> {
        let handle = handle_of(api, number)?;
        let mut name = [0u8; 256];
        // SAFETY: room for as many bytes as it is told, the last of them stays 0.
        let code = unsafe {
            (api.cuDeviceGetName)(name.as_mut_ptr().cast::<c_char>(), name.len() as c_int - 1, handle)
        };
        api.check(code, "cannot read the name of a device")?;
        let mut memory_bytes = 0;
        // SAFETY: a place for the number.
        let code = unsafe { (api.cuDeviceTotalMem_v2)(&raw mut memory_bytes, handle) };
        api.check(code, "cannot read the memory of a device")?;
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: a place for the number.
            let code = unsafe { (api.cuDeviceGetAttribute)(&raw mut value, attribute, handle) };
            api.check(code, "cannot read an attribute of a device").map(|()| value)
        };
        let pci_address = format!(
            "{:04x}:{:02x}:{:02x}.0",
            attribute(ATTRIBUTE_PCI_DOMAIN)?,
            attribute(ATTRIBUTE_PCI_BUS)?,
            attribute(ATTRIBUTE_PCI_DEVICE)?
        );
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        Ok(Self {
            number: number as u32,
            name: String::from_utf8_lossy(&name[..length]).into_owned(),
            memory_bytes: memory_bytes as u64,
            numa_node: numa_node(&pci_address),
            pci_address,
        })
    }
}

/// Whether a device reaches the memory of another without the host.
pub(crate) fn can_access_peer(from: u32, to: u32) -> Result<bool, Error> {
    let api = Api::ready()?;
    let (from, to) = (handle_of(api, from as c_int)?, handle_of(api, to as c_int)?);
    let mut can = 0;
    // SAFETY: a place for the answer.
    let code = unsafe { (api.cuDeviceCanAccessPeer)(&raw mut can, from, to) };
    api.check(code, "cannot read whether devices reach each other").map(|()| can != 0)
}

fn handle_of(api: &Api, number: c_int) -> Result<c_int, Error> {
    let mut handle = 0;
    // SAFETY: a place for the handle.
    let code = unsafe { (api.cuDeviceGet)(&raw mut handle, number) };
    api.check(code, "cannot open a device").map_err(|error| error.with("device", number))?;
    Ok(handle)
}

/// Node of a device on PCIe; the kernel says -1 where there is but one.
fn numa_node(pci_address: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/sys/bus/pci/devices/{pci_address}/numa_node")).ok()?;
    text.trim().parse().ok()
}

/// The node of the processor that this thread runs on.
pub(crate) fn node_of_thread() -> Option<u32> {
    let (mut processor, mut node) = (0u32, 0u32);
    // SAFETY: places for two numbers.
    let code = unsafe {
        libc::syscall(
            libc::SYS_getcpu,
            &raw mut processor,
            &raw mut node,
            std::ptr::null_mut::<libc::c_void>(),
        )
    };
    (code == 0).then_some(node)
}

/// A worker's part of a device, until this is dropped.
#[derive(Debug)]
pub struct Share {
    device: Device,
}

/// Workers on each device that was not named for them, by its number.
static WORKERS: Mutex<BTreeMap<u32, usize>> = Mutex::new(BTreeMap::new());

impl Share {
    /// The device of worker `worker`. Devices of `numbers` are dealt out in that order; where there is none, all are. `per` worker these are the nearest, on
    /// the NUMA node of this thread's processor and then by their distance to the storage that `notes` names, and among them the one with the fewest workers.
    ///
    /// # Errors
    /// When there is no device, or none of a number.
    pub fn of_worker(numbers: &[u32], per: GpuPer, worker: u32, notes: &WorkerNotes) -> Result<Self, Error> {
        let all = Device::all()?;
        let chosen = choose(&all, numbers)?;
        let in_turn = |devices: &[&Device]| devices[worker as usize % devices.len()].clone();
        let mut workers = WORKERS.lock();
        let device = match (numbers.is_empty(), per) {
            (true, GpuPer::Worker) => {
                least_used(&nearest(&chosen, node_of_thread(), notes), worker, &workers)
            }
            (true, GpuPer::Host) => in_turn(&nearest(&chosen, None, notes)),
            (false, _) => in_turn(&chosen),
        };
        *workers.entry(device.number).or_default() += 1;
        notes.note(&device, &all);
        Ok(Self { device })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(workers) = WORKERS.lock().get_mut(&self.device.number) {
            *workers -= 1;
        }
    }
}

/// Those on a NUMA node, where it is known, and of these the nearest to the storage.
fn nearest<'a>(devices: &[&'a Device], node: Option<u32>, notes: &WorkerNotes) -> Vec<&'a Device> {
    let far = |device: &Device| {
        let is_on_other_node = device.numa_node.zip(node).is_some_and(|(device, node)| device != node);
        (is_on_other_node, notes.distance_to_storage(device))
    };
    let nearest = devices.iter().map(|device| far(device)).min();
    devices.iter().copied().filter(|device| Some(far(device)) == nearest).collect()
}

/// The one with the fewest workers; the first behind the worker's own turn, so that processes that do not know of each other take different ones.
fn least_used(devices: &[&Device], worker: u32, workers: &BTreeMap<u32, usize>) -> Device {
    let first = worker as usize % devices.len();
    let in_turn = devices[first..].iter().chain(&devices[..first]);
    let used = |device: &&&Device| workers.get(&device.number).copied().unwrap_or(0);
    in_turn.min_by_key(used).map_or_else(|| devices[first].clone(), |device| (**device).clone())
}

fn choose<'a>(all: &'a [Device], numbers: &[u32]) -> Result<Vec<&'a Device>, Error> {
    if all.is_empty() {
        return Err(Error::new(ErrorKind::Unsupported, "gpu", "no GPU found")
            .remedy("check nvidia-smi and CUDA_VISIBLE_DEVICES, or leave out --memory"));
    }
    if numbers.is_empty() {
        return Ok(all.iter().collect());
    }
    let find = |number: &u32| {
        all.iter().find(|device| device.number == *number).ok_or_else(|| {
            let there: Vec<_> = all.iter().map(|device| device.number.to_string()).collect();
            Error::usage("gpu", format!("GPU {number} does not exist"))
                .remedy(format!("use one of {}", there.join(", ")))
        })
    };
    numbers.iter().map(find).collect()
}

/// The primary context of a device, which all workers on it share. It goes with the last of them.
#[derive(Debug)]
pub struct Context {
    pub(crate) api: &'static Api,
    device: Device,
    device_handle: c_int,
    handle: Handle,
    workers: AtomicUsize,
    /// Turns of copies to the device and from it.
    lanes: [[Mutex<()>; LANES]; 2],
}

/// Large copies one way that wait for their end at the same time. Two use the way in full: others sleep until it is their turn, where they would all
/// poll, each for longer. Small ones wait for the way's latency more than for their bytes, and gain by being many (bench/gpu.py, elbencho).
const LANES: usize = 2;
/// Copies from this size on are large, in bytes.
const LARGE_COPY_BYTES: usize = 512 << 10;

// SAFETY: contexts may be current on several threads at once.
unsafe impl Send for Context {}
// SAFETY: as for Send.
unsafe impl Sync for Context {}

impl Context {
    /// The context of `device`.
    ///
    /// # Errors
    /// When the driver refuses, as where another process has the device for itself.
    pub fn of(device: &Device) -> Result<Arc<Self>, Error> {
        static OPEN: Mutex<BTreeMap<u32, std::sync::Weak<Context>>> = Mutex::new(BTreeMap::new());
        // One at a time: the first takes its time, and the others need not do it again.
        let mut open = OPEN.lock();
        if let Some(context) = open.get(&device.number).and_then(std::sync::Weak::upgrade) {
            return Ok(context);
        }
        let api = Api::ready()?;
        let device_handle = handle_of(api, device.number as c_int)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a place for the handle.
        let code = unsafe { (api.cuDevicePrimaryCtxRetain)(&raw mut handle, device_handle) };
        api.check(code, "cannot use the device").map_err(|error| error.with("device", &device.name))?;
        let context = Arc::new(Self {
            api,
            device: device.clone(),
            device_handle,
            handle,
            workers: AtomicUsize::new(0),
            lanes: Default::default(),
        });
        open.insert(device.number, Arc::downgrade(&context));
        Ok(context)
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The turn of a copy of `bytes` by worker `worker`, to the device or from it; held until the copy is done. Small ones need none.
    #[inline]
    pub(crate) fn turn(&self, is_in: bool, worker: usize, bytes: usize) -> Option<MutexGuard<'_, ()>> {
        (bytes >= LARGE_COPY_BYTES).then(|| self.lanes[usize::from(is_in)][worker % LANES].lock())
    }

    /// Number of the next worker on the device.
    pub(crate) fn next_worker(&self) -> usize {
        self.workers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn number(&self) -> u32 {
        self.device.number
    }

    /// Makes it the current one of this thread: calls of the library are about it from now on.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn enter(&self) -> Result<(), Error> {
        // SAFETY: a context of ours.
        let code = unsafe { (self.api.cuCtxSetCurrent)(self.handle) };
        self.api.check(code, "cannot use the device on this thread")
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained by us; nothing of it is left, since all of it holds the context.
        unsafe { (self.api.cuDevicePrimaryCtxRelease_v2)(self.device_handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(number: u32) -> Device {
        Device {
            number,
            name: "G".into(),
            memory_bytes: 1,
            pci_address: "0000:00:00.0".into(),
            numa_node: None,
        }
    }

    #[test]
    fn workers_take_the_device_with_the_fewest_of_them() {
        let all = [device(0), device(1), device(2)];
        let of = |numbers: &[usize]| numbers.iter().map(|number| &all[*number]).collect::<Vec<_>>();
        let mut workers = BTreeMap::new();
        let mut took = Vec::new();
        // Workers 0, 2 and 4 are on the node of devices 0 and 2.
        for worker in [0, 2, 4] {
            let device = least_used(&of(&[0, 2]), worker, &workers).number;
            *workers.entry(device).or_default() += 1;
            took.push(device);
        }
        assert_eq!(took, [0, 2, 0]);
        assert_eq!(least_used(&of(&[0, 1, 2]), 5, &BTreeMap::new()).number, 2, "its own turn");
    }

    #[test]
    fn devices_of_another_node_are_left_to_its_workers() {
        let on = |number, node| Device { numa_node: Some(node), ..device(number) };
        let all = [on(0, 0), on(1, 0), on(2, 1)];
        let of_node = |node| {
            let all: Vec<_> = all.iter().collect();
            nearest(&all, node, &WorkerNotes::default())
                .iter()
                .map(|device| device.number)
                .collect::<Vec<_>>()
        };
        assert_eq!([of_node(Some(0)), of_node(Some(1))], [vec![0, 1], vec![2]]);
        assert_eq!(of_node(None), [0, 1, 2]);
        assert_eq!(of_node(Some(7)), [0, 1, 2], "none is near");
    }

    #[test]
    fn devices_are_those_that_were_named() {
        let all = [device(0), device(1), device(2)];
        let numbers = |wanted: &[u32]| {
            choose(&all, wanted).map(|chosen| chosen.iter().map(|device| device.number).collect::<Vec<_>>())
        };
        assert_eq!(numbers(&[]).expect("all"), [0, 1, 2]);
        assert_eq!(numbers(&[2, 0]).expect("two"), [2, 0]);
        let error = numbers(&[3]).expect_err("there is none");
        assert_eq!(
            (error.exit_code(), error.to_string()),
            (2, "gpu: GPU 3 does not exist; use one of 0, 1, 2".into())
        );
        assert_eq!(choose(&[], &[]).expect_err("none").exit_code(), 1);
    }
}
