//! Waggle in a time namespace: its clock is not the kernel's.

use waggle_testkit::{Server, Version};

use crate::watching::Waggle;
use crate::{load, watched};

#[test]
fn waggle_in_a_time_namespace_sees_and_measures_as_outside() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let pid = server.pid().to_string();
    for ahead_s in ["-20", "86400"] {
        let ahead = format!("--monotonic={ahead_s}");
        let by = ["unshare", "--time", "--fork", "--kill-child", &ahead];
        let watch = ["watch", "--json", "--interval", "300ms", "--pid", &pid];
        let mut waggle = Waggle::through(&by, &watch);
        waggle.wait_for_lines(1);
        let mut session = load::session(&server);
        for _ in 0..20 {
            session.run("SELECT SLEEP(0.01) AS counted").unwrap();
        }
        waggle.wait_for_lines(2);
        let lines = waggle.lines();
        assert_eq!(watched::calls(&lines, "`counted`"), 20, "{ahead_s} s: {lines:#?}");
        for line in &lines {
            for (kind, lost) in line["lost"].as_object().unwrap() {
                assert_eq!(lost, 0, "{ahead_s} s: {kind}");
            }
            assert_eq!(line["starts_unknown"], 0, "{ahead_s} s: {line}");
        }
        let mut latencies = lines.iter().filter_map(|line| line["latency_us"]["max"].as_f64());
        let is_short = |us: f64| us < 15e6;
        assert!(latencies.all(is_short), "{ahead_s} s: {lines:#?}");
        drop(waggle);
    }
}
