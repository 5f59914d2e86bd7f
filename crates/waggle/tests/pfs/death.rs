//! The command, its guardian or the server dies.

use std::fs::{File, read_to_string};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jiff::{Timestamp, Unit};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use waggle_instrumentation::Table;
use waggle_instrumentation::journal::{Journal, Undoer};
use waggle_mysql::connection::text;
use waggle_stats::Random;
use waggle_testkit::{Account, Client, Transport, Version, wait_for, wait_until};

use super::costing::busy;
use super::holding::{assert_as_before, without_threads};
use super::holding_everything::until_set;
use super::{Holding, Scene, guardian_of, size, stderr};

/// Moments at which the command is killed, on each server, alone and then with its guardian: one while it
/// applies, the next while it holds. Alone until its guardian has undone as many.
fn moments() -> usize {
    size::choose(4, 20)
}
/// After as many without one while a part was set, something else is wrong.
const MOMENTS_MAX: usize = 200;
/// How long a guardian may take in a soak, which has the machine for itself.
const GUARDIAN_TIME_S: f64 = 2.0;
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
        wait_until(what, || read_to_string(&self.said).unwrap().contains(what));
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

/// Waits for the guardian of what is not undone: who wrote nothing yet has none.
fn wait_for_guardian(scene: &Scene) {
    wait_until("the guardian's work", || {
        let contents = scene.contents();
        contents.iter().all(|one| one.undone.is_some() || guardian_of(&one.path).is_none())
    });
}

/// A kill that a guardian has undone.
struct Kill {
    /// While it applied, or held.
    phase: &'static str,
    /// How long after it had begun with that.
    after: Duration,
    /// How long after the kill all was undone, s.
    undone_s: f64,
}

/// Kills `apply everything` at random moments, with its guardian or without, until it was met while a part
/// was set. Gives what the guardians have undone.
fn kill_at_random(scene: &Scene, with_guardian: bool) -> Vec<Kill> {
    let before = without_threads(&scene.read());
    let takes = time_of_apply(scene);
    let mut random = Random::seeded(SEED);
    let mut up_to = |longest: Duration| {
        Duration::from_micros(random.below(longest.as_micros() as usize) as u64)
    };
    let (mut in_part, mut whole, mut kills) = (0, 0, Vec::new());
    for moment in 0..MOMENTS_MAX {
        let are_enough = with_guardian || kills.len() >= moments();
        if moment >= moments() && in_part > 0 && are_enough {
            break;
        }
        let journals = scene.contents().len();
        let apply = Apply::start(scene);
        let (phase, since, longest) =
            [("apply", PLANNED, takes), ("hold", WHOLE, HELD)][moment % 2];
        apply.wait_until_said(since);
        let after = up_to(longest);
        std::thread::sleep(after);
        if with_guardian {
            kill_guardian(scene);
        }
        let killed = Timestamp::now();
        let said = apply.kill();
        if with_guardian {
            assert_eq!(scene.run(&["rollback"]).status.code(), Some(0), "moment {moment}");
        } else {
            wait_for_guardian(scene);
        }
        // One that was killed before it began a journal has none.
        let undone =
            scene.contents().split_off(journals).pop().and_then(|contents| contents.undone);
        if with_guardian && said.contains(WHOLE) {
            assert_eq!(undone.as_ref().unwrap().by, Undoer::Later, "moment {moment}");
        }
        let by_guardian = undone.filter(|undone| undone.by == Undoer::Guardian);
        kills.extend(by_guardian.map(|undone| {
            let undone_s = (undone.at - killed).total(Unit::Second).unwrap();
            Kill { phase, after, undone_s }
        }));
        in_part += usize::from(said.contains(PART) && !said.contains(WHOLE));
        whole += usize::from(said.contains(WHOLE));
        assert_as_before(scene, &before, &format!("moment {moment}"));
    }
    assert!(in_part > 0 && whole > 0, "met while a part was set {in_part} times, all {whole}");
    kills
}

#[test]
fn a_killed_command_is_undone_by_its_guardian() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        // The tables of a load take longer than the test is to.
        let _load = size::is_soak().then(|| busy(&scene));
        let kills = kill_at_random(&scene, false);
        assert!(kills.len() >= moments(), "{version}: the guardian undid {} only", kills.len());
        let mut times: Vec<f64> = kills.iter().map(|kill| kill.undone_s).collect();
        times.sort_by(f64::total_cmp);
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        let moment = |kill: &Kill| {
            let after_s = kill.after.as_secs_f64();
            json!({ "phase": kill.phase, "after_s": after_s, "undone_s": kill.undone_s })
        };
        size::keep(&json!({
            "test": "death", "server": version.name(), "kills_undone_by_guardian": times.len(),
            "shortest_s": times[0], "median_s": median, "longest_s": longest,
            "moments": kills.iter().map(moment).collect::<Vec<Value>>(),
        }));
        assert!(!size::is_soak() || longest <= GUARDIAN_TIME_S, "{version}: {times:?}");
    }
}

/// What is held and killed, and which tables it changes, where the server has them.
const KILLED: [(&[&str], &[Table]); 4] = [
    (&["apply", "minimal", "--account", "app@%"], &[Table::Actors, Table::Threads]),
    (&["apply", "minimal", "--object", "TABLE:test.t"], &[Table::Objects]),
    (
        &["apply", "minimal", "--thread", "thread/sql/main"],
        &[Table::Threads, Table::Actors, Table::SetupThreads],
    ),
    (&["timer", "statement", "microsecond"], &[Table::Timers]),
];

