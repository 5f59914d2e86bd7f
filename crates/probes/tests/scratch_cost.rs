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
use waggle_testkit::client::{Client, Command as Send, Transport};
use waggle_testkit::Account;
fn measure(what: &str, sampler: &Sampler, instance: &Instance, layout: &Layout, fresh: bool, n: usize, gap: u64) {
    let mut sessions = Sessions::of(layout).unwrap();
    let f = |s: u64| Some(s);
    let limits = Limits { text: 1024, start_to_monotonic: &f };
    sampler.sample(instance, &mut sessions, limits).unwrap();
    let mut costs = vec![]; let mut last = Sample::default();
    for _ in 0..n {
        if fresh { sessions = Sessions::of(layout).unwrap(); }
        std::thread::sleep(Duration::from_millis(gap));
        let a = cpu();
        last = sampler.sample(instance, &mut sessions, limits).unwrap();
        costs.push(cpu() - a);
    }
    costs.sort_by(f64::total_cmp);
    println!("{what}: fresh={fresh} threads={} sessions={} running={} read={} unreadable={} cpu us median {:.0} min {:.0} max {:.0} => {:.2} us/thread", last.threads, last.sessions, last.running.len(), last.read, last.unreadable, costs[n/2], costs[0], costs[n-1], costs[n/2]/last.threads as f64);
}
#[test]
fn cost() {
    for version in [Version::Mysql9, Version::Mysql57, Version::Mysql80, Version::Mariadb1011, Version::Mariadb114] {
        let server = Server::builder(version).max_connections(1100).start().unwrap();
        let found = servers(Path::new("/proc")).into_iter().find(|f| f.pid == server.pid()).unwrap();
        let elf = Elf::open(&found.executable_file()).unwrap();
        let layout = Layout::derive(&elf).unwrap();
        let instance = Instance::resolve(found.pid, found.start_ticks, &elf, &layout).unwrap();
        let sampler = Sampler::load().unwrap();
        let mut clients: Vec<Client> = (0..1000).map(|_| Client::builder().database("test").connect(&server, Transport::Unix, Account::APP).unwrap()).collect();
        std::thread::sleep(Duration::from_millis(500));
        measure(&format!("{version} 1000 idle"), &sampler, &instance, &layout, false, 6, 1000);
        measure(&format!("{version} 1000 idle"), &sampler, &instance, &layout, true, 10, 50);
        for c in &mut clients { c.send(Send::Query, b"select sleep(600), 'some text that is about as long as usual, from t where a = 1 and b = 2'").unwrap(); }
        std::thread::sleep(Duration::from_millis(1000));
        measure(&format!("{version} 1000 asleep in a statement"), &sampler, &instance, &layout, false, 6, 1000);
        measure(&format!("{version} 1000 asleep in a statement"), &sampler, &instance, &layout, true, 10, 50);
        drop(clients);
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
    time("watcher young", &mut || { w.changes(); });
    (0..60).for_each(|_| { w.changes(); });
    time("watcher old", &mut || { w.changes(); });
    for s in &mut sleeps { s.kill().unwrap(); s.wait().unwrap(); }
}
