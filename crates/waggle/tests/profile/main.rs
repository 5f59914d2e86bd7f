//! `waggle profile` on real servers of all five versions: whose time it was, and in which functions.
#![cfg(test)]

mod picture;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::Value;
use tempfile::TempDir;
use waggle_testkit::sysbench::Sysbench;
use waggle_testkit::{Client, Server, Version, wait_until};

/// Hashes for some milliseconds.
const HASH: &str = "DO BENCHMARK(20000, SHA2(CONCAT('one', REPEAT('two', 100)), 512))";
/// Converts for some milliseconds.
const CONVERT: &str = "DO BENCHMARK(4000, CONVERT(CONCAT(RAND(), REPEAT('é€', 200)) USING utf16))";

/// Reads a table of sysbench to its end.
const SCAN: &str = "SELECT COUNT(*), MAX(pad) FROM test.sbtest1 WHERE c LIKE '%7-1%9'";

/// Sleeps with a lock that others want.
const SLEEP_WITH_LOCK: &str = "UPDATE test.sbtest1 SET k = k + SLEEP(0.02) WHERE id = 1";

/// A session that runs statements again and again.
struct Load {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    fn on(server: &Server, statements: &'static [&'static str]) -> Load {
        let mut session = utf8(server);
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = is_over.clone();
        let run = move || {
            // It ends with the server, too.
            let mut statements = statements.iter().cycle();
            let mut run = || statements.next().is_some_and(|sql| session.run(sql).is_ok());
            while !flag.load(Ordering::Relaxed) && run() {}
        };
        Load { is_over, thread: Some(spawn(run)) }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn utf8(server: &Server) -> Client {
    let mut session = server.root().unwrap();
    session.run("SET NAMES utf8mb4").unwrap();
    session
}

fn command(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waggle"));
    command.args(["profile", "--json", "--pid", &server.pid().to_string()]).args(arguments);
    if !arguments.contains(&"--off-cpu") {
        command.args(["--hz", "499"]);
    }
    command
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"))
}

/// The profile of a server that runs statements again and again.
fn profile(server: &Server, load: &'static [&'static str], arguments: &[&str]) -> Value {
    profile_under(server, || Load::on(server, load), arguments)
}

/// The profile of a server under a load, which ends when it is dropped.
fn profile_under<L>(server: &Server, load: impl FnOnce() -> L, arguments: &[&str]) -> Value {
    let child = started(server, arguments);
    let load = load();
    let output = child.wait_with_output().unwrap();
    drop(load);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    json(&output)
}

/// Starts it, and returns when it samples. The server is idle until then: to read its program takes long where all
/// processors are busy.
fn started(server: &Server, arguments: &[&str]) -> Child {
    let mut command = command(server, arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let events = format!("/proc/{}/fd", child.id());
    let wanted = if arguments.contains(&"--off-cpu") { "bpf_link" } else { "perf_event" };
    wait_until("it samples", || {
        if child.try_wait().unwrap().is_some() {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{}: {said}", server.version());
        }
        let open = fs::read_dir(&events).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| target.to_string_lossy().contains(wanted))
    });
    child
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The share of samples with a digest or the name of a thread.
fn attributed(profile: &Value) -> f64 {
    let known = &profile["attributed"];
    (number(&known["to_digests"]) + number(&known["to_threads"])) / number(&profile["samples"])
}

fn has_enough(profile: &Value) {
    assert!(number(&profile["samples"]) >= 50.0, "{profile:#}");
    assert!(attributed(profile) >= 0.95, "{profile:#}");
    assert_eq!(profile["lost"], 0, "{profile:#}");
    let callers = &profile["callers"];
    let all = ["known", "broken", "cut"].map(|kind| number(&callers[kind])).iter().sum::<f64>();
    assert_eq!(all, number(&profile["samples"]), "{profile:#}");
    assert_eq!(profile["nameless"], serde_json::json!([]), "{profile:#}");
    let outside = number(&profile["samples"]) - number(&profile["in_kernel"]);
    assert!(number(&profile["without_name"]) <= outside, "{profile:#}");
}

/// The share of the digest whose text has this word.
fn share_of(profile: &Value, word: &str) -> f64 {
    let has = |one: &&Value| one["digest_text"].as_str().is_some_and(|text| text.contains(word));
    let digest = profile["digests"].as_array().unwrap().iter().find(has);
    number(&digest.unwrap_or_else(|| panic!("no {word}: {profile:#}"))["share"])
}

/// The functions of which one of these words is said, with their ranks. The functions of a library have no names in some
/// builds, and then named callers.
fn functions<'a>(
    profile: &'a Value,
    words: &'a [&str],
) -> impl Iterator<Item = (usize, &'a Value)> {
    let all = profile["functions"].as_array().unwrap().iter().enumerate();
    all.filter(|(_, one)| {
        let said = format!("{} {} {}", one["function"], one["caller"], one["file"]).to_lowercase();
        words.iter().any(|word| said.contains(word))
    })
}

