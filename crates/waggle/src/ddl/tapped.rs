//! Statements of data definition from the tap.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use waggle_model::{Loss, Losses, Origin, RunningStatement, Server, Statement, StatementKey};
use waggle_probes::urgent::Urgent;
use waggle_sql::{Ddl, SessionSettings};

use super::line::{Gap, Line, ServerName, Source, StatementLine, WaitingLine, objects};
use super::waiting::{Running, Since, Waiting};
use super::{AuditOptions, Listed, Writer};
use crate::capture::{Capture, News, monotonic_ns};

/// How often the rings are emptied while statements come, and while none do: see `watch`.
const DRAIN_EVERY: Duration = Duration::from_millis(20);
const DRAIN_EVERY_IDLE: Duration = Duration::from_millis(50);
/// How often the sessions are looked at: who waits behind a statement is known of those that run
/// longer.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Looks at the clocks of which the best tells: somebody may take the processor between them.
const CLOCK_LOOKS: usize = 3;
/// How often servers are looked for, in looks.
const SERVERS_EVERY: u32 = 4;

/// The audit of every server that is watched.
pub(crate) struct Tapped {
    capture: Capture,
    audit: Audit,
    losses_before: BTreeMap<u32, Losses>,
}

/// What is made of the statements.
struct Audit {
    options: AuditOptions,
    servers: BTreeMap<u32, ServerName>,
    waiting: BTreeMap<u32, Waiting<StatementKey>>,
    listed: Listed,
    /// Lines that are not yet handed to the writer.
    lines: Vec<Line>,
    /// `CLOCK_MONOTONIC` nanoseconds and the time of day of one moment.
    clocks: (u64, Timestamp),
}

impl Tapped {
    /// Begins with a capture that is attached.
    pub(crate) fn begin(capture: Capture, options: AuditOptions) -> Tapped {
        let servers = capture.watched().iter();
        let servers = servers.map(|(pid, watched)| (*pid, name_of(&watched.server))).collect();
        let audit = Audit {
            options,
            servers,
            waiting: BTreeMap::new(),
            listed: Listed::default(),
            lines: Vec::new(),
            clocks: one_moment(look_at_the_clocks),
        };
        Tapped { capture, audit, losses_before: BTreeMap::new() }
    }

