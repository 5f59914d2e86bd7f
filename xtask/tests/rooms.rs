//! Our rules that the compiler does not know: which crate may use which, where unsafe code and C
//! may stand, and what no file may contain.
//!
//! The list of crates is the block `rooms` of ARCHITECTURE.md, so the document is the rule.
#![cfg(test)]
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The longest file that a person reads in one go.
const LINES_MAX: usize = 500;
/// The only room with unsafe code, C and libbpf.
const UNSAFE_ROOM: &str = "probes";
/// Rooms that are given bytes and times, and return answers.
const PURE_ROOMS: [&str; 6] = ["account", "model", "profile", "sql", "stats", "tui"];
const IO: [&str; 6] = ["std::fs", "std::net", "std::io", "std::process", "SystemTime", "Instant"];
/// Names that say nothing: whatever is put there belongs to the room that needs it.
const DRAWERS: [&str; 6] = ["util", "utils", "common", "helper", "helpers", "manager"];
/// Every probe tells these about itself; either word will do.
const SECTIONS: [&[&str]; 5] =
    [&["question"], &["hooks"], &["price", "cost"], &["floor"], &["blind spots"]];

type Edges = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask lies in the workspace").to_owned()
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; install it"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {errors}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The packages of the workspace as cargo reads them.
fn packages() -> Vec<Value> {
    let metadata = output(env!("CARGO"), &["metadata", "--format-version=1", "--no-deps"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("cargo metadata prints JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn room_of(package: &str) -> &str {
    package.strip_prefix("waggle-").unwrap_or(package)
}

/// Every file of the project that git knows or would take, relative to the root.
fn files() -> Vec<PathBuf> {
    let listed = output("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let all = listed.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from);
    all.filter(|path| root().join(path).is_file()).collect()
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|found| extensions.iter().any(|one| found == *one))
}

fn files_with(extensions: &'static [&'static str]) -> impl Iterator<Item = PathBuf> {
    files().into_iter().filter(move |path| has_extension(path, extensions))
}

/// Texts that people write; lock files, corpora and licences are not.
fn texts() -> impl Iterator<Item = PathBuf> {
    files().into_iter().filter(|path| {
        let is_licence = path.to_string_lossy().starts_with("LICENSE");
        !has_extension(path, &["lock", "tsv", "cnf", "json", "snap", "svg", "gz"]) && !is_licence
    })
}

/// The lines of a file that hold one of `words` as a word of their own.
fn lines_with(path: &Path, words: &[String]) -> Vec<String> {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let holds = |line: &str, word: &str| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            let (first, last) = (word.chars().next(), word.chars().next_back());
            !(is_word(first) && is_word(before) || is_word(last) && is_word(after))
        })
    };
    let content = read(&root().join(path));
    let numbered = content.lines().enumerate();
    numbered
        .filter(|(_, line)| words.iter().any(|word| holds(line, word)))
        .map(|(at, line)| format!("{}:{}: {}", path.display(), at + 1, line.trim()))
        .collect()
}

/// Fails with every finding, and with what to do about it.
fn none(findings: impl IntoIterator<Item = String>, remedy: &str) {
    let findings: Vec<String> = findings.into_iter().collect();
    assert!(findings.is_empty(), "{remedy}:\n  {}", findings.join("\n  "));
}

/// The edges that ARCHITECTURE.md allows.
fn allowed() -> Edges {
    let path = root().join("ARCHITECTURE.md");
    assert!(path.is_file(), "ARCHITECTURE.md is missing: it holds the list of rooms");
    let content = read(&path);
    let inside = content.lines().skip_while(|line| line.trim() != "```rooms").skip(1);
    let mut edges = Edges::new();
    for line in inside.take_while(|line| line.trim() != "```") {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (room, uses) = line.split_once("->").unwrap_or_else(|| {
            panic!("ARCHITECTURE.md: `{line}` is no line of the rooms; write `room -> room room`")
        });
        let uses = uses.split_whitespace().filter(|room| !matches!(*room, "-" | "–" | "nothing"));
        let known = edges.insert(room.trim().to_owned(), uses.map(str::to_owned).collect());
        assert!(known.is_none(), "ARCHITECTURE.md: `{}` has two lines", room.trim());
    }
    assert!(!edges.is_empty(), "ARCHITECTURE.md has no block that begins with ```rooms");
    edges
}

