//! An output that stalls, and one whose disk is full.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::OFlags;
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::Signal;
use serde_json::Value;
use waggle_testkit::{Server, Version};

use crate::load;
use crate::watching::{Ended, Waggle, lines};

/// Watches every 100 ms, with its standard output where the shell sends it.
fn watch(server: &Server, to: &Path, arguments: &[&str]) -> Waggle {
    let redirected = format!("exec \"$@\" > {}", to.display());
    let pid = server.pid().to_string();
    let watch = ["watch", "--json", "--pid", &pid, "--interval", "100ms"];
    Waggle::through(&["sh", "-c", &redirected, "sh"], &[&watch, arguments].concat())
}

/// A pipe that holds little, and whose reader never waits.
fn narrow_pipe(path: &Path) -> File {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let reader = File::options().read(true).write(true).custom_flags(flags).open(path).unwrap();
    fcntl_setpipe_size(&reader, 4096).unwrap();
    reader
}

/// That it failed for want of room, and says so as its last word.
fn assert_full(ended: &Ended, told: usize) {
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let why = "waggle: the output cannot be written: No space left on device (os error 28); ";
    let last = ended.err.lines().last().unwrap();
    assert!(last.starts_with(why) && last.ends_with(" not in it"), "{}", ended.err);
    assert_eq!(ended.err.matches("No space left").count(), told, "{}", ended.err);
}

#[test]
fn an_output_that_stalls_or_fails_is_told_and_counted_and_the_others_go_on() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (log, pipe) = (dir.path().join("slow.log"), dir.path().join("pipe"));
    let mut reader = narrow_pipe(&pipe);
    let full = Path::new("/dev/full");
    let mut beside = watch(&server, full, &["--slowlog", log.to_str().unwrap()]);
    let mut stalled = watch(&server, &pipe, &[]);
    assert_full(&watch(&server, full, &[]).end(), 1);

    beside.wait_for("the complaint", |beside| {
        beside.err().contains("(os error 28); it has ended, all else goes on")
    });
    load::session(&server).run("SELECT 'after', 2").unwrap();
    beside.wait_for("what came after it", |_| {
        fs::read_to_string(&log).unwrap().contains("SELECT ?, ?;")
    });
    assert_full(&beside.interrupt(), 2);

    let mut read = Vec::new();
    stalled.wait_for("the complaint", |stalled| {
        stalled.err().contains("waggle: the output takes too long: ")
    });
    fcntl_setpipe_size(&reader, 1 << 16).unwrap();
    let left_out = |lines: &[Value]| -> u64 {
        lines.iter().map(|line| line["intervals_left_out"].as_u64().unwrap()).sum()
    };
    let mut rest = || {
        // There is nothing more for now.
        let _ = reader.read_to_end(&mut read);
        lines(&String::from_utf8_lossy(&read))
    };
    stalled.wait_for("what was left out", |_| left_out(&rest()) > 0);
    stalled.signal(Signal::INT);
    let ended = stalled.end();
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let counted = match left_out(&rest()) {
        1 => "1 interval is".to_owned(),
        more => format!("{more} intervals are"),
    };
    let counted = format!("waggle: the output takes too long: {counted} not in it");
    assert_eq!(ended.err.lines().last(), Some(counted.as_str()), "{}", ended.err);
}
