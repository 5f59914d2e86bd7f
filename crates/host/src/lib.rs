//! What the system says about processes, processors, memory and time: `/proc`, `/sys`, control groups and clocks. Each
//! fact has one function.
#![forbid(unsafe_code)]

mod call_filter;
mod child;
mod clock;
mod confined;
mod control_group;
mod file_at;
mod kernel_functions;
pub mod memory;
mod meter;
mod process;
pub mod processors;
mod queues;
mod rights;
mod sock_diag;
mod sockets;
mod thread_call;
mod time_namespace;
mod waited;
mod whole_state;

pub use child::start_child;
pub use clock::{monotonic_ns, thread_cpu_ns, wall_ns};
pub use confined::{Limits, give_up_rights};
pub use control_group::{Quota, StoragePressure};
pub use file_at::FileAt;
pub use kernel_functions::KernelFunctions;
pub use meter::{HostTime, Meter, MeterError, ProcessorTimes, own_cpu};
pub use process::{Confinement, Process, Storage, User, pids, user_id, user_name};
pub use queues::{NoQueues, Queues, UnreadSocket};
pub use rights::{Need, Right, Rights};
pub use sockets::{Endpoint, Listener};
pub use thread_call::ThreadCall;
pub use waited::Waited;

/// Release of the kernel (uname(2)).
pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The first `N` numbers of a release of the kernel; `None` where it has fewer in front of its words.
pub fn release_numbers<const N: usize>(release: &str) -> Option<[u32; N]> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|it| it.parse().ok());
    let mut found = [0; N];
    for number in &mut found {
        *number = numbers.next()?;
    }
    Some(found)
}

/// The value of a line `name: value`, as `status`, `cpuinfo` and others have them.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        Some(line.strip_prefix(name)?.trim_ascii_start().strip_prefix(':')?.trim_ascii())
    })
}

/// The same of a line `name: number kB`, bytes.
fn bytes(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = value(text, name)?.strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_release_end_where_its_words_begin() {
        assert_eq!(release_numbers("6.12.48+deb13-amd64"), Some([6, 12, 48]));
        assert_eq!(release_numbers("6.11.0-rc1"), Some([6, 11]));
        assert_eq!(release_numbers("6.11-rc1"), None::<[u32; 3]>);
        assert_eq!(release_numbers("of my own 6"), None::<[u32; 1]>);
    }

    #[test]
    fn a_line_is_found_by_its_whole_name() {
        let status = "Name:\tmysqld\nNSpid:\t77\t1\nPid:\t77\nVmHWM:\t    12 kB\nUid";
        assert_eq!(value(status, "Pid"), Some("77"));
        assert_eq!(value(status, "NSpid"), Some("77\t1"));
        assert_eq!(value(status, "Uid"), None);
        assert_eq!(value("model name\t: Z 80 @ 4 MHz\n", "model name"), Some("Z 80 @ 4 MHz"));
        assert_eq!((bytes(status, "VmHWM"), bytes(status, "Pid")), (Some(12 << 10), None));
    }
}
