//! scratch
#![allow(clippy::all, clippy::pedantic, clippy::restriction, missing_docs, unused)]
use std::path::Path;
use std::time::Duration;
use waggle_probes::tap::{RunTimeStatistics, Tap, TapOptions};
use waggle_probes::target::discover::servers;
use waggle_probes::target::recognise::Builds;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Server, Version};
fn cpu_us(pid: u32) -> u64 {
    std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|t| {
        let s = std::fs::read_to_string(t.unwrap().path().join("schedstat")).unwrap_or_default();
        s.split(' ').next().unwrap_or("0").parse::<u64>().unwrap_or(0) }).sum::<u64>() / 1000
}
#[test]
fn price() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let found = servers(Path::new("/proc")).into_iter().find(|f| f.pid == server.pid()).unwrap();
        let rec = Builds::default().recognise(&found).unwrap();
        let mut c = Client::builder().database("test").connect(&server, Transport::Unix, Account::APP).unwrap();
        c.run("create table t (id int primary key, v int)").unwrap();
        c.run("insert into t values (1,1)").unwrap();
        c.run("create procedure p(n int) begin declare i int default 0; declare x int; while i < n do select v into x from t where id = 1; set i = i + 1; end while; end").unwrap();
        c.run("call p(1000)").unwrap();
        const N: u64 = 4000;
        let mut kernel = (0, Duration::ZERO);
        let mut diffs: Vec<f64> = Vec::new();
        for round in 0..24 {
            let mut used = [0.0; 2];
            for arm in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                let mut tap = Tap::new(TapOptions { nested: arm == 1, ..Default::default() }).unwrap();
                tap.attach(&rec.instance, &rec.layout).unwrap();
                let stats = (arm == 1 && round >= 22).then(|| RunTimeStatistics::enable().unwrap());
                let before = cpu_us(server.pid());
                let mut nested = 0;
                for _ in 0..2 { c.run(format!("call p({})", N / 2)).unwrap(); while tap.drain(10000, |s| if s.origin == waggle_model::Origin::Nested { nested += 1 }) > 0 {} }
                used[arm] = (cpu_us(server.pid()) - before) as f64 / N as f64;
                if arm == 1 { assert_eq!(nested, N, "{:?}", tap.losses()); }
                if stats.is_some() { let r = tap.nested_run_time(); kernel.0 += r.runs; kernel.1 += r.time; }
                tap.detach(server.pid());
            }
            if round < 22 { diffs.push(used[1] - used[0]); }
        }
        diffs.sort_by(f64::total_cmp);
        println!("{version}: kernel {} ns per statement ({} runs); added mysqld CPU us: p25 {:.1} median {:.1} p75 {:.1} of {}", kernel.1.as_nanos() / kernel.0.max(1) as u128, kernel.0, diffs[diffs.len()/4], diffs[diffs.len()/2], diffs[diffs.len()*3/4], diffs.len());
    }
}
