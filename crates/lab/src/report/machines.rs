//! On which computers, and by which waggle, the windows were made, where a run was taken up again.

use std::collections::BTreeMap;

use crate::report::{Report, circumstances};
use crate::run_info::Host;

/// Of windows before and after.
const NOT_COMPARED: &str =
    "No window is compared with one from before, but means and intervals are over all.";

/// What a reader has to know where not all windows were made on one computer and by one waggle, or where the computer is
/// not known, a sentence each.
pub(super) fn caveats(report: Report<'_>) -> Vec<String> {
    let info = report.info;
    let (mut caveats, mut hosts, mut waggles) = (Vec::new(), Vec::new(), Vec::new());
    let (mut before, mut by) = (&info.host, info.run.waggle_version.as_str());
    for (part, from) in begins(report) {
        match info.waggle_of(part) {
            Some(now) if now != by => {
                caveats.push(format!(
                    "Windows from {from} on were made by waggle {now}, those before by waggle {by}, which may have \
                     measured otherwise. {NOT_COMPARED}"
                ));
                by = now;
            }
            Some(_) => {}
            None => waggles.push(from.to_string()),
        }
        let Some(host) = info.host_of(part) else {
            hosts.push(from.to_string());
            continue;
        };
        let differences = differences(before, host);
        if !differences.is_empty() {
            caveats.push(format!(
                "Windows from {from} on were made on another machine, or on one that had changed: {}. \
                 {NOT_COMPARED}",
                differences.join("; ")
            ));
        }
        before = host;
    }
    caveats.extend(not_kept(&hosts, "whether the machine was the same afterwards"));
    caveats.extend(not_kept(&waggles, "which waggle went on with it"));
    caveats
}

/// What is not known of the parts that begin with these windows; `None` where there are none.
fn not_kept(begins: &[String], what: &str) -> Option<String> {
    (!begins.is_empty()).then(|| {
        let begins = begins.join(", ");
        format!("The run was interrupted before window {begins}; {what} was not kept.")
    })
}

/// The parts of the run that made windows, each with the number of its first one.
fn begins(report: Report<'_>) -> BTreeMap<u32, u32> {
    let mut begins = BTreeMap::new();
    for window in report.windows {
        let begin = begins.entry(window.part).or_insert(window.number);
        *begin = window.number.min(*begin);
    }
    begins
}

/// Every fact in which two computers differ, as the table of the circumstances has it.
fn differences(before: &Host, after: &Host) -> Vec<String> {
    let info = circumstances::host(before).into_iter().zip(circumstances::host(after));
    info.filter(|(before, after)| before != after)
        .map(|((name, before), (_, after))| format!("{name} {after}, before {before}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::report::sample::{analysis, info, report, suite, window};
    use crate::run_info::{RunInfo, TakenUp};
    use crate::window::Window;

    use super::*;

    /// Two windows of each part.
    fn windows(parts: &[u32]) -> Vec<Window> {
        let parts = parts.iter().flat_map(|part| [*part; 2]);
        let windows = (0..).zip(parts);
        windows.map(|(number, part)| Window { part, ..window(number, "pfsoff", 40.0) }).collect()
    }

    fn taken_up(parts: &[(u32, Host)]) -> RunInfo {
        let waggle_version = Some(info().run.waggle_version);
        let taken_up = parts.iter().map(|(part, host)| TakenUp {
            part: *part,
            host: host.clone(),
            waggle_version: waggle_version.clone(),
        });
        RunInfo { taken_up: taken_up.collect(), ..info() }
    }

    fn said(info: &RunInfo, windows: &[Window]) -> Vec<String> {
        let (suite, analysis) = (suite(), analysis());
        caveats(Report { suite: &suite, info, windows, analysis: &analysis })
    }

    fn others() -> Host {
        let host = info().host;
        Host { kernel: "6.18.0".to_owned(), processors: 8, memory_bytes: Some(16 << 30), ..host }
    }

    #[test]
    fn windows_of_another_machine_are_told_with_what_differs_and_the_way_back_too() {
        let (first, second) = (info().host, others());
        let info = taken_up(&[(1, second.clone()), (2, second), (3, first)]);
        let rest =
            "No window is compared with one from before, but means and intervals are over all.";
        assert_eq!(
            said(&info, &windows(&[0, 1, 2, 3])),
            [
                format!(
                    "Windows from 2 on were made on another machine, or on one that had changed: \
                     CPUs 8 online, before 2 online; memory 16.00 GiB, before 8.000 GiB; kernel \
                     6.18.0, before 6.1.0. {rest}"
                ),
                format!(
                    "Windows from 6 on were made on another machine, or on one that had changed: \
                     CPUs 2 online, before 8 online; memory 8.000 GiB, before 16.00 GiB; kernel \
                     6.1.0, before 6.18.0. {rest}"
                ),
            ]
        );
    }

    #[test]
    fn windows_of_another_waggle_are_told_and_those_of_one_that_was_not_kept() {
        let mut info = taken_up(&[(1, info().host), (2, info().host), (3, info().host)]);
        info.taken_up[1].waggle_version = Some("0.2.0 abc".to_owned());
        info.taken_up[2].waggle_version = None;
        let said = said(&info, &windows(&[0, 1, 2, 3]));
        let first = &info.run.waggle_version;
        assert_eq!(said.len(), 2, "{said:?}");
        let begin = format!(
            "Windows from 4 on were made by waggle 0.2.0 abc, those before by waggle {first}, "
        );
        assert!(said[0].starts_with(&begin), "{said:?}");
        let unknown =
            "The run was interrupted before window 6; which waggle went on with it was not kept.";
        assert_eq!(said[1], unknown);
    }

    #[test]
    fn of_one_machine_and_of_one_that_made_no_window_nothing_is_told() {
        assert_eq!(said(&info(), &windows(&[0])), Vec::<String>::new());
        let same = taken_up(&[(1, info().host), (2, others())]);
        assert_eq!(said(&same, &windows(&[0, 1])), Vec::<String>::new());
    }

    #[test]
    fn a_machine_that_was_not_kept_is_not_taken_for_the_same() {
        let said = said(&taken_up(&[(3, info().host)]), &windows(&[0, 1, 2, 3]));
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said.iter().all(|one| one.contains("before window 2, 4;")), "{said:?}");
    }

    #[test]
    fn every_form_of_the_report_tells_it() {
        let (suite, info) = (suite(), taken_up(&[(1, others())]));
        let (windows, analysis) = (windows(&[0, 1]), analysis());
        let report = report(&suite, &info, &windows, &analysis);
        for text in [report.html(), report.markdown(), report.json(), report.effects()] {
            assert!(text.contains("Windows from 2 on were made on another machine"), "{text}");
        }
        let value: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(value["taken_up"][0]["part"], 1);
        assert_eq!(value["taken_up"][0]["host"]["kernel"], "6.18.0");
    }
}
