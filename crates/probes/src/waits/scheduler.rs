//! Whether the kernel tells how long a thread was off the processor, by its types.

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;

use crate::carrier::{CarrierError, kernel_error};

const WHAT: &str = "the times of the scheduler";
/// The programs account nothing without these: `scheduler_tells` of `parts.bpf.h`.
const MEMBERS: [&str; 2] = ["run_delay", "last_arrival"];

/// Whether this kernel does.
///
/// # Errors
///
/// If it does not.
pub(super) fn check() -> Result<(), CarrierError> {
    let types = Btf::from_vmlinux().map_err(kernel_error(WHAT))?;
    tells(&types).map_err(|why| CarrierError::Kernel { what: WHAT, why })
}

/// Whether threads that sleep may stay in the queues of this kernel (since 6.12).
pub(super) fn delays_sleepers() -> bool {
    let types = Btf::from_vmlinux();
    types.is_ok_and(|types| has_member(&types, "sched_entity", "sched_delayed"))
}

fn has_member(types: &Btf<'_>, name: &str, wanted: &str) -> bool {
    types.type_by_name::<Struct<'_>>(name).is_some_and(|found| {
        found.iter().any(|member| member.name.is_some_and(|name| name == wanted))
    })
}

fn tells(types: &Btf<'_>) -> Result<(), String> {
    match MEMBERS.into_iter().find(|wanted| !has_member(types, "sched_info", wanted)) {
        Some(missing) => Err(format!(
            "sched_info of this kernel has no {missing}; use a kernel built with CONFIG_SCHED_INFO"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::skeleton;

    /// The types of an object stand for those of a kernel: that of the sessions knows no times of the scheduler.
    #[test]
    fn a_kernel_without_the_times_of_the_scheduler_is_told() {
        let sessions = include_bytes!(concat!(env!("OUT_DIR"), "/sessions.bpf.o"));
        let of = |object: &[u8]| {
            // Libbpf wants the bytes aligned, which a fresh allocation is.
            let object = object.to_vec();
            tells(&Btf::from_raw("types", &object).unwrap().unwrap())
        };
        assert_eq!(of(skeleton::OBJECT), Ok(()));
        let why = of(sessions).unwrap_err();
        assert!(why.contains("no run_delay") && why.contains("CONFIG_SCHED_INFO"), "{why}");
        check().unwrap();
    }
}
