//! The rights of this process (capabilities(7)), and which of them it lacks for what the kernel refused.

use std::path::Path;
use std::{fs, io};

use crate::value;

/// A right, by its number in `include/uapi/linux/capability.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// `CAP_DAC_OVERRIDE`
    DacOverride = 1,
    /// `CAP_DAC_READ_SEARCH`
    DacReadSearch = 2,
    /// `CAP_SYS_PTRACE`
    SysPtrace = 19,
    /// `CAP_SYS_ADMIN`
    SysAdmin = 21,
    /// `CAP_SYS_NICE`
    SysNice = 23,
    /// `CAP_PERFMON`
    Perfmon = 38,
    /// `CAP_BPF`
    Bpf = 39,
}

impl Right {
    /// As capabilities(7) writes it.
    pub fn name(self) -> &'static str {
        match self {
            Right::DacOverride => "CAP_DAC_OVERRIDE",
            Right::DacReadSearch => "CAP_DAC_READ_SEARCH",
            Right::SysPtrace => "CAP_SYS_PTRACE",
            Right::SysAdmin => "CAP_SYS_ADMIN",
            Right::SysNice => "CAP_SYS_NICE",
            Right::Perfmon => "CAP_PERFMON",
            Right::Bpf => "CAP_BPF",
        }
    }

    /// The right that includes it.
    fn within(self) -> Option<Right> {
        match self {
            Right::DacReadSearch => Some(Right::DacOverride),
            Right::Perfmon | Right::Bpf => Some(Right::SysAdmin),
            _ => None,
        }
    }
}

/// The rights that a process holds.
#[derive(Clone, Copy, Debug)]
pub struct Rights(u64);

impl Rights {
    /// Those of this process; `None` where `/proc` does not tell them.
    pub fn below(proc_root: &Path) -> Option<Rights> {
        let status = fs::read(proc_root.join("self/status")).ok()?;
        let held = u64::from_str_radix(value(&String::from_utf8_lossy(&status), "CapEff")?, 16);
        Some(Rights(held.ok()?))
    }

    /// The held right that gives this one: itself, or one that includes it.
    pub fn by(self, right: Right) -> Option<Right> {
        let has = |right: &Right| self.0 >> *right as u32 & 1 == 1;
        Some(right).filter(has).or_else(|| right.within().filter(has))
    }
}

/// What the kernel can refuse, by the rights that it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To see a process of another user: its map, and the links of its folder in `/proc`.
    Look,
    /// To open a file of such a process that is not for everybody: its memory, its program of mode 0750.
    Open,
    /// To make a place in the kernel that programs share.
    Map,
    /// To load a program into the kernel.
    Program,
    /// To load programs, and to see the processes of others with them.
    Watch,
    /// To count events of the processor and to take samples.
    Sample,
    /// To ask another network than ours (setns(2)).
    Network,
    /// To set a breakpoint in a process: with `CAP_PERFMON`, and since the middle of 2025 only with `CAP_SYS_ADMIN`.
    Breakpoint,
}

impl Need {
    fn rights(self) -> &'static [Right] {
        match self {
            Need::Look => &[Right::SysPtrace],
            Need::Open => &[Right::SysPtrace, Right::DacReadSearch],
            Need::Map => &[Right::Bpf],
            Need::Program => &[Right::Bpf, Right::Perfmon],
            Need::Watch => &[Right::Bpf, Right::Perfmon, Right::SysPtrace],
            Need::Network => &[Right::SysAdmin],
            Need::Sample => &[Right::Perfmon],
            Need::Breakpoint => &[Right::Perfmon, Right::SysAdmin],
        }
    }

    /// What helps who was refused this: the rights that are not held.
    pub fn remedy(self) -> String {
        self.remedy_with(Rights::below(Path::new("/proc")))
    }

    /// What the system said, with the remedy where it refused this for want of a right.
    pub fn told(self, error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::PermissionDenied => format!("{error}; {}", self.remedy()),
            _ => error.to_string(),
        }
    }

    fn remedy_with(self, held: Option<Rights>) -> String {
        let Some(held) = held else {
            return "run as root (which rights are held is not known: /proc/self/status)"
                .to_owned();
        };
        let lacking = self.rights().iter().filter(|right| held.by(**right).is_none());
        let lacking: Vec<&str> = lacking.map(|right| right.name()).collect();
        match lacking.is_empty() {
            false => format!("run as root, or with {}: not held here", lacking.join(", ")),
            true => "all rights that this needs are held: something else forbids it, as the kernel itself \
                     (lockdown), a security module, seccomp or a user namespace"
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(rights: &[Right]) -> Option<Rights> {
        Some(Rights(rights.iter().fold(0, |held, right| held | 1 << *right as u32)))
    }

    #[test]
    fn a_remedy_names_what_the_call_needs_and_what_is_not_held() {
        use Right::{Bpf, DacOverride, DacReadSearch, Perfmon, SysAdmin, SysNice, SysPtrace};
        let of_guide = [Bpf, Perfmon, SysPtrace, SysNice];
        for (need, rights, named) in [
            (Need::Look, &[][..], "CAP_SYS_PTRACE"),
            (Need::Open, &[], "CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH"),
            (Need::Open, &of_guide, "CAP_DAC_READ_SEARCH"),
            (Need::Map, &[Perfmon], "CAP_BPF"),
            (Need::Program, &[Bpf], "CAP_PERFMON"),
            (Need::Watch, &[SysAdmin], "CAP_SYS_PTRACE"),
            (Need::Network, &of_guide, "CAP_SYS_ADMIN"),
            (Need::Sample, &[Bpf], "CAP_PERFMON"),
            (Need::Breakpoint, &[], "CAP_PERFMON, CAP_SYS_ADMIN"),
            (Need::Breakpoint, &of_guide, "CAP_SYS_ADMIN"),
        ] {
            let remedy = need.remedy_with(held(rights));
            assert_eq!(remedy, format!("run as root, or with {named}: not held here"), "{need:?}");
        }
        for (need, rights) in [
            (Need::Open, &[SysPtrace, DacReadSearch][..]),
            (Need::Open, &[SysPtrace, DacOverride]),
            (Need::Program, &of_guide),
            (Need::Breakpoint, &[SysAdmin]),
        ] {
            let remedy = need.remedy_with(held(rights));
            assert!(remedy.starts_with("all rights that this needs are held"), "{remedy}");
            assert!(!remedy.contains("CAP_") && !remedy.contains("run as root"), "{remedy}");
        }
        assert!(Need::Look.remedy_with(None).contains("run as root"));
    }

    #[test]
    fn only_a_refusal_has_a_remedy_of_rights() {
        let refused = Need::Look.told(&io::Error::from_raw_os_error(13));
        assert!(refused.contains("(os error 13); "), "{refused}");
        let other = Need::Look.told(&io::Error::from_raw_os_error(5));
        assert!(other.ends_with("(os error 5)"), "{other}");
    }

    #[test]
    fn the_rights_of_this_process_can_be_read() {
        assert!(Rights::below(Path::new("/proc")).is_some());
        assert!(Rights::below(Path::new("/none")).is_none());
    }
}
