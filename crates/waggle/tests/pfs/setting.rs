//! Single settings: what is set by name, and what makes a profile last.

use waggle_instrumentation::Table;
use waggle_testkit::Version;

use super::holding::{assert_as_before, without_threads};
use super::{Scene, stderr};

#[test]
fn a_consumer_above_others_is_off_while_that_is_held() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        // MariaDB has it off by default.
        let current = (!version.is_mariadb()).then_some("events_statements_current");
        for name in ["global_instrumentation", "thread_instrumentation"].into_iter().chain(current)
        {
            let holding = scene.hold(&["set", "consumer", name, "off", "--for", "600s"]);
            let state = scene.read();
            let row = state.row(Table::Consumers, &vec![name.to_owned()]);
            assert_eq!(row, Some(&vec![Some("NO".to_owned())]), "{version} {name}");
            let said = stderr(&holding.end());
            assert!(!said.contains("added: "), "{version} {name}: {said}");
            assert_as_before(&scene, &before, &format!("{version} {name}"));
        }
    }
}
