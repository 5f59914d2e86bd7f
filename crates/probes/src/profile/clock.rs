//! The clocks of the processors, each of which runs a program when it ticks (perf_event_open(2)).

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use libbpf_rs::{Link, Object};
use waggle_host::{Need, processors};

use crate::carrier::{self, CarrierError, kernel_error};

/// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_CPU_CLOCK` of `include/uapi/linux/perf_event.h`.
const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
/// Bits of the flags: `disabled`, `exclude_idle`, `freq`.
const FLAGS: u64 = 1 | 1 << 7 | 1 << 10;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// For messages.
const CLOCKS: &str = "the clocks of the processors";

/// The first version of `struct perf_event_attr` (`PERF_ATTR_SIZE_VER0`, 64 bytes): every kernel takes it.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

/// Lets a program run at every tick of every processor that is online.
pub(super) fn attach(
    object: &Object,
    name: &'static str,
    hz: u32,
) -> Result<Vec<Link>, CarrierError> {
    let failed = |error: &io::Error| CarrierError::Kernel { what: CLOCKS, why: why(error) };
    let highest = processors::highest().map_err(|error| failed(&error))?;
    let mut links = Vec::new();
    for processor in 0..=highest {
        let event = match open(processor, hz) {
            Ok(event) => event,
            // It is not online.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
            Err(error) => return Err(failed(&error)),
        };
        let program = carrier::program(object, name)?;
        let link = program.attach_perf_event(event.as_raw_fd()).map_err(kernel_error(CLOCKS))?;
        // The link closes it from now on.
        let _ = event.into_raw_fd();
        links.push(link);
    }
    Ok(links)
}

fn open(processor: usize, hz: u32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: CPU_CLOCK,
        frequency: hz.into(),
        flags: FLAGS,
        ..Attributes::default()
    };
    let processor = i32::try_from(processor).map_err(io::Error::other)?;
    // SAFETY: the kernel reads `size` bytes of the attributes, which outlive the call; the other arguments are numbers:
    // every process, this processor, no group.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            -1_i32,
            processor,
            -1_i32,
            CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the descriptor was just made for us and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What the kernel said, with the remedy where one is known.
fn why(error: &io::Error) -> String {
    let setting = |name: &str| {
        let value = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        format!("kernel.{name} is {}", value.trim())
    };
    let remedy = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            format!("{}; {}", Need::Sample.remedy(), setting("perf_event_paranoid"))
        }
        Some(libc::EINVAL) => {
            format!("a lower rate may be allowed; {}", setting("perf_event_max_sample_rate"))
        }
        Some(libc::ENOENT | libc::ENOSYS) => "this kernel has no perf events".to_owned(),
        Some(libc::EMFILE) => "raise the limit of open files (ulimit -n)".to_owned(),
        _ => return format!("perf_event_open: {error}"),
    };
    format!("perf_event_open: {error}; {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_the_attributes_by_their_size() {
        assert_eq!(size_of::<Attributes>(), 64);
        assert_eq!(std::mem::offset_of!(Attributes, flags), 40);
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        let of_rights = Need::Sample.remedy();
        for (number, words) in [
            (libc::EACCES, of_rights.as_str()),
            (libc::EPERM, "kernel.perf_event_paranoid is "),
            (libc::EINVAL, "kernel.perf_event_max_sample_rate is "),
            (libc::EMFILE, "ulimit -n"),
            (libc::ENOENT, "no perf events"),
        ] {
            let why = why(&io::Error::from_raw_os_error(number));
            assert!(why.contains(words), "{why}");
        }
    }
}