    /// Runs until the time is over or `stop` is set.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub(crate) fn run(mut self, stop: &AtomicBool, out: &mut Writer) -> io::Result<Listed> {
        let begin = Instant::now();
        let mut urgent = Urgent::begin().ok();
        let (mut looked_at, mut looks) = (begin, 0_u32);
        loop {
            let is_over = self.audit.options.duration.is_some_and(|limit| begin.elapsed() >= limit);
            let is_last = is_over || stop.load(Ordering::Relaxed);
            let drained_at = Instant::now();
            let mut is_silent = true;
            let Tapped { capture, audit, .. } = &mut self;
            let is_more = capture.drain(|statement| {
                is_silent = false;
                audit.take(statement);
            });
            let drained_in = drained_at.elapsed();
            if is_last || looked_at.elapsed() >= LOOK_EVERY {
                looked_at = Instant::now();
                // What follows may take a while, and must take nothing from the servers.
                urgent.take();
                self.look();
                looks += 1;
                if looks.is_multiple_of(SERVERS_EVERY) {
                    self.look_for_servers();
                }
                urgent = Urgent::begin().ok();
            }
            for line in self.audit.lines.drain(..) {
                out.write(line)?;
            }
            if is_last {
                return Ok(self.audit.listed);
            }
            // Where more than a turn waits, an urgent thread takes half of a processor at most.
            thread::sleep(match (is_more, is_silent) {
                (true, _) => drained_in,
                (false, true) => DRAIN_EVERY_IDLE,
                (false, false) => DRAIN_EVERY,
            });
        }
    }

    /// Looks at what runs, and at what was lost.
    fn look(&mut self) {
        let looked_ns = monotonic_ns();
        self.audit.clocks = one_moment(look_at_the_clocks);
        let samples = self.capture.sample();
        let Tapped { capture, audit, .. } = self;
        for (pid, running) in &samples {
            let Ok(running) = running else { continue };
            audit.look(*pid, running);
        }
        while capture.drain(|statement| audit.take(statement)) {}
        for (pid, running) in &samples {
            let Ok(running) = running else { continue };
            capture.settle(*pid, running, looked_ns, |statement| audit.take(statement));
            // What ended has been taken by now, or never will be.
            let waiting = audit.waiting.entry(*pid).or_default();
            waiting.keep(|key| running.iter().any(|one| one.key() == *key));
        }
        let pids: Vec<u32> = capture.watched().keys().copied().collect();
        for pid in pids {
            self.tell_losses(pid);
        }
    }

    fn look_for_servers(&mut self) {
        let Tapped { capture, audit, .. } = self;
        for news in capture.look(&mut |statement| audit.take(statement)) {
            let news = match news {
                News::Attached(pid) => {
                    let watched = &capture.watched()[&pid];
                    audit.servers.insert(pid, name_of(&watched.server));
                    format!("pid {pid}: watched from now on")
                }
                News::Refused(pid, why) => format!("pid {pid}: not watched: {why}"),
                News::Gone(server) => {
                    audit.servers.remove(&server.pid);
                    audit.waiting.remove(&server.pid);
                    self.losses_before.remove(&server.pid);
                    format!("pid {}: the server has ended", server.pid)
                }
            };
            // Beside the output, which may be read by a program.
            let _ = writeln!(io::stderr(), "waggle: {news}");
        }
    }

    /// Any statement that was lost, or whose text was not read, may have been of data definition.
    fn tell_losses(&mut self, pid: u32) {
        let now = self.capture.losses(pid);
        let before = self.losses_before.insert(pid, now).unwrap_or_default();
        let losses = now.since(&before);
        let hides = |kind: &Loss| {
            kind.is_a_statement() || matches!(kind, Loss::EndedUnseen | Loss::UnreadableText)
        };
        let by: BTreeMap<String, u64> = Loss::ALL
            .into_iter()
            .filter(hides)
            .map(|kind| (kind.name().to_owned(), losses.get(kind)))
            .filter(|(_, lost)| *lost > 0)
            .collect();
        let Some(server) = self.audit.servers.get(&pid).filter(|_| !by.is_empty()) else { return };
        let gap = Gap {
            time: Timestamp::now(),
            server: server.clone(),
            source: Source::Tap,
            missing: by.values().sum(),
            by,
        };
        self.audit.listed.missing += gap.missing;
        self.audit.lines.push(Line::Gap(gap));
    }
}

impl Audit {
    /// Takes a statement that ended.
    fn take(&mut self, statement: &Statement<'_>) {
        let is_statement = statement.command.is_none_or(|command| command.is_statement());
        let Some(text) = statement.text else { return };
        let nested = statement.origin == Origin::Nested;
        if !(is_statement || nested) || !Ddl::may_begin(text.bytes) {
            return;
        }
        let settings = settings_of(statement.settings);
        let known = settings.unwrap_or_default();
        let ddl = match text.is_truncated() {
            true => Ddl::of_beginning(text.bytes, known),
            false => Ddl::of(text.bytes, known),
        };
        let (Some(ddl), Some(server)) = (ddl, self.servers.get(&statement.pid)) else { return };
        let identity = statement.identity;
        let default_schema = lossy(&identity.database);
        let waiting = self.waiting.get_mut(&statement.pid);
        let waiting = waiting.and_then(|waiting| waiting.take(&statement.key()));
        let line = StatementLine {
            time: statement.start_ns().map(|start| self.time_of(start)),
            server: server.clone(),
            source: Source::Tap,
            kind: ddl.kind.name(),
            objects: objects(&ddl, default_schema.as_deref()),
            objects_truncated: ddl.truncated,
            temporary: ddl.temporary,
            connection_id: statement.connection_id.filter(|id| *id != 0),
            user: lossy(&identity.user),
            host: lossy(&identity.host),
            account_absent: identity.user.is_none().then(|| WHY_NO_USER.to_owned()),
            default_schema,
            duration_us: statement.latency_ns.map(|ns| ns as f64 / 1e3),
            error: statement.error,
            nested,
            text: Some(waggle_sql::printable(text.bytes, settings, self.options.redact)),
            text_bytes: Some(text.length),
            waiting,
        };
        if self.options.choice.takes(&line) {
            self.listed.statements += 1;
            self.lines.push(Line::Statement(Box::new(line)));
        }
    }

