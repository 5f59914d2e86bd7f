//! Two runs held against each other: those that are kept, and copies in which one thing differs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use waggle_lab::Manifest;
use waggle_lab::run_dir::{PACKED_WINDOWS, RUN, WINDOWS, read_run, read_windows};

use super::kept_runs::kept_runs;
use super::{Place, ended, stderr, windows};

const ARM: &str = "pfson_conon_inson";

/// The last kept run of a suite that has windows of an arm, unpacked at this place.
fn kept(place: &Place, suite: &str, arm: &str) -> PathBuf {
    let is_of_suite = |run: &PathBuf| {
        let manifest: Manifest = read_run(run).unwrap();
        manifest.suite == suite && read_windows(run).unwrap().iter().any(|one| one.arm == arm)
    };
    let run = kept_runs().into_iter().rfind(is_of_suite).unwrap();
    let unpacked = place.dir.path().join(suite);
    fs::create_dir(&unpacked).unwrap();
    fs::copy(run.join(RUN), unpacked.join(RUN)).unwrap();
    let packed = File::open(run.join(PACKED_WINDOWS)).unwrap();
    let mut windows = File::create(unpacked.join(WINDOWS)).unwrap();
    io::copy(&mut GzDecoder::new(packed), &mut windows).unwrap();
    unpacked
}

/// A copy of a run.
fn copy(run: &Path, to: PathBuf) -> PathBuf {
    fs::create_dir(&to).unwrap();
    for name in [RUN, WINDOWS] {
        fs::copy(run.join(name), to.join(name)).unwrap();
    }
    to
}

#[test]
fn runs_in_which_an_arm_costs_something_else_are_told_apart_with_exit_code_1() {
    let place = Place::new();
    let run = kept(&place, "rds", ARM);
    let other = copy(&run, place.dir.path().join("other"));
    let lines = windows(&run).into_iter().map(|mut window| {
        let cpu_ns = window["measured"]["server_cpu_ns"].as_u64();
        if let Some(cpu_ns) = cpu_ns.filter(|_| window["arm"] == ARM) {
            window["measured"]["server_cpu_ns"] = json!(2 * cpu_ns);
        }
        format!("{window}\n")
    });
    fs::write(other.join("windows.jsonl"), lines.collect::<String>()).unwrap();
    let [run, other] = [run, other].map(|path| path.display().to_string());
    let compared = place.lab(&["compare", &run, &other, "--json"]).output().unwrap();
    assert_eq!(compared.status.code(), Some(1), "{}", stderr(&compared));
    let answer: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let differences = answer["differences"].as_array().unwrap();
    let (different, alike): (Vec<&Value>, Vec<&Value>) =
        differences.iter().partition(|one| one["different"] == true);
    assert!(!different.is_empty() && !alike.is_empty(), "{answer}");
    assert!(different.iter().all(|one| one["scenario"] == ARM), "{different:?}");
    let compared = place.lab(&["compare", &run, &other]).output().unwrap();
    let printed = String::from_utf8(compared.stdout).unwrap();
    assert!(printed.contains("Effects that differ"), "{printed}");
}

#[test]
fn runs_that_ask_different_questions_are_not_compared() {
    let place = Place::new();
    let run = kept(&place, "rds", ARM);
    let other = copy(&run, place.dir.path().join("other"));
    let mut manifest: Value =
        serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    // What is published are changes against the baseline of the source.
    let (text, _) = manifest["suite_text"].as_str().unwrap().split_once("[[published").unwrap();
    let (before, columns) = text.split_once("columns = [").unwrap();
    let (_, after) = columns.split_once("]\n").unwrap();
    let text = format!("{before}columns = []\n{after}");
    let text = text.replace("baseline = \"pfsoff\"", "baseline = \"pfson_conoff_insoff\"");
    manifest["suite_text"] = json!(text);
    fs::write(other.join("run.json"), manifest.to_string()).unwrap();
    for (other, expected) in [
        (kept(&place, "line", "default"), "only runs of one suite can be compared"),
        (other, "effects against two baselines are two questions"),
    ] {
        let [run, other] = [&run, &other].map(|path| path.display().to_string());
        let compared = place.lab(&["compare", &run, &other]).output();
        assert!(compared.as_ref().unwrap().stdout.is_empty());
        let said = ended(compared, 3);
        assert!(said.contains(expected) && said.contains(&other), "{said}");
    }
}