/// The edges that the manifests have; what only the tests of a crate need is free.
fn actual() -> Edges {
    let packages = packages();
    let names: BTreeSet<String> =
        packages.iter().map(|one| text(&one["name"]).to_owned()).collect();
    let uses = |package: &Value| -> BTreeSet<String> {
        let all = package["dependencies"].as_array().into_iter().flatten();
        all.filter(|one| text(&one["kind"]) != "dev" && names.contains(text(&one["name"])))
            .map(|one| room_of(text(&one["name"])).to_owned())
            .collect()
    };
    packages.iter().map(|one| (room_of(text(&one["name"])).to_owned(), uses(one))).collect()
}

#[test]
fn every_edge_between_rooms_stands_in_the_architecture() {
    let (allowed, actual) = (allowed(), actual());
    let mut findings = Vec::new();
    for (room, uses) in &actual {
        let Some(may) = allowed.get(room) else {
            findings.push(format!("{room}: not in ARCHITECTURE.md; add `{room} -> …` to the list"));
            continue;
        };
        findings.extend(uses.difference(may).map(|used| {
            format!("{room} -> {used}: remove the dependency, or decide for it in docs/decisions")
        }));
        findings.extend(may.difference(uses).map(|used| {
            format!("{room} -> {used}: allowed but not used; remove it from ARCHITECTURE.md")
        }));
    }
    let gone = allowed.keys().filter(|room| !actual.contains_key(*room));
    findings.extend(gone.map(|room| format!("{room}: no such crate; remove its line")));
    none(findings, "the manifests and the block `rooms` of ARCHITECTURE.md differ");
}

#[test]
fn unsafe_code_is_forbidden_in_every_room_but_probes() {
    let mut findings = Vec::new();
    for package in packages() {
        for target in package["targets"].as_array().into_iter().flatten() {
            let kinds = target["kind"].as_array().into_iter().flatten();
            let is_product = kinds.map(text).any(|kind| kind == "lib" || kind == "bin");
            let source = PathBuf::from(text(&target["src_path"]));
            let forbids = read(&source).contains("#![forbid(unsafe_code)]");
            if is_product && !forbids && room_of(text(&package["name"])) != UNSAFE_ROOM {
                findings.push(source.display().to_string());
            }
        }
    }
    none(findings, "write #![forbid(unsafe_code)] at the top of these");
}

#[test]
fn c_stands_only_in_probes_and_in_the_bench() {
    let may = |path: &Path| path.starts_with("crates/probes") || path.starts_with("bench");
    let strays = files_with(&["c", "h", "S", "cc", "cpp"]).filter(|path| !may(path));
    none(strays.map(|path| path.display().to_string()), "move these C files to crates/probes");
}

#[test]
fn no_file_or_folder_has_a_name_that_says_nothing() {
    let says_nothing = |path: &Path| {
        path.iter().any(|part| {
            let stem = Path::new(part).file_stem().and_then(|stem| stem.to_str());
            stem.is_some_and(|stem| DRAWERS.contains(&stem.to_lowercase().as_str()))
        })
    };
    let found = files().into_iter().filter(|path| says_nothing(path));
    none(found.map(|path| path.display().to_string()), "name these after what they do");
}

#[test]
fn no_file_is_longer_than_a_person_reads() {
    let long = files_with(&["rs", "c", "h", "py", "md", "toml", "sh"]).filter_map(|path| {
        let lines = read(&root().join(&path)).lines().count();
        (lines > LINES_MAX).then(|| format!("{}: {lines} lines", path.display()))
    });
    none(long, &format!("split what is longer than {LINES_MAX} lines"));
}

