//! The end of a run: a table of the layers, the slowest tests, and what each test said that failed.

use std::cmp::Reverse;
use std::time::Duration;

use super::Ran;
use super::step::Found;

/// Lines of what a test said that failed, and characters of a line.
const LINES_MAX: usize = 100;
const LINE_MAX: usize = 400;

/// Prints it. `again` is what looking again took.
pub(crate) fn print(layers: &[Ran], again: Duration, slowest: usize) {
    println!("\n{:<16} {:>6} {:>8} {:>7} {:>9}", "layer", "tests", "time", "failed", "unstable");
    for Ran { layer, time, found } in layers {
        print_row(layer.name, *time, found);
    }
    let (time, all): (Duration, Vec<&Found>) = (
        layers.iter().map(|one| one.time).sum(),
        layers.iter().flat_map(|one| &one.found).collect(),
    );
    println!("{:<16} {:>6} {:>8}", "once more", "", seconds(again));
    print_row("all", time + again, all.iter().copied());
    print_slowest(layers, slowest);
    for found in all.iter().filter(|found| found.is_unstable()) {
        println!("\nUNSTABLE: passed alone: {}", told(found));
    }
    for found in all.iter().filter(|found| found.has_failed()) {
        println!("\nFAILED: {}", told(found));
    }
    let failed = all.iter().filter(|found| found.has_failed()).count();
    println!("\n{} passed, {failed} failed", all.len() - failed);
}

fn print_row<'a>(name: &str, time: Duration, found: impl IntoIterator<Item = &'a Found>) {
    let (mut tests, mut failed, mut unstable) = (0, 0, 0);
    for one in found {
        tests += 1;
        failed += usize::from(one.has_failed());
        unstable += usize::from(one.is_unstable());
    }
    println!("{name:<16} {tests:>6} {:>8} {failed:>7} {unstable:>9}", seconds(time));
}

fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}

fn print_slowest(layers: &[Ran], most: usize) {
    let mut timed = Vec::new();
    for Ran { layer, found, .. } in layers {
        timed.extend(found.iter().map(|found| (found.ended.time, layer.name, found.name())));
    }
    timed.sort_by_key(|(time, ..)| Reverse(*time));
    if most > 0 {
        println!("\n{:>8}  slowest tests", "time");
    }
    for (time, layer, test) in timed.into_iter().take(most) {
        println!("{:>8}  {layer}: {test}", format!("{:.1} s", time.as_secs_f64()));
    }
}

fn told(found: &Found) -> String {
    let words = found.ended.failure.as_deref().unwrap_or_default();
    format!("{}\n{}", found.name(), shortened(words))
}

/// The end of what was said, from the panic on.
fn shortened(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let is_panic = |line: &&str| line.starts_with("thread '") && line.contains("panicked at");
    let begin = lines.iter().position(is_panic).unwrap_or(0);
    let rest = lines[begin..].iter().take_while(|line| !line.starts_with("stack backtrace:"));
    let short = rest.take(LINES_MAX).map(|line| line.chars().take(LINE_MAX).collect());
    short.collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_shown_without_its_backtrace_and_not_in_full_length() {
        let said = format!(
            "a\n\nthread 'a::b' (12) panicked at x.rs:1:2:\nleft: {}\nstack backtrace:\n   0: main\n",
            "1".repeat(9999),
        );
        let short = shortened(&said);
        assert_eq!(short.lines().count(), 2);
        assert!(short.starts_with("thread 'a::b'") && short.len() < 1000, "{short}");
        assert_eq!(shortened(&"more\n".repeat(2 * LINES_MAX)).lines().count(), LINES_MAX);
    }
}
