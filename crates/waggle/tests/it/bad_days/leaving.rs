//! Nothing of waggle stays in the kernel, however it ends.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use rustix::process::Signal;
use waggle_probes::capture::{Amount, Tap, TapOptions};
use waggle_probes::servers::discover;
use waggle_probes::servers::recognise::Builds;
use waggle_testkit::{Server, Version, wait_showing};

use crate::load;
use crate::watching::{KernelIds, Waggle};

/// The code of a server as it lies in memory, where a breakpoint would show.
fn code(pid: u32) -> Vec<u8> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    let name = program.to_str().unwrap();
    let line = maps.lines().find(|line| line.contains(" r-xp ") && line.ends_with(name)).unwrap();
    let (from, to) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
    let [from, to] = [from, to].map(|number| u64::from_str_radix(number, 16).unwrap());
    let mut code = vec![0; (to - from) as usize];
    File::open(format!("/proc/{pid}/mem")).unwrap().read_exact_at(&mut code, from).unwrap();
    code
}

#[test]
fn a_waggle_that_is_killed_leaves_nothing_in_the_kernel() {
    let server = Server::start(Version::Mysql80).unwrap();
    let clean = code(server.pid());
    for hook in ["send", "syscall", "uprobe"] {
        let waggle = Waggle::watch(&server, &["--interval", "200ms", "--hook", hook]);
        let ids = waggle.kernel_ids();
        assert!(!ids.programs.is_empty() && !ids.links.is_empty(), "{hook}: {ids:?}");
        assert_eq!(ids.left(), ids, "{hook}: they are loaded while it runs");
        assert_eq!(code(server.pid()) != clean, hook == "uprobe", "{hook}: a breakpoint");
        waggle.signal(Signal::KILL);
        assert_eq!(waggle.end().code, None);
        wait_until_gone(&ids, hook);
        assert!(code(server.pid()) == clean, "{hook}: a breakpoint stays");
        load::session(&server).run("SELECT 1").unwrap();
    }
}

/// The kernel cleans up a moment later (RCU).
fn wait_until_gone(ids: &KernelIds, hook: &str) {
    wait_showing(format!("{hook}: nothing is left"), || match ids.left() {
        left if left == KernelIds::default() => Ok(()),
        left => Err(format!("{left:?}")),
    });
}

#[test]
fn attaching_and_detaching_a_hundred_times_under_load_leaks_nothing() {
    for version in [Version::Mysql9, Version::Mariadb114] {
        let server = Server::start(version).unwrap();
        let found = discover::servers(Path::new("/proc"));
        let found = found.into_iter().find(|found| found.pid == server.pid()).unwrap();
        let recognised = Builds::default().recognise(&found).unwrap();
        let own = std::process::id();
        let over = AtomicBool::new(false);
        let (captured, executed) = thread::scope(|scope| {
            let load = scope.spawn(|| {
                let mut client = load::session(&server);
                let mut executed = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    client.run("SELECT 1").unwrap();
                    executed += 1;
                }
                executed
            });
            let mut tap = Tap::new(TapOptions::default()).unwrap();
            let before = KernelIds::of(own);
            let mut captured = 0_u64;
            for turn in 0..100 {
                tap.attach(&recognised.instance, &recognised.layout).unwrap();
                let drained = &mut captured;
                while *drained <= turn {
                    tap.drain(Amount::UpToNow, |_| *drained += 1);
                    thread::yield_now();
                }
                tap.detach(server.pid());
            }
            assert_eq!(KernelIds::of(own), before, "{version}: programs are left");
            over.store(true, Ordering::Relaxed);
            (captured, load.join().unwrap())
        });
        assert!(captured >= 100 && executed >= captured, "{version}: {captured} of {executed}");
        load::session(&server).run("SELECT 1").unwrap();
    }
}
