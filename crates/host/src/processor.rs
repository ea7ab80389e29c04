//! The processors: model, cores, sockets, frequencies, hypervisor.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{source, topology};

/// Facts about the processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Processor {
    /// Model name.
    pub model: Option<String>,
    /// Logical cores that are online.
    pub logical_cores: Option<u32>,
    /// Logical cores that this process may run on.
    pub allowed_cores: Option<Vec<u32>>,
    /// Processor packages.
    pub sockets: Option<u32>,
    /// Whether cores run more than one thread.
    pub smt: Option<bool>,
    /// Frequency governors in use: one unless cores differ.
    pub governors: Vec<String>,
    /// Driver of frequency scaling.
    pub frequency_driver: Option<String>,
    /// Lowest of the cores' frequencies when read, in hertz.
    pub frequency_now_hz_min: Option<u64>,
    /// Highest of the cores' frequencies when read, in hertz.
    pub frequency_now_hz_max: Option<u64>,
    /// Highest frequency that the hardware offers, in hertz.
    pub frequency_limit_hz: Option<u64>,
    /// Whether the processor may run above its base frequency.
    pub boost: Option<bool>,
    /// Whether this is a virtual machine.
    pub virtualised: Option<bool>,
    /// The hypervisor's name.
    pub hypervisor: Option<String>,
}

/// Facts of the processors from `/proc/cpuinfo`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuInfo {
    /// Model name of the first processor.
    pub model: Option<String>,
    /// Logical processors listed.
    pub logical_cores: u32,
    /// Distinct physical ids.
    pub sockets: Option<u32>,
    /// Whether a package has more threads than cores.
    pub smt: Option<bool>,
    /// Frequencies of the processors, in hertz.
    pub frequencies_hz: Vec<u64>,
    /// Whether a hypervisor says that it is there; `None` where flags are not listed.
    pub hypervisor: Option<bool>,
}

/// Parses `/proc/cpuinfo`.
#[must_use]
pub fn parse_cpuinfo(text: &str) -> CpuInfo {
    let mut info = CpuInfo::default();
    let mut packages = BTreeSet::new();
    let (mut siblings, mut cores) = (None, None);
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key.trim() {
            "processor" if value.parse::<u32>().is_ok() => info.logical_cores += 1,
            "model name" | "cpu model" if info.model.is_none() => info.model = Some(value.to_owned()),
            "physical id" => {
                packages.insert(value.to_owned());
            }
            "siblings" => siblings = value.parse::<u32>().ok(),
            "cpu cores" => cores = value.parse::<u32>().ok(),
            "cpu MHz" => info.frequencies_hz.extend(parse_megahertz(value)),
            "flags" if info.hypervisor.is_none() => {
                info.hypervisor = Some(value.split_whitespace().any(|flag| flag == "hypervisor"));
            }
            _ => {}
        }
    }
    info.sockets = (!packages.is_empty()).then_some(packages.len() as u32);
    info.smt = siblings.zip(cores).map(|(siblings, cores)| siblings > cores);
    info
}

fn parse_megahertz(text: &str) -> Option<u64> {
    let megahertz: f64 = text.parse().ok()?;
    (megahertz > 0.0 && megahertz < 1e6).then(|| (megahertz * 1e6).round() as u64)
}

/// The processors of this machine.
#[must_use]
pub fn processor() -> Processor {
    let info = source::text("/proc/cpuinfo").map(|text| parse_cpuinfo(&text)).unwrap_or_default();
    let scaling = scaling();
    let frequencies =
        if scaling.frequencies_hz.is_empty() { &info.frequencies_hz } else { &scaling.frequencies_hz };
    let online = topology::online_cores().map(|cores| cores.len() as u32);
    Processor {
        model: info.model,
        logical_cores: online.or((info.logical_cores > 0).then_some(info.logical_cores)),
        allowed_cores: topology::current_affinity().ok(),
        sockets: info.sockets.or_else(sockets),
        smt: source::switch("/sys/devices/system/cpu/smt/active").or(info.smt),
        governors: scaling.governors.into_iter().collect(),
        frequency_driver: source::text("/sys/devices/system/cpu/cpufreq/policy0/scaling_driver"),
        frequency_now_hz_min: frequencies.iter().min().copied(),
        frequency_now_hz_max: frequencies.iter().max().copied(),
        frequency_limit_hz: scaling.limit_hz,
        boost: boost(),
        virtualised: info.hypervisor,
        hypervisor: hypervisor(info.hypervisor),
    }
}

