//! Statements of data definition from Performance Schema.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use jiff::Timestamp;
use waggle_mysql::Connection;
use waggle_mysql::history::{Event, History, HistoryError, Polled, Session, Sessions};
use waggle_sql::{Ddl, DdlKind, SessionSettings, printable};

use super::line::{Gap, Limits, Line, ServerName, Source, StatementLine, WaitingLine, objects};
use super::prepared::{Executed, PreparedNames};
use super::waiting::{Running, Since, Waiting};
use super::{AuditOptions, Lines, Listed};
use crate::said::Said;

/// How often a signal is looked for.
const STOP_EVERY: Duration = Duration::from_millis(50);
/// After a gap the ring is read this many times as often, because what filled it mostly goes on.
const SOONER: u32 = 4;

/// Thread and event.
type Key = (u64, u64);

/// The audit of one server by polling.
pub(crate) struct Polling {
    history: History,
    server: ServerName,
    options: AuditOptions,
    names: PreparedNames,
    waiting: Waiting<Key>,
    /// What ran at the last look, and may have ended by the next reading of the ring or just after.
    running_before: BTreeSet<Key>,
    listed: Listed,
}

impl Polling {
    /// Begins; what shall be recorded is on already.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub(crate) fn begin(
        connection: &mut Connection,
        options: AuditOptions,
    ) -> Result<Polling, HistoryError> {
        let history = History::begin(connection)?;
        let identity = connection.server_identity();
        let server = ServerName {
            pid: None,
            flavour: identity.flavour.to_string(),
            version: identity.version.clone(),
        };
        Ok(Polling {
            history,
            server,
            options,
            names: PreparedNames::default(),
            waiting: Waiting::default(),
            running_before: BTreeSet::new(),
            listed: Listed::default(),
        })
    }

    /// What is not shown, each in words with its remedy.
    pub(crate) fn not_shown(&self) -> &[String] {
        self.history.not_shown()
    }

    /// Polls every so often until the time is over or `stop` is set.
    ///
    /// # Errors
    /// The connection is broken, somebody switched off what is needed, or the destination cannot be
    /// written.
    pub(crate) fn run(
        mut self,
        connection: &mut Connection,
        every: Duration,
        stop: &AtomicBool,
        out: &mut Lines,
    ) -> anyhow::Result<Listed> {
        let begin = Instant::now();
        let mut said = Said::start()?;
        if !self.not_shown().is_empty() {
            out.send(self.limits(self.not_shown().to_vec()));
        }
        loop {
            let is_over = self.options.duration.is_some_and(|limit| begin.elapsed() >= limit);
            let is_last = is_over || stop.load(Ordering::Relaxed) || out.has_ended();
            let polled_at = Instant::now();
            let polled = self.history.poll(connection)?;
            for line in self.lines(&polled) {
                out.send(line);
            }
            if !polled.not_shown.is_empty() {
                out.send(self.limits(polled.not_shown));
            }
            if let Some(what) = polled.switched_off {
                let why = format!(
                    "{what} was switched off by somebody else: what runs now is not recorded; begin again"
                );
                out.send(self.limits(vec![why.clone()]));
                bail!(why);
            }
            if is_last {
                return Ok(self.listed);
            }
            out.complaint().iter().for_each(|words| said.tell(words));
            let pause = if polled.missing.is_empty() { every } else { every / SOONER };
            let is_time = |limit: Option<Duration>| limit.is_some_and(|it| begin.elapsed() >= it);
            while polled_at.elapsed() < pause
                && !stop.load(Ordering::Relaxed)
                && !is_time(self.options.duration)
            {
                thread::sleep(STOP_EVERY.min(pause));
            }
        }
    }

    fn limits(&self, not_shown: Vec<String>) -> Line {
        Line::Limits(Limits {
            time: Timestamp::now(),
            server: self.server.clone(),
            source: Source::PerformanceSchema,
            not_shown,
        })
    }

    fn lines(&mut self, polled: &Polled) -> Vec<Line> {
        let mut lines = Vec::new();
        self.waiting.look(&self.running(&polled.sessions));
        let mut by = polled.missing.clone();
        by.retain(|name, _| DdlKind::of_instrument(name).is_some() || may_be_ddl(name));
        by.extend(polled.lost.clone());
        for event in &polled.events {
            match self.names.follow(event, &polled.prepared) {
                Executed::Nothing => {}
                // What sent rows defined nothing, also where they came from `CREATE … SELECT`.
                Executed::Unknown if event.rows_sent > 0 => {}
                Executed::Unknown if DdlKind::of_instrument(&event.name).is_none() => {
                    *by.entry(format!("{}, text not known", event.name)).or_default() += 1;
                }
                executed => lines.extend(self.statement(event, executed, polled)),
            }
        }
        lines.retain(|line| self.options.choice.takes(line));
        self.listed.statements += lines.len() as u64;
        let mut lines: Vec<Line> =
            lines.into_iter().map(|line| Line::Statement(Box::new(line))).collect();
        self.forget(&polled.sessions);
        if !by.is_empty() {
            let missing = by.values().sum();
            self.listed.missing += missing;
            lines.push(Line::Gap(Gap {
                time: Timestamp::now(),
                server: self.server.clone(),
                source: Source::PerformanceSchema,
                missing,
                by,
            }));
        }
        // Of several sessions in the order in which they began.
        lines.sort_by_key(|line| match line {
            Line::Statement(line) => line.time.unwrap_or(Timestamp::MAX),
            Line::Gap(_) | Line::Limits(_) => Timestamp::MAX,
        });
        lines
    }

    /// The line of an event; `None` if it is of something else.
    fn statement(
        &mut self,
        event: &Event,
        executed: Executed,
        polled: &Polled,
    ) -> Option<StatementLine> {
        let by_name = DdlKind::of_instrument(&event.name);
        let (text, is_cut) = match &executed {
            Executed::Text(text) => {
                let (text, is_cut) = without_points(text);
                (Some(text), is_cut)
            }
            _ => (None, false),
        };
        let settings = SessionSettings::default();
        let ddl = text.and_then(|text| match is_cut {
            true => Ddl::of_beginning(text, settings),
            false => Ddl::of(text, settings),
        });
        let kind = ddl.as_ref().map(|ddl| ddl.kind).or(by_name)?;
        let objects = ddl.as_ref().map_or(Vec::new(), |ddl| objects(ddl, event.schema.as_deref()));
        let session = polled.sessions.of(event.thread);
        let of = |field: fn(&Session) -> &Option<String>| session.and_then(|it| field(it).clone());
        Some(StatementLine {
            time: event.started_us.and_then(|us| Timestamp::from_microsecond(us).ok()),
            server: self.server.clone(),
            source: Source::PerformanceSchema,
            kind: kind.name(),
            objects,
            objects_truncated: ddl.as_ref().is_some_and(|ddl| ddl.truncated),
            temporary: ddl.as_ref().is_some_and(|ddl| ddl.temporary),
            connection_id: session.and_then(|session| session.connection_id),
            user: of(|session| &session.user),
            host: of(|session| &session.host),
            account_absent: polled
                .sessions
                .unknown
                .get(&event.thread)
                .filter(|_| session.is_none_or(|session| session.user.is_none()))
                .cloned(),
            default_schema: event.schema.clone(),
            duration_us: event.duration_ns.map(|ns| ns as f64 / 1e3),
            // Performance Schema does not say it per statement.
            lock_wait_us: None,
            work_us: None,
            error: Some(event.error),
            nested: event.nested,
            text: text.map(|text| printable(text, None, self.options.redact)),
            text_bytes: text.filter(|_| !is_cut).map(|text| text.len() as u64),
            waiting: self.waiting.take(&(event.thread, event.id)),
        })
    }

    fn running(&self, sessions: &Sessions) -> Vec<Running<Key>> {
        let redact = self.options.redact;
        let running = |(thread, session): (&u64, &Session)| {
            let text = session.text.clone()?;
            Some(Running {
                keys: session.events.iter().map(|event| (*thread, *event)).collect(),
                settings: SessionSettings::default(),
                default_schema: session.schema.clone(),
                since: Since { start: session.started_ps, seconds: session.seconds },
                line: WaitingLine {
                    connection_id: session.connection_id,
                    user: session.user.clone(),
                    host: session.host.clone(),
                    state: session.state.clone().unwrap_or_default(),
                    text: Some(printable(&text, None, redact)),
                },
                text,
            })
        };
        sessions.now.iter().filter_map(running).collect()
    }

    fn forget(&mut self, sessions: &Sessions) {
        let threads: BTreeSet<u64> = sessions.now.keys().copied().collect();
        self.names.keep(&threads);
        let running = sessions.now.iter().flat_map(|(thread, session)| {
            session.events.iter().map(move |event| (*thread, *event))
        });
        let running: BTreeSet<Key> = running.collect();
        let before = std::mem::replace(&mut self.running_before, running);
        self.waiting.keep(|key| before.contains(key) || self.running_before.contains(key));
    }
}

