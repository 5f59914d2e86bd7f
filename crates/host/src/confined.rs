//! Gives up every right of this process: for one that looks into what anybody may have made, or listens to what anybody
//! may say.

use std::io;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getpid, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, capabilities, set_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// The first user id of our own: no account and no container has one as high, and the last is
/// no user. Who shares the user of a process may end it.
const FIRST_UID: u32 = 4_200_000_000;

/// What a process may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Memory, bytes.
    pub memory: u64,
    /// Processor time, s.
    pub cpu_s: Option<u64>,
}

impl Limits {
    /// Holds this process to them. It leaves no core, its memory is not for others of its user, and it ends with the
    /// thread that started it.
    ///
    /// # Errors
    ///
    /// If the kernel refuses one of it.
    pub fn hold(&self) -> io::Result<()> {
        limit(Resource::As, self.memory)?;
        limit(Resource::Core, 0)?;
        if let Some(cpu_s) = self.cpu_s {
            limit(Resource::Cpu, cpu_s)?;
        }
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    }

    /// The same, and goes on without rights: with a user of its own where we may choose one, without capabilities, and
    /// opens no file, no socket and starts no process. For a process of one thread.
    ///
    /// # Errors
    ///
    /// As [`Limits::hold`].
    pub fn confine(&self) -> io::Result<()> {
        for resource in [Resource::Fsize, Resource::Nofile, Resource::Nproc] {
            limit(resource, 0)?;
        }
        become_nobody();
        give_up_rights()?;
        // The change of user takes back what is held to.
        self.hold()
    }
}

/// Drops every capability of this process. No program that it becomes gets one back: not as root, not by a program that
/// changes its user.
///
/// # Errors
///
/// If the kernel refuses.
pub fn give_up_rights() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none)?;
    Ok(set_no_new_privs(true)?)
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    // Nobody without rights may raise what is held to already.
    let most = getrlimit(resource).maximum.map_or(most, |now| now.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Takes a user and a group of its own, where our parent could still end us then. Who is not root cannot, and has no
/// rights to lose by it.
fn become_nobody() {
    if !capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::KILL)) {
        return;
    }
    let own = FIRST_UID.saturating_add(getpid().as_raw_nonzero().get().unsigned_abs());
    let (gid, uid) = (Gid::from_raw(own), Uid::from_raw(own));
    let _ = set_thread_groups(&[]);
    let _ = set_thread_res_gid(gid, gid, gid);
    let _ = set_thread_res_uid(uid, uid, uid);
}
