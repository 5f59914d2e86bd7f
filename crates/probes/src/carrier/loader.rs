//! Loads programs, and asks the kernel about them.

use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

use libbpf_rs::{
    Link, Map, MapCore, Object, ObjectBuilder, OpenMapMut, OpenObject, ProgramMut, UprobeOpts,
    libbpf_sys,
};

use waggle_host::Need;

use super::complaint;
use super::plan::bytes_of;
use super::ring::Shape;
use super::skeleton::types;
use super::{CarrierError, RunTime};
use crate::servers::Instance;

/// Where the kernel tells its types.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Says what was attempted and what the kernel answered, with the remedy where one is known.
pub(crate) fn kernel_error(what: &'static str) -> impl Fn(libbpf_rs::Error) -> CarrierError {
    kernel_refuses(what, Need::Program)
}

/// The same of what needs other rights than to load a program.
pub(crate) fn kernel_refuses(
    what: &'static str,
    need: Need,
) -> impl Fn(libbpf_rs::Error) -> CarrierError {
    move |error| {
        let mut why = format!("{error:#}");
        if !Path::new(KERNEL_TYPES).exists() {
            why = format!(
                "the kernel does not tell its types (BTF): {KERNEL_TYPES} is missing; use a kernel \
                 built with CONFIG_DEBUG_INFO_BTF"
            );
        } else if let Some(verifier) = complaint::last() {
            why = format!("the kernel's verifier refuses it: {verifier}");
        } else if error.kind() == libbpf_rs::ErrorKind::PermissionDenied {
            why.push_str(&format!("; {}", need.remedy()));
        }
        CarrierError::Kernel { what, why }
    }
}

/// Reads the bytes of a compiled object; `what` is for messages.
pub(crate) fn open(object: &[u8], what: &'static str) -> Result<OpenObject, CarrierError> {
    // Libbpf wants the bytes aligned, which a fresh allocation is.
    let aligned = object.to_vec();
    ObjectBuilder::default().open_memory(&aligned).map_err(kernel_error(what))
}

/// A program of an object.
pub(crate) fn program<'o>(
    object: &'o Object,
    name: &'static str,
) -> Result<ProgramMut<'o>, CarrierError> {
    let found = object.progs_mut().find(|program| program.name() == name);
    found.ok_or(CarrierError::Kernel { what: name, why: "no such program".into() })
}

/// A map of an object.
pub(crate) fn map<'o>(object: &'o Object, name: &'static str) -> Result<Map<'o>, CarrierError> {
    let found = object.maps().find(|map| map.name() == name);
    found.ok_or(CarrierError::Kernel { what: name, why: "no such map".into() })
}

/// The kernel's statistics of one program of an object.
pub(crate) fn run_time_of(object: &Object, name: &str) -> RunTime {
    let program = object.progs_mut().find(|program| program.name() == name);
    let info = program.and_then(|program| info_of(program.as_fd().as_raw_fd()));
    info.map_or(RunTime::default(), |info| RunTime {
        runs: info.run_cnt,
        time: Duration::from_nanos(info.run_time_ns),
    })
}

/// Sets a breakpoint in one process, at a place in the file of its program; `what` is for messages. Only the kernel opens
/// that file: it reads the page of the place.
pub(crate) fn attach_breakpoint(
    program: &ProgramMut<'_>,
    what: &'static str,
    instance: &Instance,
    place: u64,
    retprobe: bool,
) -> Result<Link, CarrierError> {
    let options = UprobeOpts { retprobe, ..Default::default() };
    let pid = instance.pid.cast_signed();
    let attached = program.attach_uprobe_with_opts(pid, &instance.program, place as usize, options);
    attached.map_err(kernel_refuses(what, Need::Breakpoint))
}

/// Gives the map of the rings its sizes.
pub(super) fn set_shape(map: &mut OpenMapMut<'_>, shape: Shape) -> libbpf_rs::Result<()> {
    map.set_max_entries(shape.rings as u32)?;
    map.set_value_size(shape.value_bytes as u32)
}

/// Writes the layout into the constants of an object.
pub(super) fn set_config(
    map: &mut OpenMapMut<'_>,
    config: &types::config,
) -> Result<(), CarrierError> {
    let config = bytes_of(config);
    let whole = map.initial_value_mut().ok_or(CarrierError::Kernel {
        what: "the layout of the program",
        why: "the object has no constants".into(),
    })?;
    // `cfg` is the only constant of the object.
    whole[..config.len()].copy_from_slice(config);
    Ok(())
}

fn info_of(program: i32) -> Option<libbpf_sys::bpf_prog_info> {
    // SAFETY: the structure consists of integers: zero is a value of it.
    let mut info: libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut length = std::mem::size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most `length` bytes to `info`.
    let failed = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(
            program,
            std::ptr::from_mut(&mut info).cast(),
            &mut length,
        )
    };
    (failed == 0).then_some(info)
}
