//! A server that closes sessions which say nothing.

use std::time::Duration;

use waggle_testkit::{Version, wait_until};

use super::Scene;
use super::holding::{assert_as_before, without_threads};

/// Longer than the server lets a session say nothing.
const IDLE: Duration = Duration::from_secs(8);

#[test]
fn what_is_held_for_longer_than_an_idle_session_lives_is_undone() {
    Version::each(|version| {
        let scene = Scene::with(version, ["--performance-schema=ON", "--wait-timeout=3"]);
        let before = without_threads(&scene.read());
        scene.assert_run(&["apply", "io", "--for", "8s"], 0, &[]);
        assert_as_before(&scene, &before, version.name());

        let holding = scene.hold(&["apply", "io"]);
        std::thread::sleep(IDLE);
        holding.kill();
        wait_until("the guardian's work", || {
            scene.contents().iter().all(|contents| contents.undone.is_some())
        });
        assert_as_before(&scene, &before, version.name());
    });
}
