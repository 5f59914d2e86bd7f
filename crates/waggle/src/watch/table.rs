//! The plain table of a terminal.

use std::fmt::Write;

use waggle_model::{Cost, Interval, Server};

use super::{Shown, printable};

/// Running statements that are listed below the digests.
const SESSIONS_SHOWN: usize = 10;
/// Columns before the digest text.
const TEXT_COLUMN: usize = 62;

/// The table of one interval of one server.
pub(super) fn render(
    server: &Server,
    interval: &Interval,
    shown: Shown,
    cost: &Cost,
    width: usize,
) -> String {
    let mut out = String::new();
    let seconds = interval.end_ns.saturating_sub(interval.start_ns) as f64 / 1e9;
    let rate = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
    let load = interval.active_sessions().filter(|_| shown.sessions_known);
    let ms = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e6));
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        out,
        "{} {} (pid {})  {:.0} statements/s  active {}  running {}  errors {:.1}/s  p50 {} p95 {} p99 {} ms",
        server.flavour,
        server.version,
        server.pid,
        rate(interval.statements),
        load.map_or("not measured".into(), |load| format!("{load:.2}")),
        interval.running.len(),
        rate(interval.errors.get().unwrap_or(0)),
        ms(interval.latency_ns.quantile(0.50)),
        ms(interval.latency_ns.quantile(0.95)),
        ms(interval.latency_ns.quantile(0.99)),
    );
    let _ = writeln!(out, "{}", cost_line(interval, cost));
    let _ = writeln!(
        out,
        "{:>6} {:>9} {:>8} {:>8} {:>9} {:>8} {:>6}  DIGEST",
        "LOAD", "CALLS/S", "AVG ms", "P99 ms", "EXAM/CALL", "SENT/CALL", "ERR"
    );
    let (digests, _) = super::ranked(interval, shown.limit);
    for (_, totals) in digests {
        let calls = totals.calls.max(1) as f64;
        let per_call =
            |sum: Option<u64>| sum.map_or("-".into(), |n| format!("{:.1}", n as f64 / calls));
        let text = totals.name.as_ref().map_or("(other)", |name| &name.text);
        let _ = writeln!(
            out,
            "{:>6.2} {:>9.1} {:>8} {:>8} {:>9} {:>8} {:>6}  {}",
            totals.active_ns as f64 / (seconds * 1e9).max(1.0),
            rate(totals.calls),
            ms(totals.latency_ns.mean().map(|ns| ns as u64)),
            ms(totals.latency_ns.quantile(0.99)),
            per_call(totals.rows_examined.get()),
            per_call(totals.rows_sent.get()),
            totals.errors.get().map_or("-".into(), |n| n.to_string()),
            fit(text, width.saturating_sub(TEXT_COLUMN)),
        );
    }
    render_sessions(&mut out, interval, shown, width);
    out
}

fn cost_line(interval: &Interval, cost: &Cost) -> String {
    let kernel =
        cost.bpf_ns_per_statement.map(|ns| format!("{ns:.0} ns per statement in the kernel"));
    let cores = cost.agent_cores.map(|cores| format!("{cores:.3} cores"));
    let memory = cost.rss_bytes.map(|bytes| format!("{:.1} MiB", bytes as f64 / 1048576.0));
    let own = match interval.own_statements {
        0 => String::new(),
        own => format!("  left out {own} of waggle's own"),
    };
    format!(
        "lost {}{own}  cost: {}, {}, {}",
        interval.losses.statements(),
        kernel.unwrap_or_else(|| "time in the kernel not measured".into()),
        cores.unwrap_or_else(|| "CPU not measured".into()),
        memory.unwrap_or_else(|| "memory not measured".into()),
    )
}

fn render_sessions(out: &mut String, interval: &Interval, shown: Shown, width: usize) {
    if interval.running.is_empty() {
        return;
    }
    let mut running: Vec<_> = interval.running.iter().collect();
    running.sort_by_key(|session| session.start_ns.unwrap_or(u64::MAX));
    let _ = writeln!(out, "{:>8} {:>9}  {:<16} {:<24} STATEMENT", "ID", "AGE s", "USER", "STATE");
    for session in running.iter().take(SESSIONS_SHOWN) {
        let name = |bytes: &Option<Vec<u8>>| {
            String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
        };
        let age = session.start_ns.map_or("-".into(), |start| {
            format!("{:.1}", interval.end_ns.saturating_sub(start) as f64 / 1e9)
        });
        let text = session.text.as_deref().map_or(session.command.to_string(), |text| {
            printable(text, session.settings, shown.redact)
        });
        let _ = writeln!(
            out,
            "{:>8} {:>9}  {:<16} {:<24} {}",
            session.connection_id,
            age,
            fit(&name(&session.identity.user), 16),
            fit(&name(&session.state), 24),
            fit(&text, width.saturating_sub(62)),
        );
    }
    if running.len() > SESSIONS_SHOWN {
        let _ = writeln!(out, "{:>8} more", running.len() - SESSIONS_SHOWN);
    }
}

/// One line of at most `width` characters, without control characters that a statement may hold.
fn fit(text: &str, width: usize) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut line: String = clean.clone().take(width).collect();
    if clean.count() > width && width > 1 {
        line.pop();
        line.push('…');
    }
    line
}
