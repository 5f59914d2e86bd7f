//! Others have the processors of the server.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use waggle_host::processors;
use waggle_testkit::client::Command as Packet;
use waggle_testkit::{Killed, Server, Version};

use super::control_group::{ControlGroup, Setting};
use crate::load::session;
use crate::tmux::Tmux;
use crate::watching::{WAGGLE, Waggle};

/// A process that takes all of this processor.
fn hog(processor: usize) -> Killed {
    let mut hog = Command::new("setpriv");
    hog.args(["--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"]);
    let hog = Killed(hog.stdin(Stdio::null()).spawn().unwrap());
    processors::keep_on(hog.id(), &[processor]).unwrap();
    hog
}

/// Whether a line tells that others fill the processors, and that statements wait for one.
fn is_told(line: &Value) -> bool {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let cores = |key: &str| number(&line["cpus"][key]);
    let others = cores("busy_cores") - cores("server_cores");
    // What the hypervisor takes away, nobody uses.
    let taken = cores("busy_cores") + cores("stolen_cores");
    let queued = number(&line["time_us"]["run_queue"]) + number(&line["queue_before_start_us"]);
    cores("usable") > 0.0
        && taken > 0.9 * cores("usable")
        && others > cores("server_cores")
        && queued > 0.0
}

/// Ends the load, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_host_that_others_fill_is_seen_in_the_first_lines() {
    let server = Server::start(Version::Mysql80).unwrap();
    let pid = server.pid().to_string();
    // The other processors are for the tests beside this one.
    let processor = processors::usable().unwrap()[0];
    processors::keep_on(server.pid(), &[processor]).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = session(&server);
            while !is_over.load(Ordering::Relaxed) {
                client.run("SELECT 1").unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let _over = Over(&is_over);
        let hogs = [processor; 2].map(hog);
        let mut waggle = Waggle::watch(&server, &["--interval", "500ms"]);
        waggle.wait_for("the JSON", |waggle| waggle.lines().iter().any(is_told));
        let is_shown = |text: &str| {
            let mut lines = text.lines().filter(|line| line.starts_with("host "));
            lines.any(|line| {
                [" CPUs FULL, ", "% busy  server ", "  OTHERS ", "  queued "]
                    .iter()
                    .all(|words| line.contains(words))
            })
        };
        let arguments = ["watch", "--table", "--interval", "500ms", "--pid", &pid];
        let mut table = Waggle::start(&arguments);
        table.wait_for("the table", |table| is_shown(&table.printed()));
        let view = Tmux::start(80, 24);
        view.command(&format!("{WAGGLE} watch --pid {pid}"));
        view.wait_for("the view", is_shown);
        drop(hogs);
        view.quit();
    });
}

/// A tenth of a processor, in each version.
const LIMITS: [Setting; 2] = [
    ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "10000"),
    ("/sys/fs/cgroup", "cpu.max", "10000 100000"),
];

#[test]
fn a_limit_that_holds_the_server_back_is_seen_in_the_first_lines() {
    let server = Server::start(Version::Mariadb114).unwrap();
    let mut client = session(&server);
    client.send(Packet::Query, b"DO BENCHMARK(4000000000, SHA2('x', 256))").unwrap();
    let (group, limit) = ControlGroup::of(server.pid(), &LIMITS);
    group.write(limit);
    let mut waggle = Waggle::watch(&server, &["--interval", "500ms"]);
    waggle.wait_for("the JSON", |waggle| {
        let is_told = |line: &Value| {
            let held_back = line["cpus"]["held_back"].as_f64();
            line["cpus"]["limit_cores"] == 0.1 && held_back.is_some_and(|share| share > 0.1)
        };
        waggle.lines().iter().any(is_told)
    });
    let pid = server.pid().to_string();
    let mut table = Waggle::start(&["watch", "--table", "--interval", "500ms", "--pid", &pid]);
    table.wait_for("the table", |table| {
        let printed = table.printed();
        let mut lines = printed.lines().filter(|line| line.starts_with("host "));
        lines.any(|line| line.contains("  limit 0.10 CPUs  HELD BACK "))
    });
}
