//! The command, its guardian or the server dies.

use std::fs::{File, read_to_string};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use waggle_instrumentation::journal::Undoer;
use waggle_stats::Random;
use waggle_testkit::Version;

use super::holding::{assert_as_before, without_threads};
use super::{Holding, Scene, guardian_of, stderr, wait_for};

/// Moments at which the command is killed, on each server: one while it applies, the next while it
/// holds; of four, the last two with its guardian.
const MOMENTS: usize = 20;
/// After so many without one while a part was set, something else is wrong.
const MOMENTS_MAX: usize = 10 * MOMENTS;
/// From which they are drawn.
const SEED: u64 = 4;
/// How long it has been held by then, at most.
const HELD: Duration = Duration::from_millis(300);

/// What the command says when its plan is made, when a part of it is set, and when all of it is.
const PLANNED: &str = "UPDATE performance_schema.";
const PART: &str = " rows in ";
const WHOLE: &str = "; Ctrl-C undoes it";

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

/// `apply everything`, and the file of what it says: a guardian that outlives it keeps a pipe open.
struct Apply {
    holding: Holding,
    said: PathBuf,
}

impl Apply {
    fn start(scene: &Scene) -> Self {
        let said = scene.state.path().join("said");
        let mut command = scene.command(&["apply", "everything"]);
        command.stdout(Stdio::null()).stderr(File::create(&said).unwrap());
        Self { holding: Holding(Some(command.spawn().unwrap())), said }
    }

    fn wait_until_said(&self, what: &str) {
        wait_for(what, || read_to_string(&self.said).unwrap().contains(what).then_some(()));
    }

    /// Kills it, and gives what it had said.
    fn kill(self) -> String {
        self.holding.kill();
        read_to_string(self.said).unwrap()
    }
}

/// How long an apply takes from its plan to the last change.
fn time_of_apply(scene: &Scene) -> Duration {
    let apply = Apply::start(scene);
    apply.wait_until_said(PLANNED);
    let begin = Instant::now();
    apply.wait_until_said(WHOLE);
    let took = begin.elapsed();
    assert_eq!(apply.holding.end().status.code(), Some(0));
    took
}

/// Waits for the guardian of what is not undone. Whether there was one: who wrote nothing yet has none.
fn wait_for_guardian(scene: &Scene) -> bool {
    let is_open = || {
        scene
            .contents()
            .iter()
            .any(|contents| contents.undone.is_none() && guardian_of(&contents.path).is_some())
    };
    let was_open = is_open();
    wait_for("the guardian's work", || (!is_open()).then_some(()));
    was_open
}

#[test]
fn a_killed_command_is_undone_by_its_guardian_or_the_next_one() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let takes = time_of_apply(&scene);
        let mut random = Random::seeded(SEED);
        let mut up_to = |longest: Duration| {
            Duration::from_micros(random.below(longest.as_micros() as usize) as u64)
        };
        let (mut in_part, mut whole, mut times) = (0, 0, Vec::new());
        for moment in 0..MOMENTS_MAX {
            if moment >= MOMENTS && in_part > 0 {
                break;
            }
            let apply = Apply::start(&scene);
            let (since, longest) = [(PLANNED, takes), (WHOLE, HELD)][moment % 2];
            apply.wait_until_said(since);
            std::thread::sleep(up_to(longest));
            let is_guarded = moment % 4 < 2;
            if !is_guarded {
                kill_guardian(&scene);
            }
            let said = apply.kill();
            let killed = Instant::now();
            if !is_guarded {
                assert_eq!(scene.run(&["rollback"]).status.code(), Some(0), "{version}");
            } else if wait_for_guardian(&scene) {
                times.push(killed.elapsed());
            }
            in_part += usize::from(said.contains(PART) && !said.contains(WHOLE));
            whole += usize::from(said.contains(WHOLE));
            assert_as_before(&scene, &before, &format!("{version}, moment {moment}"));
        }
        times.sort();
        println!(
            "{version}: killed {in_part} times while a part was set, {whole} times while all was; \
             undone by the guardian {} times, in {:?} (median), {:?} (longest)",
            times.len(),
            times[times.len() / 2],
            times[times.len() - 1]
        );
        assert!(in_part > 0 && whole > 0, "{version}: {in_part} {whole}");
        let by_guardian = scene.contents().into_iter().filter(|contents| {
            contents.undone.as_ref().is_some_and(|undone| undone.by == Undoer::Guardian)
        });
        assert!(by_guardian.count() >= MOMENTS / 4, "{version}");
    }
}

/// Kills the guardian of what is held, where there is one yet.
fn kill_guardian(scene: &Scene) {
    if let Some(guardian) = scene.contents().pop().and_then(|open| guardian_of(&open.path)) {
        kill(guardian);
    }
}

