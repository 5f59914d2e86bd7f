#![allow(missing_docs)]
use std::path::Path;
use std::process::{Command as Proc, Stdio};
use std::time::Duration;
use rustix::time::{ClockId, clock_gettime};
use waggle_probes::sessions::*;
use waggle_probes::target::discover::*;
use waggle_probes::target::{Instance, elf::Elf, layout::Layout};
use waggle_testkit::{Server, Version};
fn cpu() -> f64 { let t = clock_gettime(ClockId::ThreadCPUTime); t.tv_sec as f64 * 1e6 + t.tv_nsec as f64 / 1e3 }
#[test]
fn maria() {
    let server = Server::builder(Version::Mariadb1011).max_connections(1100).start().unwrap();
    let found = servers(Path::new("/proc")).into_iter().find(|f| f.pid == server.pid()).unwrap();
    let elf = Elf::open(&found.executable_file()).unwrap();
    let layout = Layout::derive(&elf).unwrap();
    let instance = Instance::resolve(found.pid, found.start_ticks, &elf, &layout).unwrap();
    let sampler = Sampler::load().unwrap();
    let mut sessions = Sessions::of(&layout).unwrap();
    let f = |s: u64| Some(s);
    let limits = Limits { text: 1024, start_to_monotonic: &f };
    for i in 0..100 {
        let s = sampler.sample(&instance, &mut sessions, limits).unwrap();
        if i % 10 == 0 { println!("{s:?}"); }
        std::thread::sleep(Duration::from_millis(50));
    }
}
#[test]
fn watcher() {
    let mut sleeps: Vec<_> = (0..500).map(|_| Proc::new("sleep").arg("100").stdin(Stdio::null()).spawn().unwrap()).collect();
    let time = |what: &str, f: &mut dyn FnMut()| { let mut c: Vec<f64> = (0..20).map(|_| { std::thread::sleep(Duration::from_millis(20)); let a = cpu(); f(); cpu() - a }).collect(); c.sort_by(f64::total_cmp); println!("{what} {:.0}", c[10]); };
    let pids = || std::fs::read_dir("/proc").unwrap().filter_map(|e| e.unwrap().file_name().to_str()?.parse::<u32>().ok()).collect::<Vec<_>>();
    time("readdir", &mut || { pids(); });
    let list = pids();
    time("read_link", &mut || { for p in &list { let _ = std::fs::read_link(format!("/proc/{p}/exe")); } });
    let dir = std::fs::File::open("/proc").unwrap();
    let mut buf = [0u8; 4096];
    time("readlinkat", &mut || { for p in &list { let _ = rustix::fs::readlinkat_raw(&dir, format!("{p}/exe"), &mut buf); } });
    let mut w = Watcher::new(Path::new("/proc"));
    time("watcher", &mut || { w.changes(); });
    for s in &mut sleeps { s.kill().unwrap(); s.wait().unwrap(); }
}