/// Whose time it was, and in which functions, is told on a server of this version.
fn told(version: Version) {
    let server = Server::start(version).unwrap();
    hashing_and_conversion(&server);
    let sysbench = Sysbench { tables: 1, table_size: 3000, ..Sysbench::endless("oltp_read_write") };
    let sysbench = Sysbench { threads: 2, ..sysbench };
    sysbench.prepare(&server).unwrap();
    let load = || (sysbench.start(&server).unwrap(), Load::on(&server, &[SCAN]));
    let profile = profile_under(&server, load, &["--for", "1s"]);
    has_enough(&profile);
    for (word, least) in [("LIKE", 0.1), ("SELECT `c` FROM `sbtest1`", 0.0), ("COMMIT", 0.0)] {
        assert!(share_of(&profile, word) > least, "{word}: {profile:#}");
    }
    waits(&server);
}

/// Of two sessions one sleeps with the lock of a row, and the other one waits for it: their digest, both classes and the
/// functions that wait are told.
fn waits(server: &Server) {
    let folder = TempDir::new().unwrap();
    let [folded, svg] = ["waits.folded", "waits.svg"].map(|name| folder.path().join(name));
    let files = ["--folded", folded.to_str().unwrap(), "--svg", svg.to_str().unwrap()];
    let arguments = [&["--off-cpu", "--for", "2s"][..], &files].concat();
    let load = || [(); 2].map(|()| Load::on(server, &[SLEEP_WITH_LOCK]));
    let profile = profile_under(server, load, &arguments);
    // At both ends there are waits and statements that were not seen whole.
    assert!(number(&profile["lost"]) <= 2.0, "{profile:#}");
    assert!(attributed(&profile) > 0.85, "{profile:#}");
    assert!(share_of(&profile, "SLEEP") > 0.85, "{profile:#}");
    for class in ["[sleep]", "[row lock]"] {
        let words = [class];
        let share: f64 =
            functions(&profile, &words).map(|(_, one)| number(&one["self_share"])).sum();
        assert!(share > 0.2, "{class}: {profile:#}");
    }
    let stacks = fs::read_to_string(&folded).unwrap();
    let is_whole = |line: &str| line.contains("command") && line.contains(";[row lock] ");
    assert!(stacks.lines().any(is_whole), "{stacks}");
    let callers = number(&profile["callers"]["known"]) / number(&profile["samples"]);
    assert!(callers > 0.9, "{stacks}");
    drawn(&svg, &profile, "UPDATE `test`");
    let frames = picture::frames(&svg);
    let is_so = |frame: &&picture::Frame| frame.class == "row-lock";
    let locks: f64 = frames.iter().filter(is_so).map(|frame| frame.width).sum();
    assert!(locks / frames[0].width > 0.2, "{frames:#?}");
}