/// Kills a command that holds changes, and its guardian.
fn kill_both(scene: &Scene, holding: Holding) {
    kill_guardian(scene);
    holding.kill();
}

/// Leaves a profile set that nobody holds.
fn leave_open(scene: &Scene) {
    kill_both(scene, scene.hold(&["apply", "everything"]));
}

/// What a command that changes nothing says of it.
const LEFT: &str = "ended without undoing its changes";

#[test]
fn what_nobody_guards_is_told_by_every_command_and_undone_by_the_next_that_changes_something() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        leave_open(&scene);
        let left = without_threads(&scene.read());
        assert!(left != before, "{version}");
        for words in [
            &["status", "--interval", "10ms"][..],
            &["cost", "--interval", "10ms"],
            &["plan", "io", "--interval", "10ms"],
            &["persist", "io"],
            &["innodb", "status"],
        ] {
            let said = stderr(&scene.run(words));
            assert!(said.contains(LEFT), "{version} {words:?}: {said}");
            assert!(said.contains("waggle pfs rollback"), "{version} {words:?}: {said}");
        }
        assert_as_before(&scene, &left, "nothing was asked to change");
        let next = scene.run(&["apply", "default", "--for", "10ms"]);
        assert!(stderr(&next).contains("`apply everything` is undone"), "{}", stderr(&next));
        assert_as_before(&scene, &before, version.name());
        let undone = scene.contents().remove(0).undone.unwrap();
        assert_eq!(undone.by, Undoer::Later, "{version}");

        let holding = scene.hold(&["apply", "stages"]);
        let meanwhile = stderr(&scene.run(&["status", "--interval", "10ms"]));
        assert!(!meanwhile.contains(LEFT), "{version}: it is held: {meanwhile}");
        drop(holding.end());
    }
}

#[test]
fn a_restart_while_changes_are_held_ends_them() {
    for version in Version::ALL {
        let mut scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let ends: [fn(Holding); 2] = [|holding| drop(holding.end()), Holding::kill];
        for end in ends {
            let holding = scene.hold(&["apply", "stages"]);
            scene.server.restart().unwrap();
            end(holding);
            let undone = wait_for("the guardian", || scene.contents().pop()?.undone);
            assert_eq!(undone.by, Undoer::Restart, "{version}");
            assert_as_before(&scene, &before, version.name());
        }
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
        let status = stderr(&scene.run(&["status", "--interval", "10ms"]));
        assert!(!status.contains(LEFT), "{version}: {status}");
        let next = scene.run(&["rollback"]);
        assert_eq!(next.status.code(), Some(0), "{version} {}", stderr(&next));
        assert!(stderr(&next).contains("started anew"), "{version} {}", stderr(&next));
        assert_eq!(scene.contents()[0].undone.as_ref().unwrap().by, Undoer::Restart);
        assert_as_before(&scene, &before, version.name());
    }
}

/// Ends what is held in a way, and gives what was said of it where somebody hears it.
type End = fn(&Scene, Holding) -> Option<std::process::Output>;

/// Every way in which changes are undone.
const ENDS: [(Undoer, End); 3] = [
    (Undoer::Command, |_, holding| Some(holding.end())),
    (Undoer::Guardian, |scene, holding| {
        holding.kill();
        wait_for("the guardian", || scene.contents().pop()?.undone);
        None
    }),
    (Undoer::Later, |scene, holding| {
        kill_both(scene, holding);
        Some(scene.run(&["rollback"]))
    }),
];

#[test]
fn a_row_that_somebody_else_changed_is_left_alone_and_told_whoever_undoes() {
    let name = "stage/sql/Opening tables";
    let row = format!("setup_instruments {name}: holds YES NO");
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let set = |enabled: &str, timed: &str| {
            let sql = format!(
                "UPDATE performance_schema.setup_instruments SET ENABLED = '{enabled}', TIMED = \
                 '{timed}' WHERE NAME = '{name}'"
            );
            scene.connect().rows(&sql).unwrap();
        };
        for (undoer, end) in ENDS {
            let holding = scene.hold(&["apply", "stages"]);
            // Neither as it was found nor as it was set.
            set("YES", "NO");
            if let Some(ended) = end(&scene, holding) {
                let said = stderr(&ended);
                assert_eq!(ended.status.code(), Some(1), "{version} {undoer:?}: {said}");
                assert!(said.contains(&row), "{version} {undoer:?}: {said}");
            }
            let undone = scene.contents().pop().unwrap().undone.unwrap();
            assert_eq!(undone.by, undoer, "{version}");
            assert_eq!(undone.left_alone.len(), 1, "{version} {undoer:?}: {undone:?}");
            assert_eq!(undone.left_alone[0].key, [name], "{version} {undoer:?}");
            assert!(scene.history().contains(&row), "{version} {undoer:?}");
            set("NO", "NO");
            assert_as_before(&scene, &before, "but for that row");
        }
    }
}
