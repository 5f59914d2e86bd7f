//! A program that is run for every thread of a process.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;

/// Opens a program that walks threads; it runs when the file is read. Before 6.1 it walks those of all processes.
pub(crate) fn walk_threads(program: BorrowedFd<'_>, pid: u32) -> io::Result<File> {
    let mut info = libbpf_sys::bpf_iter_link_info::default();
    info.task.pid = pid;
    // Kernels before 6.1 do not know the process; they refuse (E2BIG, EINVAL) or ignore it.
    let link = link(program, Some(&mut info)).or_else(|_| link(program, None))?;
    // SAFETY: the call takes an open descriptor, which `link` is, and no pointer.
    let fd = unsafe { libbpf_sys::bpf_iter_create(link.as_raw_fd()) };
    owned(fd).map(File::from)
}

fn link(
    program: BorrowedFd<'_>,
    info: Option<&mut libbpf_sys::bpf_iter_link_info>,
) -> io::Result<OwnedFd> {
    let length = info.as_ref().map_or(0, |info| size_of_val(&**info));
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
        iter_info: info.map_or(std::ptr::null_mut(), std::ptr::from_mut),
        iter_info_len: length as u32,
        ..Default::default()
    };
    // SAFETY: `options` and the information that it points to outlive the call, which only reads
    // them; both lengths are those of the types.
    let fd = unsafe {
        libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            0,
            libbpf_sys::BPF_TRACE_ITER,
            &raw const options,
        )
    };
    owned(fd)
}

/// A descriptor that libbpf has just made for us, or the error in its place.
fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: `fd` was just opened, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