/// How the threads of sessions are set.
fn threads_of(scene: &Scene, clients: &[Client]) -> Vec<[String; 2]> {
    let mut connection = scene.connect();
    let settings = |client: &Client| {
        let sql = format!(
            "SELECT INSTRUMENTED, HISTORY FROM performance_schema.threads \
             WHERE PROCESSLIST_ID = {}",
            client.connection_id()
        );
        let rows = connection.rows(&sql).unwrap();
        [0, 1].map(|at| text(&rows[0], at))
    };
    clients.iter().map(settings).collect()
}

#[test]
fn what_records_a_part_and_a_timer_are_undone_by_the_guardian_too() {
    Version::each(|version| {
        let scene = Scene::of(version);
        let connect = || {
            let connect =
                |account| Client::connect(&scene.server, Transport::Unix, account).unwrap();
            [Account::APP, Account::ROOT].map(connect)
        };
        let earlier = connect();
        let (state, threads) = (scene.read(), threads_of(&scene, &earlier));
        let before = without_threads(&state);
        let has = |table: &&Table| state.why_absent(**table).is_none();
        for (words, tables) in KILLED.iter().filter(|(_, tables)| has(&&tables[0])) {
            // Its guardian has the same pipe to say what it did.
            let (holding, _said) = until_set(scene.command(words));
            let meanwhile = connect();
            holding.kill();
            let what = format!("{version} {words:?}");
            let contents = wait_for("the guardian", || {
                scene.contents().pop().filter(|contents| contents.undone.is_some())
            });
            assert_eq!(contents.undone.unwrap().by, Undoer::Guardian, "{what}");
            for table in tables.iter().filter(has) {
                let is_changed = contents.changes.iter().any(|change| change.table == *table);
                assert!(is_changed, "{what}: {table:?} is as it was");
            }
            assert_as_before(&scene, &before, &what);
            for clients in [&earlier, &meanwhile] {
                assert_eq!(threads_of(&scene, clients), threads, "{what}");
            }
        }
    });
}

#[test]
fn what_is_killed_with_its_guardian_is_undone_by_the_next_command() {
    Version::each(|version| drop(kill_at_random(&Scene::of(version), true)));
}

/// Kills the guardian of what is held, where there is one yet.
fn kill_guardian(scene: &Scene) {
    let Some(open) = scene.contents().pop() else { return };
    if let Some(guardian) = guardian_of(&open.path) {
        kill(guardian);
        // Until it is gone, it can get the lock that it waits for.
        wait_until("the end of the guardian", || guardian_of(&open.path).is_none());
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

/// Makes it so that another process seems to have begun a journal.
fn give_to(journal: &Path, other: u32) {
    let text = read_to_string(journal).unwrap();
    let (begun, rest) = text.split_once('\n').unwrap();
    let mut begun: Value = serde_json::from_str(begun).unwrap();
    *begun.pointer_mut("/begun/pid").unwrap() = other.into();
    std::fs::write(journal, format!("{begun}\n{rest}")).unwrap();
}

#[test]
fn who_undoes_already_is_waited_for_and_no_other_process_is_ended() {
    let scene = Scene::of(Version::Mysql9);
    let before = without_threads(&scene.read());
    for words in [&["rollback"][..], &["apply", "default", "--for", "10ms"]] {
        leave_open(&scene);
        let journal = scene.contents().pop().unwrap().path;
        // The number of the process that began it is somebody else's by now.
        let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
        give_to(&journal, stranger.id());
        // As the guardian has it while it undoes.
        let undoing = Journal::take(&journal).unwrap().unwrap();
        let mut next = scene.command(words).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(next.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("is being undone") {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "{words:?}: {said}");
        }
        assert!(scene.contents().pop().unwrap().undone.is_none(), "{words:?}");
        drop(undoing);
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(next.wait().unwrap().code(), Some(0), "{words:?}: {said}");
        assert!(stranger.try_wait().unwrap().is_none(), "{words:?}: {said}");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert_as_before(&scene, &before, &words.join(" "));
    }
}

/// What a command that changes nothing says of it.
const LEFT: &str = "ended without undoing its changes";

#[test]
fn what_nobody_guards_is_told_by_every_command_and_undone_by_the_next_that_changes_something() {
    Version::each(|version| {
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
    });
}

#[test]
fn a_restart_while_changes_are_held_ends_them() {
    Version::each(|version| {
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
    });
}

#[test]
fn a_restart_of_the_server_leaves_nothing_to_undo() {
    Version::each(|version| {
        let mut scene = Scene::of(version);
        let before = without_threads(&scene.read());
        leave_open(&scene);
        scene.server.restart().unwrap();
        assert_as_before(&scene, &before, "settings outlived a restart");
        let status = stderr(&scene.run(&["status", "--interval", "10ms"]));
        assert!(!status.contains(LEFT), "{version}: {status}");
        scene.assert_run(&["rollback"], 0, &["started anew"]);
        assert_eq!(scene.contents()[0].undone.as_ref().unwrap().by, Undoer::Restart);
        assert_as_before(&scene, &before, version.name());
    });
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