/// A text without the server's `...`, and whether the server cut it.
///
/// All servers put three points in place of the last three letters of what they cut (`make_row` in
/// `storage/perfschema/table_events_statements.cc`; `format_sqltext` in `table_helper.cc` of MySQL 8
/// and later). The length does not tell: the letters may be of up to four bytes each, a part of one is
/// left out before, and MySQL 5.7 and MariaDB cut a text at a letter that is none, wherever it stands.
/// What ends in points by itself is taken for cut: no server can parse that, but where they end a comment.
fn without_points(text: &[u8]) -> (&[u8], bool) {
    match text.strip_suffix(b"...") {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

/// Names of events that can be of any statement. A `SET` can be one of a password: MySQL 8 and later have
/// a name of its own for that, and its other ones are not recorded.
fn may_be_ddl(name: &str) -> bool {
    ["statement/sql/execute_sql", "statement/sql/execute_immediate", "statement/com/Execute"]
        .contains(&name)
        || ["statement/sp/stmt", "statement/sql/error", "statement/sql/set_option"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server keeps of a text in UTF-8.
    fn kept(text: &str, limit: usize) -> Vec<u8> {
        if text.len() <= limit {
            return text.into();
        }
        let whole = &text[..text.floor_char_boundary(limit)];
        let (last_three, _) = whole.char_indices().rev().nth(2).unwrap();
        format!("{}...", &whole[..last_three]).into()
    }

    #[test]
    fn a_text_of_long_letters_is_cut_though_it_is_shorter_than_the_limit() {
        for letter in ["x", "ä", "語", "🐝"] {
            let text = format!("CREATE TABLE shop.t (a INT) COMMENT '{}'", letter.repeat(1024));
            let kept = kept(&text, 1024);
            assert_eq!(kept.len() < 1024, letter.len() > 1, "{letter}");
            let (rest, is_cut) = without_points(&kept);
            assert!(is_cut && text.as_bytes().starts_with(rest), "{letter}");
            let ddl = Ddl::of_beginning(rest, SessionSettings::default()).unwrap();
            assert_eq!(ddl.objects[0].name.as_deref(), Some("t"), "{letter}");
        }
    }

    #[test]
    fn a_whole_text_is_not_cut_however_long_it_is() {
        let text = format!("CREATE TABLE t (a INT) COMMENT '{}'", "語".repeat(341));
        assert_eq!(without_points(text.as_bytes()), (text.as_bytes(), false));
        // As MySQL keeps one that fills its place.
        assert_eq!(kept(&text, text.len()), text.as_bytes());
    }
}