#[test]
fn the_kept_results_have_at_most_5_mb() {
    let kept = files().into_iter().filter(|path| path.starts_with("bench/results"));
    let bytes: u64 =
        kept.filter_map(|path| fs::metadata(root().join(path)).ok()).map(|it| it.len()).sum();
    assert!(bytes <= 5_000_000, "bench/results has {bytes} bytes: keep summaries, pack windows");
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here, so that this file does not hold them.
    let words =
        ["TO DO", "FIX ME", "XX X", "to do!", "unimplemen ted!"].map(|word| word.replace(' ', ""));
    let found = texts().flat_map(|path| lines_with(&path, &words));
    none(found, "do it now, or write an issue and remove the line");
}

#[test]
fn no_test_is_switched_off() {
    let words = ["#[ig nore", "#![ig nore"].map(|word| word.replace(' ', ""));
    let found = files_with(&["rs"]).flat_map(|path| {
        let holds = |line: &&str| words.iter().any(|word| line.contains(word));
        let content = read(&root().join(&path));
        let lines: Vec<String> = content.lines().filter(holds).map(str::to_owned).collect();
        lines.into_iter().map(move |line| format!("{}: {}", path.display(), line.trim()))
    });
    none(found, "a test that cannot run fails and says what is missing; move it or remove it");
}

#[test]
fn no_probe_names_another_and_what_they_share_names_none() {
    let source = Path::new("crates/probes/src");
    let rooms: BTreeSet<String> = files()
        .iter()
        .filter_map(|path| path.strip_prefix(source).ok()?.parent()?.iter().next())
        .map(|room| room.to_string_lossy().into_owned())
        .collect();
    let has_program = |room: &&String| root().join(source).join(room).join("mod.bpf.c").is_file();
    let probes: Vec<&String> = rooms.iter().filter(has_program).collect();
    assert!(probes.len() > 1, "no probe found below {}", source.display());
    let mut findings = Vec::new();
    // `capture` joins the probes.
    for room in rooms.iter().filter(|room| *room != "capture") {
        let others = probes.iter().filter(|probe| **probe != room);
        let words: Vec<String> =
            others.flat_map(|probe| [format!("crate::{probe}"), format!("../{probe}/")]).collect();
        let here = files_with(&["rs", "c", "h"]).filter(|path| path.starts_with(source.join(room)));
        let lines = here.flat_map(|path| lines_with(&path, &words));
        findings.extend(lines.filter(|line| !line.contains("//")));
    }
    none(
        findings,
        "move what they share to carrier, or let capture.rs pass it from one to the other",
    );
}

#[test]
fn every_probe_tells_its_question_its_hooks_its_price_its_floor_and_its_blind_spots() {
    let mut findings = Vec::new();
    let programs = files()
        .into_iter()
        .filter(|path| path.starts_with("crates/probes/src") && path.ends_with("mod.bpf.c"));
    for program in programs {
        let path = program.with_file_name("README.md");
        if !root().join(&path).is_file() {
            findings.push(format!("{}: missing", path.display()));
            continue;
        }
        let sections = sections(&read(&root().join(&path)));
        for words in SECTIONS {
            let named = |title: &str| words.iter().any(|word| title.to_lowercase().contains(word));
            match sections.iter().find(|(title, _)| named(title)) {
                None => findings.push(format!("{}: no section {}", path.display(), words[0])),
                Some((title, body)) if body.trim().is_empty() => {
                    findings.push(format!("{}: section {title} is empty", path.display()));
                }
                Some((title, body)) if words[0] == "price" && !holds_a_date(body) => {
                    findings.push(format!("{}: section {title} has no date", path.display()));
                }
                Some(_) => {}
            }
        }
    }
    none(findings, "write what is missing in the README of the probe");
}

/// Title and body of every section: a heading, or a paragraph that begins in bold.
fn sections(content: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in content.lines() {
        if let Some(title) = line.strip_prefix('#') {
            sections.push((title.trim_matches('#').trim().to_owned(), String::new()));
        } else if let Some((title, rest)) =
            line.strip_prefix("**").and_then(|rest| rest.split_once("**"))
        {
            sections.push((title.to_owned(), rest.trim_start_matches([':', ',']).to_owned()));
        } else if let Some((_, body)) = sections.last_mut() {
            body.push_str(line);
            body.push('\n');
        }
    }
    sections
}

