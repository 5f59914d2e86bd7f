//! A server that closes sessions which say nothing.

use std::time::Duration;

use tempfile::TempDir;
use waggle_testkit::{Server, Version};

use super::holding::{assert_as_before, without_threads};
use super::{Scene, stderr, wait_for};

/// Longer than the server lets a session say nothing.
const IDLE: Duration = Duration::from_secs(3);

#[test]
fn what_is_held_for_longer_than_an_idle_session_lives_is_undone() {
    for version in Version::ALL {
        let server =
            Server::builder(version).arg("--performance-schema=ON").arg("--wait-timeout=1");
        let scene = Scene { server: server.start().unwrap(), state: TempDir::new().unwrap() };
        let before = without_threads(&scene.read());
        let held = scene.run(&["apply", "io", "--for", "3s"]);
        assert_eq!(held.status.code(), Some(0), "{version}: {}", stderr(&held));
        assert_as_before(&scene, &before, version.name());

        let holding = scene.hold(&["apply", "io"]);
        std::thread::sleep(IDLE);
        holding.kill();
        wait_for("the guardian's work", || {
            scene.contents().into_iter().all(|contents| contents.undone.is_some()).then_some(())
        });
        assert_as_before(&scene, &before, version.name());
    }
}
