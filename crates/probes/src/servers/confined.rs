//! Gives up every right of this process: for one that looks into what anybody may have made.

use std::io;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getpid, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

/// Processor time, s; the largest server takes a tenth of the first.
pub(super) const CPU_MAX_S: u64 = 5;
/// Memory, bytes.
pub(super) const MEMORY_MAX: u64 = 512 << 20;
/// The first user id of our own: no account and no container has one as high, and the last is
/// no user. Who shares the user of a process may end it.
const FIRST_UID: u32 = 4_200_000_000;

/// Goes on without rights: with a user of its own where we may choose one, without capabilities, without a file, a
/// socket or a process more than there are, and with little time and memory beside `mapped` bytes of files. It ends with
/// its parent.
///
/// # Errors
///
/// If the kernel refuses one of it.
pub(super) fn confine(mapped: u64) -> io::Result<()> {
    let limits = [
        (Resource::Cpu, CPU_MAX_S),
        (Resource::As, MEMORY_MAX.saturating_add(mapped)),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, 0),
        (Resource::Nproc, 0),
    ];
    for (resource, limit) in limits {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    become_nobody();
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none)?;
    set_no_new_privs(true)?;
    // The change of user takes it back.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// Takes a user and a group of its own. Who is not root cannot, and has no rights to lose by it.
fn become_nobody() {
    let own = FIRST_UID.saturating_add(getpid().as_raw_nonzero().get().unsigned_abs());
    let (gid, uid) = (Gid::from_raw(own), Uid::from_raw(own));
    let _ = set_thread_groups(&[]);
    let _ = set_thread_res_gid(gid, gid, gid);
    let _ = set_thread_res_uid(uid, uid, uid);
}
