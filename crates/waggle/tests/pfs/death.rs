//! The command, its guardian or the server dies.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use waggle_instrumentation::journal::Undoer;
use waggle_testkit::Version;

use super::holding::{assert_as_before, without_threads};
use super::{Scene, guardian_of, stderr, wait_for};

/// Moments at which the command is killed, on each server.
const MOMENTS: u64 = 20;
/// The first and the last, after its start: from before the first change to well into the hold.
const SPREAD: Duration = Duration::from_millis(400);

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn a_killed_command_is_undone_by_its_guardian() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let mut longest = Duration::ZERO;
        let mut seen = 0;
        for moment in 0..MOMENTS {
            let holding = scene.spawn(&["apply", "everything"]);
            std::thread::sleep(SPREAD.mul_f64(moment as f64 / MOMENTS as f64));
            holding.kill();
            let killed = Instant::now();
            // One that wrote nothing yet has no guardian.
            let open = |scene: &Scene| {
                scene.contents().into_iter().find(|contents| {
                    contents.undone.is_none() && guardian_of(&contents.path).is_some()
                })
            };
            if open(&scene).is_some() {
                seen += 1;
                wait_for("the guardian's work", || open(&scene).is_none().then_some(()));
            }
            longest = longest.max(killed.elapsed());
            assert_as_before(&scene, &before, &format!("{version}, moment {moment}"));
        }
        eprintln!("{version}: undone by the guardian {seen} times, the longest in {longest:?}");
        let by_guardian = scene.contents().into_iter().filter(|contents| {
            contents.undone.as_ref().is_some_and(|undone| undone.by == Undoer::Guardian)
        });
        assert!(by_guardian.count() > 0, "{version}: it never was in the middle");
    }
}

/// Kills the command and its guardian while a profile is held.
fn leave_open(scene: &Scene) {
    let holding = scene.hold(&["apply", "everything"]);
    let open = scene.contents().pop().unwrap();
    kill(guardian_of(&open.path).unwrap());
    holding.kill();
}

#[test]
fn the_next_command_undoes_what_nobody_guards() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        leave_open(&scene);
        assert!(without_threads(&scene.read()) != before, "{version}");
        let next = scene.run(&["apply", "default", "--for", "10ms"]);
        assert!(stderr(&next).contains("`apply everything` is undone"), "{}", stderr(&next));
        assert_as_before(&scene, &before, version.name());
        let undone = scene.contents().remove(0).undone.unwrap();
        assert_eq!(undone.by, Undoer::Later, "{version}");
    }
}

#[test]
fn a_restart_of_the_server_leaves_nothing_to_undo() {
    for version in Version::ALL {
        let mut scene = Scene::of(version);
        let before = without_threads(&scene.read());
        leave_open(&scene);
        scene.server.restart().unwrap();
        assert_as_before(&scene, &before, "settings outlived a restart");
        let next = scene.run(&["rollback"]);
        assert_eq!(next.status.code(), Some(0), "{version} {}", stderr(&next));
        assert!(stderr(&next).contains("started anew"), "{version} {}", stderr(&next));
        assert_eq!(scene.contents()[0].undone.as_ref().unwrap().by, Undoer::Restart);
        assert_as_before(&scene, &before, version.name());
    }
}

#[test]
fn a_row_that_somebody_else_changed_is_left_alone_and_told() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let holding = scene.hold(&["apply", "stages"]);
        // Neither as it was found nor as it was set.
        let name = "stage/sql/Opening tables";
        let change = format!(
            "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'NO' WHERE \
             NAME = '{name}'"
        );
        scene.connect().rows(&change).unwrap();
        let ended = holding.end();
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(1), "{version}: {said}");
        assert!(said.contains(&format!("setup_instruments {name}: holds YES NO")), "{said}");
        let left = scene.contents()[0].undone.clone().unwrap().left_alone;
        assert_eq!(left.len(), 1, "{version}: {left:?}");
        assert_eq!(left[0].key, [name], "{version}");
    }
}