    fn time_of(&self, at_ns: u64) -> Timestamp {
        let (now_ns, now) = self.clocks;
        let distance = i128::from(at_ns) - i128::from(now_ns);
        now + SignedDuration::from_nanos(i64::try_from(distance).unwrap_or(0))
    }

    /// Takes what runs now.
    fn look(&mut self, pid: u32, running: &[RunningStatement]) {
        let redact = self.options.redact;
        let sessions = running.iter().filter(|one| one.command.is_statement());
        let running: Vec<_> = sessions.filter_map(|one| as_running(one, redact)).collect();
        self.waiting.entry(pid).or_default().look(&running);
    }
}

const WHY_NO_USER: &str =
    "the session has not replied to its client since the tap was attached, or has none";

fn as_running(one: &RunningStatement, redact: bool) -> Option<Running<StatementKey>> {
    let text = one.text.clone()?;
    let settings = settings_of(one.settings);
    Some(Running {
        keys: vec![one.key()],
        settings: settings.unwrap_or_default(),
        default_schema: lossy(&one.identity.database),
        since: Since { start: one.start_ns, seconds: None },
        line: WaitingLine {
            connection_id: Some(one.connection_id),
            user: lossy(&one.identity.user),
            host: lossy(&one.identity.host),
            state: lossy(&one.state).unwrap_or_default(),
            text: Some(waggle_sql::printable(&text, settings, redact)),
        },
        text,
    })
}

fn settings_of(settings: Option<waggle_model::SessionSettings>) -> Option<SessionSettings> {
    let settings = settings?;
    SessionSettings::of_session(settings.sql_mode, settings.charset.as_str())
}

fn name_of(server: &Server) -> ServerName {
    ServerName {
        pid: Some(server.pid),
        flavour: server.flavour.to_string(),
        version: server.version.clone(),
    }
}

fn lossy(bytes: &Option<Vec<u8>>) -> Option<String> {
    bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// `CLOCK_MONOTONIC` nanoseconds before and after a time of day.
type Look = (u64, Timestamp, u64);

fn look_at_the_clocks() -> Look {
    let before_ns = monotonic_ns();
    let now = Timestamp::now();
    (before_ns, now, monotonic_ns())
}

/// One moment on both clocks, by the look that took the least time.
fn one_moment(mut look: impl FnMut() -> Look) -> (u64, Timestamp) {
    let mut best = look();
    for _ in 1..CLOCK_LOOKS {
        let next = look();
        if next.2.saturating_sub(next.0) < best.2.saturating_sub(best.0) {
            best = next;
        }
    }
    let (before_ns, now, after_ns) = best;
    (before_ns.midpoint(after_ns), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_was_kept_waiting_does_not_move_the_clock() {
        let at = |us| Timestamp::from_microsecond(us).unwrap();
        let looks = [
            (1_000, at(1), 9_001_000),
            (9_002_000, at(9_002), 9_002_400),
            (9_003_000, at(9_900), 9_903_000),
        ];
        let mut looks = looks.into_iter();
        assert_eq!(one_moment(|| looks.next().unwrap()), (9_002_200, at(9_002)));
        assert_eq!(looks.next(), None);
    }
}