/// Whether a text holds a date such as 2026-11-21.
fn holds_a_date(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit() && c != '-').any(|word| {
        let mut parts = word.split('-').map(str::len);
        (parts.next(), parts.next(), parts.next(), parts.next())
            == (Some(4), Some(2), Some(2), None)
    })
}

#[test]
fn the_pure_rooms_do_no_input_or_output_and_read_no_clock() {
    let words = IO.map(str::to_owned);
    let is_test = |path: &Path| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        stem == "tests" || stem.ends_with("_tests")
    };
    let mut findings = Vec::new();
    for path in files_with(&["rs"]).filter(|path| !is_test(path)) {
        if !PURE_ROOMS.iter().any(|room| path.starts_with(format!("crates/{room}/src"))) {
            continue;
        }
        let content = read(&root().join(&path));
        let tests = content.lines().position(|line| line.trim() == "#[cfg(test)]");
        let is_product = |finding: &String| {
            let line = finding.split(':').nth(1).and_then(|line| line.parse::<usize>().ok());
            tests.is_none_or(|tests| line.is_some_and(|line| line <= tests))
        };
        findings.extend(lines_with(&path, &words).into_iter().filter(is_product));
    }
    none(findings, "give these rooms bytes and times from outside");
}

#[test]
fn one_file_writes_to_the_standard_streams() {
    let words = ["io::stdout()", "io::stderr()", "println!", "eprintln!", "print!", "eprint!"];
    let words = words.map(str::to_owned);
    let is_product = |path: &PathBuf| {
        let is_source = path.starts_with("crates") && path.iter().any(|part| part == "src");
        // A child of waggle answers to waggle; the test kit and the frame of the fuzzers are no part of the binary.
        let others =
            ["waggle/src/streams.rs", "probes/src/servers/child.rs", "private_server/src/look.rs"];
        is_source
            && !others.iter().any(|other| path.ends_with(other))
            && !path.starts_with("crates/fuzz_frame")
            && !path.starts_with("crates/testkit")
    };
    let findings =
        files_with(&["rs"]).filter(is_product).flat_map(|path| lines_with(&path, &words));
    // To ask what a stream is writes nothing; and a comment does not either.
    let asks = |line: &String| ["is_terminal", "tcget", "//"].iter().any(|it| line.contains(it));
    none(
        findings.filter(|line| !asks(line)),
        "write by crates/waggle/src/streams.rs, which lets no escape sequence of others through",
    );
}

#[test]
fn no_file_names_a_path_of_the_machine_it_was_written_on() {
    // Put together here, so that this file does not hold them.
    let places = ["/wo rk/", "/ro ot/", "/ho me/", "/Us ers/", "/tmp/se tup"];
    let places = places.map(|place| place.replace(' ', ""));
    let found = texts().flat_map(|path| {
        let content = read(&root().join(&path));
        let numbered = content.lines().enumerate();
        // Behind the number of a process it is the directory that the process has as its root.
        let is_of_process = |line: &str, at| line[..at].ends_with(|c: char| c.is_ascii_digit());
        let has = |line: &str, place: &str| {
            line.match_indices(place).any(|(at, _)| !is_of_process(line, at))
        };
        let holds = |line: &str| places.iter().any(|place| has(line, place));
        let lines: Vec<String> = numbered
            .filter(|(_, line)| holds(line))
            .map(|(at, line)| format!("{}:{}: {}", path.display(), at + 1, line.trim()))
            .collect();
        lines
    });
    none(found, "write a path that holds everywhere, or ask the environment for it");
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut findings = Vec::new();
    for path in files_with(&["md"]) {
        let content = read(&root().join(&path));
        let targets = content.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let here = root().join(path.parent().unwrap_or(Path::new("")));
        for target in targets.filter(|target| !target.contains("://")) {
            let file = target.split('#').next().unwrap_or_default();
            if !file.is_empty() && !here.join(file).exists() {
                findings.push(format!("{}: {target}", path.display()));
            }
        }
    }
    none(findings, "mend these links");
}
