//! Statements of data definition from the tap.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use jiff::Timestamp;
use waggle_account::{Grouping, settings_of};
use waggle_model::{
    Loss, Losses, Origin, Parts, RunningStatement, Server, Statement, StatementKey, TimeClass,
};
use waggle_observe::{
    Capture, Clocks, News, Observer, ObserverOptions, Sinks, Standing, StatementSink,
};
use waggle_sql::Ddl;

use super::line::{Gap, Line, ServerName, Source, StatementLine, WaitingLine, objects};
use super::waiting::{Running, Since, Waiting};
use super::{AuditOptions, Lines, Listed};
use crate::lacking;
use crate::said::Said;
use crate::text::lossy;

/// How often waggle looks at the sessions: it knows who waits behind a statement only if the
/// statement runs longer.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The audit of every server that is watched.
pub(crate) struct Tapped {
    observer: Observer,
    unread: lacking::Unread,
    audit: Audit,
}

/// What is made of the statements.
struct Audit {
    options: AuditOptions,
    servers: BTreeMap<u32, ServerName>,
    waiting: BTreeMap<u32, Waiting<StatementKey>>,
    listed: Listed,
    out: Lines,
    said: Said,
    clocks: Clocks,
}

impl Tapped {
    /// Begins with a capture that may be attached, and writes to `out`.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn begin(capture: Capture, options: AuditOptions, out: Lines) -> io::Result<Tapped> {
        let unread = lacking::Unread::of(&capture);
        let observer = Observer::begin(
            capture,
            ObserverOptions {
                interval: LOOK_EVERY,
                grouping: Grouping::Digest,
                looks_for_servers: true,
            },
        );
        let audit = Audit {
            options,
            servers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            listed: Listed::default(),
            out,
            said: Said::start()?,
            clocks: Clocks::look(),
        };
        Ok(Tapped { observer, unread, audit })
    }

    /// Runs until it is over, or the destination fails.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub(crate) fn run(mut self, is_over: &mut dyn FnMut() -> bool) -> io::Result<Listed> {
        let mut sinks = Sinks::default();
        sinks.statements.push(&mut self.audit);
        self.observer.run(&mut sinks, is_over);
        let Audit { listed, out, .. } = self.audit;
        let misread = lacking::misread(&self.observer.summary().losses);
        let unread = self.unread.still(self.observer.capture());
        Ok(Listed { lack: out.close()?, misread, unread, ..listed })
    }
}

impl StatementSink for Audit {
    fn begin(&mut self, server: &Server) {
        self.servers.insert(server.pid, name_of(server));
    }

    fn ended(&mut self, statement: &Statement<'_>) {
        self.take(statement);
    }

    fn look(&mut self, server: &Server, running: &[RunningStatement]) {
        self.clocks = Clocks::look();
        let redact = self.options.redact;
        let sessions = running.iter().filter(|one| one.command.is_statement());
        let running: Vec<_> = sessions.filter_map(|one| as_running(one, redact)).collect();
        self.waiting.entry(server.pid).or_default().look(&running);
    }

    fn looked(&mut self, server: &Server, running: &[RunningStatement]) {
        // What ended has been taken by now, or never will be.
        let waiting = self.waiting.entry(server.pid).or_default();
        waiting.keep(|key| running.iter().any(|one| one.key() == *key));
    }

    /// Any statement that was lost, or whose text was not read, may have been of data definition.
    fn lost(&mut self, server: &Server, losses: &Losses) {
        let hides = |kind: &Loss| {
            kind.is_a_statement() || matches!(kind, Loss::EndedUnseen | Loss::UnreadableText)
        };
        let by: BTreeMap<String, u64> = Loss::ALL
            .into_iter()
            .filter(hides)
            .map(|kind| (kind.name().to_owned(), losses.get(kind)))
            .filter(|(_, lost)| *lost > 0)
            .collect();
        if by.is_empty() {
            return;
        }
        let (time, missing) = (Timestamp::now(), by.values().sum());
        self.listed.missing += missing;
        let server = name_of(server);
        self.out.send(Line::Gap(Gap { time, server, source: Source::Tap, missing, by }));
    }

    fn news(&mut self, news: &News) {
        if let News::Gone(gone) = news {
            self.servers.remove(&gone.server.pid);
            self.waiting.remove(&gone.server.pid);
        }
        self.tell(&news.to_string());
    }

    fn tell(&mut self, words: &str) {
        self.said.tell(words);
    }

    fn complaint(&mut self) -> Option<String> {
        self.out.complaint()
    }

    fn standing(&mut self) -> Standing {
        if self.out.has_ended() { Standing::Ended } else { Standing::Takes }
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
        let lock_wait_ns = statement.parts_of_latency().map(lock_wait_ns);
        let work_ns = statement.latency_ns.zip(lock_wait_ns);
        let work_ns = work_ns.map(|(all, waited)| all.saturating_sub(waited));
        let line = StatementLine {
            time: statement.start_ns().map(|start| self.clocks.time_of(start)),
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
            lock_wait_us: lock_wait_ns.map(|ns| ns as f64 / 1e3),
            work_us: work_ns.map(|ns| ns as f64 / 1e3),
            error: statement.error,
            nested,
            text: Some(waggle_sql::printable(text.bytes, settings, self.options.redact)),
            text_bytes: Some(text.length),
            waiting,
        };
        if self.options.choice.takes(&line) {
            self.listed.statements += 1;
            self.out.send(Line::Statement(Box::new(line)));
        }
    }
}

/// What a statement waited for locks that others held.
fn lock_wait_ns(parts: &Parts) -> u64 {
    let locks =
        [TimeClass::MetadataLock, TimeClass::RowLock, TimeClass::TableLock, TimeClass::UserLock];
    locks.into_iter().map(|class| parts.get(class)).sum()
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

fn name_of(server: &Server) -> ServerName {
    ServerName {
        pid: Some(server.pid),
        flavour: server.flavour.to_string(),
        version: server.version.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_others_are_waits_and_all_else_is_work() {
        let mut parts = Parts::default();
        TimeClass::ALL.into_iter().zip(0..).for_each(|(class, at)| parts.add(class, 1 << at));
        let waited = lock_wait_ns(&parts);
        for (class, at) in TimeClass::ALL.into_iter().zip(0..) {
            let is_lock = class.key().ends_with("_lock");
            assert_eq!(waited & (1 << at) != 0, is_lock, "{class:?}");
        }
    }
}