/// A flame graph has all samples, and says of the digest whose text begins so what the output says.
fn drawn(svg: &Path, profile: &Value, text: &str) {
    let frames = picture::frames(svg);
    picture::fits_together(&frames);
    let root = &frames[0];
    assert_eq!((root.class.as_str(), root.title[0].as_str()), ("all", "all"));
    if profile["off_cpu"] == false {
        assert_eq!(root.title[1], format!("{} samples, 100.0 %", profile["samples"]));
    }
    let told = profile["digests"].as_array().unwrap().iter();
    let mut told = told.filter(|one| one["digest_text"].as_str().unwrap().starts_with(text));
    let told = told.next().unwrap_or_else(|| panic!("no {text}: {profile:#}"));
    let id = format!("digest {}", told["digest"].as_str().unwrap());
    let is_it = |frame: &&picture::Frame| frame.class == "digest" && frame.title[1] == id;
    let digest = frames.iter().find(is_it).unwrap_or_else(|| panic!("no {id}: {frames:#?}"));
    assert!(digest.title[0].starts_with(text), "{digest:?}");
    let share = digest.width / root.width;
    assert!((share - number(&told["share"])).abs() < 0.0001, "{digest:?}: {told:#}");
}

/// Both are told by their digests and by their functions, which are the first ones.
fn hashing_and_conversion(server: &Server) {
    const HASHING: [&str; 2] = ["sha", "crypt"];
    const CONVERTING: [&str; 7] =
        ["convert", "string::copy", "string::set", "utf", "well_formed", "validate", "my_mb"];
    let profile = profile(server, &[HASH, CONVERT], &["--for", "2s", "--limit", "60"]);
    has_enough(&profile);
    let (hashes, converts) = (share_of(&profile, "SHA2"), share_of(&profile, "utf16"));
    assert!(hashes > 0.05 && converts > 0.05, "{profile:#}");
    assert!(hashes + converts > 0.5, "{profile:#}");
    let itself: f64 =
        functions(&profile, &HASHING).map(|(_, one)| number(&one["self_share"])).sum();
    assert!(itself > hashes / 4.0, "{itself}: {profile:#}");
    for words in [&HASHING[..], &CONVERTING] {
        let first = functions(&profile, words).next().map(|(rank, _)| rank);
        assert!(first.is_some_and(|rank| rank < 8), "{words:?}: {first:?}: {profile:#}");
    }
    let conversion = &profile["conversion"];
    assert!(number(&conversion["share"]) > converts / 4.0, "{profile:#}");
    assert!(conversion["converting"][0]["function"].is_string(), "{profile:#}");
}

#[test]
fn statements_and_functions_have_their_time_on_mysql_57() {
    told(Version::Mysql57);
}

#[test]
fn statements_and_functions_have_their_time_on_mysql_80() {
    told(Version::Mysql80);
}

#[test]
fn statements_and_functions_have_their_time_on_mysql_9() {
    told(Version::Mysql9);
}

#[test]
fn statements_and_functions_have_their_time_on_mariadb_1011() {
    told(Version::Mariadb1011);
}

#[test]
fn statements_and_functions_have_their_time_on_mariadb_114() {
    told(Version::Mariadb114);
}

