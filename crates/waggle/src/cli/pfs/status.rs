//! `waggle pfs status`

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use waggle_instrumentation::status::{Class, Consumer, Status};
use waggle_model::visible::on_a_line;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, pause, print};
use super::{NOT_SAID, connect};

/// Show what Performance Schema records, and how many events that is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle pfs status --defaults-file /etc/mysql/waggle.cnf")]
pub(super) struct Args {
    /// Count events for this time.
    #[arg(long, value_name = "TIME", value_parser = pause, default_value = "1s")]
    interval: Duration,
    /// Instruments as a tree, this many parts of their names deep, instead of classes.
    #[arg(long, value_name = "PARTS")]
    depth: Option<usize>,
    /// Every buffer of Performance Schema's own memory, the largest first.
    #[arg(short, long)]
    verbose: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    account: AccountArgs,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let mut connection = connect(args.account.clone())?;
    let status = Status::read(&mut connection, args.interval)?;
    print(args.json, &status, || in_words(&status, &args))?;
    Ok(Outcome::Done)
}

/// Every part in its own function. Writing to a string cannot fail.
fn in_words(status: &Status, args: &Args) -> String {
    let mut text = String::new();
    let memory = match status.memory_bytes {
        Some(bytes) => format!("{:.1} MiB", mib(bytes)),
        None => format!("not measured: {}", status.memory_missing.as_deref().unwrap_or(NOT_SAID)),
    };
    let version = &status.version;
    let _ =
        writeln!(text, "{}: Performance Schema is on; its own memory {memory}", on_a_line(version));
    match args.depth {
        Some(depth) => instruments(&mut text, up_to(&status.tree, depth)),
        None => instruments(
            &mut text,
            status.classes.iter().map(|(name, class)| (0, name.as_str(), class)),
        ),
    }
    text.push_str("\nconsumers\n");
    for consumer in status.consumers.iter().filter(|consumer| consumer.parent.is_none()) {
        tree(&mut text, &status.consumers, consumer, 1);
    }
    let actors = status
        .actors
        .iter()
        .map(|actor| (format!("{}@{}", actor.user, actor.host), actor.enabled, actor.history));
    rules(&mut text, "actors", "history", actors);
    let objects = status.objects.iter().map(|object| {
        let name = format!("{} {}.{}", object.kind, object.schema, object.name);
        (name, object.enabled, object.timed)
    });
    rules(&mut text, "objects", "timed", objects);
    threads(&mut text, status);
    timers(&mut text, status);
    if let Some(digests) = status.digests {
        let _ = writeln!(text, "\ndigests: {} of {} rows used", digests.used, digests.total);
    }
    if status.lost.is_empty() {
        text.push_str("lost: nothing\n");
    }
    for (name, lost) in &status.lost {
        let _ = writeln!(text, "lost: {name} {lost}");
    }
    if args.verbose && !status.memory.is_empty() {
        memory_of(&mut text, status);
    }
    text
}

pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Each with how far it is indented.
fn instruments<'a>(text: &mut String, classes: impl Iterator<Item = (usize, &'a str, &'a Class)>) {
    let classes: Vec<_> = classes
        .map(|(depth, name, class)| (format!("{}{}", "  ".repeat(depth), on_a_line(name)), class))
        .collect();
    let width = classes.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(18);
    let _ = writeln!(
        text,
        "\n{:<width$} {:>6} {:>8} {:>6} {:>11} {:>12}",
        "instruments",
        "total",
        "enabled",
        "timed",
        "changeable",
        "events/s",
        width = width + 2
    );
    for (name, class) in &classes {
        let _ = writeln!(text, "  {name:<width$} {}", numbers_of(class));
    }
}

/// What of a tree is at most so deep: its depth, the last part of its name, and its numbers.
fn up_to(
    tree: &BTreeMap<String, Class>,
    depth: usize,
) -> impl Iterator<Item = (usize, &str, &Class)> {
    let nodes = tree.iter().map(|(path, class)| {
        let last = path.rsplit('/').next().unwrap_or(path);
        (path.matches('/').count(), last, class)
    });
    nodes.filter(move |(deep, ..)| *deep < depth)
}

fn rules(
    text: &mut String,
    what: &str,
    second: &str,
    rules: impl Iterator<Item = (String, bool, bool)>,
) {
    let _ = writeln!(text, "\n{what:<42}enabled  {second}");
    for (name, enabled, also) in rules {
        let _ = writeln!(text, "  {:<40}{:<9}{}", on_a_line(&name), yes(enabled), yes(also));
    }
}

fn threads(text: &mut String, status: &Status) {
    let threads = &status.threads;
    let _ = writeln!(
        text,
        "\nthreads: {} of {} instrumented, {} with a history",
        threads.instrumented, threads.total, threads.history
    );
    if let Some(part) = status.setup_threads {
        let _ =
            writeln!(text, "threads to come: {} of {} kinds instrumented", part.used, part.total);
    }
}

fn timers(text: &mut String, status: &Status) {
    text.push_str("\ntimers          per second  resolution  cycles per reading\n");
    let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    for timer in &status.timers {
        let _ = writeln!(
            text,
            "  {:<12} {:>11} {:>11} {:>19}",
            on_a_line(&timer.name),
            number(timer.frequency),
            number(timer.resolution),
            number(timer.overhead_cycles)
        );
    }
    for (class, timer) in &status.class_timers {
        let _ = writeln!(text, "  {} uses {}", on_a_line(class), on_a_line(timer));
    }
}

fn memory_of(text: &mut String, status: &Status) {
    let mut buffers: Vec<_> = status.memory.iter().collect();
    buffers.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
    text.push_str("\nmemory of Performance Schema, MiB\n");
    for (name, bytes) in buffers {
        let _ = writeln!(text, "  {:>10.3}  {}", mib(*bytes), on_a_line(name));
    }
}

fn numbers_of(class: &Class) -> String {
    let events = class.events_per_s.map_or("-".to_owned(), |events| format!("{events:.1}"));
    let Class { total, enabled, timed, at_run_time, .. } = class;
    let mut text = format!("{total:>6} {enabled:>8} {timed:>6} {at_run_time:>11} {events:>12}");
    for (some, what) in [(class.only_at_start, "only at start"), (class.always_on, "always on")] {
        if some > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "  {some} {what}");
        }
    }
    text
}

fn yes(on: bool) -> &'static str {
    if on { "YES" } else { "NO" }
}

fn tree(text: &mut String, all: &[Consumer], consumer: &Consumer, depth: usize) {
    let name = format!("{}{}", "  ".repeat(depth), on_a_line(&consumer.name));
    let dead = consumer
        .dead_because
        .as_ref()
        .map_or(String::new(), |parent| format!("  gets nothing: {parent} is off"));
    let _ = writeln!(text, "{name:<42}{}{dead}", yes(consumer.enabled));
    for child in all.iter().filter(|child| child.parent == Some(consumer.name.as_str())) {
        tree(text, all, child, depth + 1);
    }
}
