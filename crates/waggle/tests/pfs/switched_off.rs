//! Without Performance Schema, every command that needs it says what it would take, and cost.

use std::process::Command;

use waggle_instrumentation::status::StatusError;
use waggle_testkit::Version;

use super::{Scene, assert_ended};

#[test]
fn the_restart_and_its_cost_are_said() {
    let words = StatusError::Off.to_string();
    for part in ["cannot be switched on while it runs", "performance_schema=ON", "1 to 15 %"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    for version in Version::ALL {
        let scene = Scene::with(version, ["--performance-schema=OFF"]);
        let mut ddl = Command::new(env!("CARGO_BIN_EXE_waggle"));
        ddl.args(["ddl", "tail", "--source", "pfs"]).env("WAGGLE_STATE_DIR", scene.state.path());
        ddl.arg("--defaults-file").arg(scene.server.defaults_file());
        for mut command in [
            scene.command(&["status"]),
            scene.command(&["apply", "waits", "--for", "10ms"]),
            scene.command(&["set", "wait/io/%", "on", "--for", "10ms"]),
            scene.command(&["persist", "io"]),
            ddl,
        ] {
            assert_ended(
                &command.output().unwrap(),
                4,
                &[&words],
                format_args!("{version} {command:?}"),
            );
        }
        assert_eq!(scene.contents(), [], "{version}");
    }
}