#[test]
fn the_files_hold_what_the_output_says() {
    let server = Server::start(Version::Mysql9).unwrap();
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [folded, pprof, svg] = ["stacks.folded", "cpu.pb.gz", "flame.svg"].map(path);
    let files = ["--folded", &folded, "--pprof", &pprof, "--svg", &svg];
    let arguments = [&["--for", "1s", "--limit", "100000"][..], &files].concat();
    let one = profile(&server, &[HASH], &arguments);
    let stacks = fs::read_to_string(&folded).unwrap();
    let counts =
        stacks.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
    assert_eq!(counts.sum::<f64>(), number(&one["samples"]));
    assert!(stacks.lines().any(|line| line.starts_with("DO `BENCHMARK`")), "{stacks}");
    let mut unpacked = Vec::new();
    GzDecoder::new(fs::File::open(&pprof).unwrap()).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked.windows(11).any(|bytes| bytes == b"nanoseconds"));
    drawn(Path::new(&svg), &one, "DO `BENCHMARK`");
    // The function that used the most, too.
    let most = one["functions"][0]["function"].as_str().unwrap();
    let frames = picture::frames(Path::new(&svg));
    assert!(frames.iter().any(|frame| frame.title[0] == most), "no {most}: {frames:#?}");

    // What has no name is as much as all functions without one.
    let all = one["functions"].as_array().unwrap().iter();
    let nameless = all.filter(|one| one["named"] == false && one["file"] != "[kernel]");
    let itself = nameless.map(|one| number(&one["self_samples"])).sum::<f64>();
    assert_eq!(number(&one["without_name"]), itself);

    // The same, of one digest alone.
    let digest = one["digests"][0]["digest"].as_str().unwrap();
    let only = profile(&server, &[HASH], &["--for", "1s", "--digest", digest]);
    assert_eq!(only["attributed"]["to_digests"], only["samples"]);
    assert!(number(&only["samples_of_all"]) >= number(&only["samples"]));
    let output =
        command(&server, &["--for", "1s", "--digest", "0000000000000001"]).output().unwrap();
    assert_eq!((output.status.code(), &json(&output)["samples"]), (Some(1), &Value::from(0)));
    for option in ["--folded", "--svg"] {
        let arguments = ["--for", "1s", option, "/nowhere/stacks"];
        let output = command(&server, &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{option}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("/nowhere/stacks"), "{option}: {said}");
    }
}

#[test]
fn a_statement_that_runs_all_the_time_has_its_digest() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let child = started(&server, &["--for", "2s"]);
    let load = Load::on(&server, &["DO BENCHMARK(2000000000, 1 + 1)"]);
    let profile = json(&child.wait_with_output().unwrap());
    has_enough(&profile);
    let top = &profile["digests"][0];
    assert!(top["digest_text"].as_str().unwrap().contains("BENCHMARK"), "{profile:#}");
    drop(server);
    drop(load);
}

#[test]
fn a_server_that_dies_has_the_profile_of_its_life() {
    let mut server = Server::start(Version::Mysql80).unwrap();
    let child = started(&server, &["--for", "60s"]);
    let load = Load::on(&server, &[HASH]);
    sleep(Duration::from_millis(2500));
    server.kill9().unwrap();
    let output = child.wait_with_output().unwrap();
    drop(load);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let profile = json(&output);
    assert!(number(&profile["length_s"]) < 50.0, "it does not wait for more: {profile:#}");
    assert!(number(&profile["samples"]) > 50.0, "{profile:#}");
    assert!(attributed(&profile) >= 0.9, "{profile:#}");
    let why = profile["nameless"].to_string();
    assert!(why.contains("has ended"), "{profile:#}");
    let functions = profile["functions"].as_array().unwrap();
    assert!(
        functions.iter().any(|one| one["named"] == true),
        "names that were known stay: {profile:#}"
    );
}

#[test]
fn waits_that_are_left_out_are_not_shown_as_none() {
    let mut waggle = Command::new(env!("CARGO_BIN_EXE_waggle"));
    let output = waggle.args(["profile", "--off-cpu", "--no-waits"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--off-cpu shows the waits") && output.stdout.is_empty(), "{said}");
}

#[test]
fn who_may_not_sample_is_told_what_is_missing() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let pid = server.pid().to_string();
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"];
    let mut command = Command::new("setpriv");
    command.args(nobody).args(["--inh-caps=-all", env!("CARGO_BIN_EXE_waggle")]);
    let output = command.args(["profile", "--for", "1s", "--pid", &pid]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("CAP_PERFMON"), "{said}");
}
