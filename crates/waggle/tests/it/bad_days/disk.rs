//! A disk that keeps others waiting.

use std::process::{Command, Stdio};

use tempfile::TempDir;
use waggle_testkit::{Killed, Server, Version};

use crate::watching::Waggle;

/// A process that waits for the disk, again and again.
fn writer(dir: &TempDir) -> Killed {
    let mut writer = Command::new("setpriv");
    let again = "while :; do dd if=/dev/zero of=f bs=4k count=100 oflag=dsync; done";
    writer.args(["--pdeathsig", "KILL", "sh", "-c", again]).current_dir(dir.path());
    Killed(writer.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn waits_for_the_disk_are_told_by_whom_the_kernel_tells_them_of() {
    let server = Server::start(Version::Mariadb114).unwrap();
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let _writer = writer(&dir);
    let mut waggle = Waggle::watch(&server, &["--interval", "500ms"]);
    waggle.wait_for("the waits for the disk", |waggle| {
        waggle.lines().iter().any(|line| {
            let (waits, absent) = (&line["storage_waits"], &line["storage_waits_absent"]);
            assert!(waits.is_null() != absent.is_null(), "{line}");
            let share = waits["share"].as_f64().unwrap_or(-1.0);
            assert!(share <= 1.0, "{waits}");
            match waits["of"].as_str() {
                Some("host") => share > 0.0,
                // The writer is in another one.
                Some(of) => of == "group" && share >= 0.0,
                None => absent.as_str().is_some_and(|why| why.contains("/proc/pressure/io")),
            }
        })
    });
}