#[derive(Default)]
struct Scaling {
    governors: BTreeSet<String>,
    frequencies_hz: Vec<u64>,
    limit_hz: Option<u64>,
}

/// One policy covers the cores that change frequency together.
fn scaling() -> Scaling {
    let mut scaling = Scaling::default();
    let directory = "/sys/devices/system/cpu/cpufreq";
    for policy in source::names(directory).iter().filter(|name| name.starts_with("policy")) {
        let kilohertz = |file: &str| source::value::<u64>(format!("{directory}/{policy}/{file}"));
        scaling.governors.extend(source::text(format!("{directory}/{policy}/scaling_governor")));
        scaling.frequencies_hz.extend(kilohertz("scaling_cur_freq").map(|frequency| frequency * 1000));
        scaling.limit_hz =
            scaling.limit_hz.max(kilohertz("cpuinfo_max_freq").map(|frequency| frequency * 1000));
    }
    scaling
}

fn boost() -> Option<bool> {
    source::switch("/sys/devices/system/cpu/cpufreq/boost")
        .or_else(|| source::switch("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| !off))
}

fn sockets() -> Option<u32> {
    let packages: BTreeSet<u32> = topology::online_cores()?
        .into_iter()
        .filter_map(|core| {
            source::value(format!("/sys/devices/system/cpu/cpu{core}/topology/physical_package_id"))
        })
        .collect();
    (!packages.is_empty()).then_some(packages.len() as u32)
}

/// The name that the hypervisor gives of itself, or what the firmware says.
fn hypervisor(virtualised: Option<bool>) -> Option<String> {
    if virtualised == Some(false) {
        return None;
    }
    hypervisor_leaf(virtualised).or_else(|| source::text("/sys/hypervisor/type")).or_else(|| {
        let vendor = source::text("/sys/class/dmi/id/sys_vendor")?;
        ["QEMU", "Amazon EC2", "Google", "VMware", "Xen", "innotek", "Microsoft"]
            .iter()
            .any(|known| vendor.starts_with(known) && virtualised == Some(true))
            .then_some(vendor)
    })
}

/// Leaf 0x40000000 names the hypervisor in twelve letters (Linux Documentation/virt/kvm/x86/cpuid.rst).
#[cfg(target_arch = "x86_64")]
fn hypervisor_leaf(virtualised: Option<bool>) -> Option<String> {
    if virtualised != Some(true) {
        return None;
    }
    let leaf = core::arch::x86_64::__cpuid(0x4000_0000);
    let letters: Vec<u8> =
        [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    let name = String::from_utf8_lossy(&letters).trim_matches(['\0', ' ']).to_owned();
    match name.as_str() {
        "" => None,
        "KVMKVMKVM" => Some("KVM".to_owned()),
        "Microsoft Hv" => Some("Hyper-V".to_owned()),
        "VMwareVMware" => Some("VMware".to_owned()),
        "XenVMMXenVMM" => Some("Xen".to_owned()),
        "TCGTCGTCGTCG" => Some("QEMU".to_owned()),
        _ => Some(name),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_leaf(_virtualised: Option<bool>) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cpuinfo_known_answers() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2596.122\nphysical id\t: 0\nsiblings\t: 4\n\
                    cpu cores\t: 2\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\nmodel name\t: other\n\
                    cpu MHz\t\t: 1000.000\nphysical id\t: 1\nflags\t\t: fpu\n";
        let info = parse_cpuinfo(text);
        assert_eq!(info.model.as_deref(), Some("AMD EPYC"));
        assert_eq!((info.logical_cores, info.sockets, info.smt), (2, Some(2), Some(true)));
        assert_eq!(info.frequencies_hz, [2_596_122_000, 1_000_000_000]);
        assert_eq!(info.hypervisor, Some(true));
        let arm = parse_cpuinfo("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n");
        assert_eq!((arm.logical_cores, arm.sockets, arm.smt, arm.hypervisor), (1, None, None, None));
        assert_eq!(parse_cpuinfo("cpu MHz : -1\ncpu MHz : nan\nprocessor : x"), CpuInfo::default());
    }

    #[test]
    fn this_machine_has_cores() {
        let processor = processor();
        assert_eq!(processor.logical_cores, topology::online_cores().map(|cores| cores.len() as u32));
        assert!(!processor.allowed_cores.unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,200}", lines in "((processor|flags|cpu MHz|siblings) ?: [0-9a-z.-]{0,12}\n){0,8}") {
            let _ = parse_cpuinfo(&text);
            let _ = parse_cpuinfo(&lines);
        }
    }
}
