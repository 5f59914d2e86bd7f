//! A profile in words.

use std::fmt::Write;

use waggle_model::Loss;
use waggle_model::visible::on_a_line;
use waggle_profile::{Chain, Owner, Work};

use super::Report;
use crate::lacking::plural;

/// Longest digest text and longest name of a function on a line, in letters.
const TEXT_MAX: usize = 90;

pub(super) fn of(report: &Report) -> String {
    let mut text = head(report);
    if report.profile.samples() == 0 {
        return text;
    }
    let digest = |owner: &Owner| matches!(owner.work, Work::Digest { .. });
    let thread = |owner: &Owner| !digest(owner);
    owners(&mut text, report, "DIGEST", &digest);
    owners(&mut text, report, "THREAD", &thread);
    functions(&mut text, report);
    if !report.is_off_cpu {
        conversion(&mut text, report);
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    // A text takes whatever is written.
    let _ = text.write_fmt(words);
    text.push('\n');
}

fn head(report: &Report) -> String {
    let profile = &report.profile;
    let samples = profile.samples();
    let mut text = String::new();
    for server in &report.servers {
        line(&mut text, format_args!("pid {}: {} {}", server.pid, server.flavour, server.version));
    }
    line(&mut text, format_args!("{}", amount(report, samples)));
    if let Some(only) = report.only {
        let of_all = samples as f64 / report.samples.max(1) as f64;
        let all = report.samples;
        line(&mut text, format_args!("digest {only:016x}: {} % of {all} in all", percent(of_all)));
    }
    let share = |samples: u64| percent(report.share(samples));
    let in_kernel = match report.is_off_cpu {
        true => String::new(),
        false => format!("; in the kernel {} %", share(profile.in_kernel())),
    };
    let [digests, threads, unmatched] = report.by_kind();
    line(
        &mut text,
        format_args!(
            "of digests {} %, of threads {} %, of statements that were not seen to end {} %",
            share(digests),
            share(threads),
            share(unmatched)
        ),
    );
    line(
        &mut text,
        format_args!(
            "callers known {} %, lost {} %, cut {} %{in_kernel}",
            share(profile.with_chain(Chain::Whole)),
            share(profile.with_chain(Chain::Broken)),
            share(profile.with_chain(Chain::Cut)),
        ),
    );
    nameless(&mut text, report);
    losses(&mut text, report);
    for why in &report.nameless {
        line(&mut text, format_args!("names are missing: {}", on_a_line(why)));
    }
    text
}

/// How much of the time was in functions that nobody can name.
fn nameless(text: &mut String, report: &Report) {
    let samples = report.profile.without_name();
    if samples > 0 {
        let share = percent(report.share(samples));
        // What could not be read is told below.
        let why = match report.nameless.is_empty() {
            true => "; their files export no names for them",
            false => "",
        };
        line(text, format_args!("functions without a name: {share} % of SELF{why}"));
    }
}

/// What is missing, and what it took.
fn losses(text: &mut String, report: &Report) {
    let lost = plural(report.losses.get(Loss::ProfileSample), "sample");
    let left_out = match report.profile.left_out {
        0 => String::new(),
        count => format!(", {count} for which there was no room"),
    };
    let price = match report.ns_per_sample {
        Some(ns) => format!("{:.1} µs a sample", ns / 1000.0),
        None => "not measured".to_owned(),
    };
    line(text, format_args!("lost {lost}{left_out}; price in the kernel: {price}"));
}

/// How much was sampled.
fn amount(report: &Report, samples: u64) -> String {
    let (length, cores) = (report.length.as_secs_f64(), report.cores(samples));
    if report.is_off_cpu {
        let waits = samples as f64 / f64::from(report.per_second);
        return format!(
            "{waits:.2} s of waits in {length:.1} s: {cores:.2} sessions waited on average"
        );
    }
    let processors = report.processors.map_or(String::new(), |all| format!(" of {all} processors"));
    let (samples, hz) = (plural(samples, "sample"), report.per_second);
    format!("{samples} in {length:.1} s at {hz} Hz: {cores:.2}{processors} busy")
}

fn owners(text: &mut String, report: &Report, title: &str, is_wanted: &dyn Fn(&Owner) -> bool) {
    let all = report.profile.by_owner();
    let mut wanted = all.into_iter().filter(|(owner, _)| is_wanted(owner)).peekable();
    if wanted.peek().is_none() {
        return;
    }
    let heads = if report.is_off_cpu { "WAIT %       MS" } else { " CPU %  SAMPLES" };
    line(text, format_args!("\n {heads}  {title}"));
    for (owner, samples) in wanted.take(report.limit) {
        let id = match &owner.work {
            Work::Digest { key, .. } => format!("{:016x}  ", key.text),
            _ => String::new(),
        };
        let pid = match report.servers.len() {
            0 | 1 => String::new(),
            _ => format!("pid {}  ", owner.pid),
        };
        let share = percent(report.share(samples));
        let samples = if report.is_off_cpu { samples / 1000 } else { samples };
        let name = cut(owner.title());
        line(text, format_args!("{share:>7}  {samples:>7}  {pid}{id}{name}"));
    }
}

fn functions(text: &mut String, report: &Report) {
    let all = &report.profile.functions;
    line(text, format_args!("\n SELF %  TOTAL %  FUNCTION"));
    for used in report.profile.used().into_iter().take(report.limit) {
        let Some(function) = all.get(used.function) else { continue };
        let [itself, total] = [used.itself, used.total].map(|one| percent(report.share(one)));
        let caller = used.caller.and_then(|at| all.get(at));
        let note = match caller {
            Some(caller) => format!(", called by {}", cut(&caller.name)),
            None if function.is_named && !function.is_kernel && !function.is_wait() => {
                format!(" ({})", on_a_line(&function.file))
            }
            None if function.is_kernel => " (kernel)".to_owned(),
            None => String::new(),
        };
        line(text, format_args!("{itself:>7}  {total:>7}  {}{note}", cut(&function.name)));
    }
}

fn conversion(text: &mut String, report: &Report) {
    let conversion = report.profile.conversion();
    let share = percent(report.share(conversion.samples));
    line(text, format_args!("\nconversion of character sets: {share} %"));
    for (function, samples) in conversion.functions.iter().take(report.limit) {
        let Some(function) = report.profile.functions.get(*function) else { continue };
        let share = percent(report.share(*samples));
        line(text, format_args!("{share:>7}  {}", cut(&function.name)));
    }
}

/// A text that fits on a line.
fn cut(text: &str) -> String {
    crate::text::cut(&on_a_line(text), TEXT_MAX)
}
