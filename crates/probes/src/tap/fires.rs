//! Tests whether an attached hook fires.
//!
//! The compiler can inline a kernel function that the type information still lists. A program
//! attached to it never runs, and nothing says so. So waggle sends something itself and looks
//! whether the hook saw it.

use std::io::{IoSlice, Write};
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use crate::carrier::RunTimeStatistics;

/// The ways in which a server may send.
const SENDS: u64 = 3;

/// Sends once in each way and compares how often the program ran, as `runs` reads it from the
/// kernel's statistics. Where those cannot be had, nothing is claimed.
///
/// # Errors
///
/// In words, if the program did not run for each send.
pub(super) fn on_every_send(runs: impl Fn() -> u64) -> Result<(), String> {
    let Ok(_statistics) = RunTimeStatistics::enable() else { return Ok(()) };
    let before = runs();
    send_in_every_way().map_err(|error| format!("a test send failed: {error}"))?;
    let seen = runs().saturating_sub(before);
    if seen >= SENDS {
        return Ok(());
    }
    Err(format!("it is attached but saw {seen} of {SENDS} test sends; this kernel inlines it"))
}

fn send_in_every_way() -> std::io::Result<()> {
    let (mut here, _there) = UnixStream::pair()?;
    send(&here, b"1", SendFlags::empty())?;
    here.write_all(b"2")?;
    let mut no_ancillary = SendAncillaryBuffer::default();
    sendmsg(&here, &[IoSlice::new(b"3")], &mut no_ancillary, SendFlags::empty())?;
    Ok(())
}
