//! A file system in user space (FUSE) that falls silent, as one of an attacker's does, or one whose host is gone.
//!
//! It has one file. It answers until that is closed for the first time (`FUSE_FLUSH`), and never gives any of its bytes, nor
//! says what is free on it.
//! Formats: `include/uapi/linux/fuse.h` of Linux.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The name of the file.
pub(super) const NAME: &str = "silent";
const FOLDER: u64 = 1;
const ONLY_FILE: u64 = 2;
/// Bytes that it says to have.
const SIZE: u64 = 1 << 20;

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const STATFS: u32 = 17;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;

/// Mounts it at `$0`.
const MOUNT: &str =
    "mount -i -t fuse -o fd=0,rootmode=40000,user_id=0,group_id=0,allow_other silent \"$0\"";

/// Such a file system at work. Who waits for it waits no more when this is dropped.
pub(super) struct SilentFiles {
    _stop: Sender<()>,
}

impl SilentFiles {
    /// Serves one, and gives a command that mounts it at `folder`, goes there, and becomes what its arguments say. Only
    /// that program sees it.
    pub(super) fn serve(folder: &Path) -> (SilentFiles, Command) {
        let become_it = format!("{MOUNT} && cd \"$0\" && exec \"$@\" < /dev/null");
        let words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", &become_it];
        SilentFiles::with(&words, folder)
    }

    /// Serves one that a process with mounts of its own, and no other, sees at `folder`.
    pub(super) fn mount(pid: u32, folder: &Path) -> SilentFiles {
        let pid = pid.to_string();
        let words = ["nsenter", "--target", &pid, "--mount", "sh", "-c", MOUNT];
        let (files, mut command) = SilentFiles::with(&words, folder);
        assert!(command.status().unwrap().success());
        files
    }

    fn with(words: &[&str], folder: &Path) -> (SilentFiles, Command) {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let device = File::options().read(true).write(true).custom_flags(flags).open("/dev/fuse");
        let device = device.unwrap();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(folder).stdin(device.try_clone().unwrap());
        let (stop, stopped) = mpsc::channel();
        thread::spawn(move || serve(device, &stopped));
        (SilentFiles { _stop: stop }, command)
    }
}

/// It ends when `stopped` has no sender any more: with the device, all that waits for it ends.
fn serve(mut device: File, stopped: &Receiver<()>) {
    let mut request = vec![0; 1 << 16];
    let mut is_silent = false;
    while stopped.try_recv() != Err(TryRecvError::Disconnected) {
        let Ok(length) = device.read(&mut request) else {
            // There is no request, or it is not mounted yet.
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let (head, rest) = request[..length].split_at(40);
        let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().unwrap());
        let (opcode, unique, node) = (word(4), long(8), long(16));
        let has_name = rest.starts_with(NAME.as_bytes());
        let answer = match opcode {
            _ if is_silent => continue,
            FORGET | READ | STATFS => continue,
            INIT => Ok(init()),
            LOOKUP if has_name => {
                Ok([numbers(&[ONLY_FILE, 0, 0, 0, 0]), about(ONLY_FILE)].concat())
            }
            LOOKUP => Err(Errno::NOENT),
            GETATTR => Ok([numbers(&[0, 0]), about(node)].concat()),
            OPEN | OPENDIR => Ok(numbers(&[1, 0])),
            FLUSH => Ok(Vec::new()),
            _ => Err(Errno::NOSYS),
        };
        is_silent = opcode == FLUSH;
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(error) => (-error.raw_os_error(), Vec::new()),
        };
        let length = (16 + body.len()) as u32;
        let head = [&length.to_ne_bytes()[..], &error.to_ne_bytes(), &unique.to_ne_bytes()];
        // Who asked may have been killed meanwhile.
        let _ = device.write(&[head.concat(), body].concat());
    }
}

/// `struct fuse_init_out`: version 7.31, and the smallest writes.
fn init() -> Vec<u8> {
    let mut out: Vec<u8> =
        [7u32, 31, 0, 0, 0, 4096, 1].iter().flat_map(|it| it.to_ne_bytes()).collect();
    out.resize(64, 0);
    out
}

/// `struct fuse_attr`.
fn about(node: u64) -> Vec<u8> {
    let mode: u32 = if node == FOLDER { 0o040_755 } else { 0o100_644 };
    let words = [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0];
    let words = words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
    [numbers(&[node, SIZE, SIZE / 512, 0, 0, 0]), words].concat()
}

fn numbers(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}
