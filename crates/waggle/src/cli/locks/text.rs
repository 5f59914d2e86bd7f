//! The tree as text.

use std::fmt::Write as _;

use waggle_model::Reading;
use waggle_model::visible::{name, on_a_line};
use waggle_mysql::locks::{
    Deadlock, HeldLock, Key, LockKind, Node, Remedy, Session, SessionKind, SomebodyWaits, Source,
    Transaction, Unknown, Wait,
};
use waggle_sql::printable;

use super::Look;
use super::json::shown;
use crate::text::cut;

/// Characters of a statement that are shown.
const STATEMENT_MAX: usize = 200;
/// Ids of waiters that are listed where they are not drawn.
const IDS_MAX: usize = 20;

/// A look in lines. Writing to a string cannot fail.
pub(super) fn of(look: &Look<'_>) -> String {
    let mut page = Page { look, text: String::new() };
    page.line("", &page.headline());
    if let (Some(gauge), Some(0)) = (look.locks.row_waits.value(), look.locks.row_waiters) {
        page.gauge(gauge.now);
    }
    for root in &look.locks.tree.roots {
        page.root(root);
    }
    for (unknown, waiter) in &look.locks.tree.undetermined {
        page.undetermined(unknown, waiter);
    }
    for why in &look.locks.not_known {
        page.line("not known: ", why);
    }
    if let Some(after) = look.memory_after() {
        let ms = after.as_millis();
        page.line("", &format!("the memory was read {ms} ms after the server was asked"));
    }
    match look.deadlock {
        None => {}
        Some(Reading::Absent(why)) => page.line("not known: ", why),
        Some(Reading::Value(None)) => page.line("", "no deadlock since the server's start"),
        Some(Reading::Value(Some(deadlock))) => {
            page.deadlock(&shown(deadlock.clone(), look.redact));
        }
    }
    page.text
}

struct Page<'a> {
    look: &'a Look<'a>,
    text: String,
}

impl Page<'_> {
    /// One line, whatever a text of the server holds.
    fn line(&mut self, indent: &str, text: &str) {
        self.text.push_str(indent);
        self.text.push_str(&on_a_line(text));
        self.text.push('\n');
    }

    fn headline(&self) -> String {
        let locks = self.look.locks;
        let by_gauge = locks.row_waits.value().map(|waits| waits.now);
        let row = locks.row_waiters.map(|waiters| waiters as u64).or(by_gauge);
        let row = row.map_or("?".to_owned(), |waits| waits.to_string());
        let other = locks.other_lock_waits().map_or("?".to_owned(), |waits| waits.to_string());
        let what = match (locks.somebody_waits(), locks.waits_without_lock) {
            (SomebodyWaits::ForLock, 0) => format!("waits: {row} for row locks, {other} other"),
            (SomebodyWaits::ForLock, count) => {
                format!("waits: {row} for row locks, {other} for others, {count} not for a lock")
            }
            (waits, _) => waits.to_string(),
        };
        let at = self.look.at.strftime("%Y-%m-%dT%H:%M:%SZ");
        let version = &self.look.server.version;
        match self.look.pid {
            Some(pid) => format!("{at} {version} (pid {pid}, by its memory): {what}"),
            None => format!("{at} {version}: {what}"),
        }
    }

    /// For transactions of which none waits.
    fn gauge(&mut self, says: u64) {
        if says > 0 {
            self.line(
                "",
                &format!("Innodb_row_lock_current_waits is {says}, but no transaction waits: the server's gauge is off"),
            );
        }
    }

    fn root(&mut self, root: &Node) {
        self.line("", "");
        self.line("", &self.participant(&root.key));
        if root.in_circle {
            let wait = root
                .wait
                .as_ref()
                .map(|wait| waits_for(wait, self.look.redact))
                .unwrap_or_default();
            self.line("  ", &format!("waits in a circle: {wait}"));
        }
        self.statement("  ", &root.key);
        self.remedy(root);
        self.waiters("  ", root);
    }

    /// How many wait, and what frees them.
    fn remedy(&mut self, root: &Node) {
        let count = root.waiting();
        let Remedy { command, note, not_enough } =
            Remedy::of(root, self.look.locks, self.look.server);
        let whom = if count == 1 { "it" } else { "one of them at least" };
        let how = command.map(|command| match not_enough {
            None => format!("to free {whom}: {command}"),
            Some(why) => {
                format!("{command} may free {whom}, unless others hold the lock, too: {why}")
            }
        });
        let words: Vec<String> = how.into_iter().chain(note).collect();
        self.line("  ", &format!("{count} wait; {}", words.join("; ")));
    }

    fn undetermined(&mut self, unknown: &Unknown, waiter: &Node) {
        self.line("", "");
        self.line("", &format!("blocked by: unknown ({})", unknown.why));
        match unknown.candidates.len() {
            0 => {}
            1 => self.line("  ", "it may be:"),
            _ => self.line("  ", "it may be one of:"),
        }
        for key in unknown.candidates.iter().take(self.look.limit) {
            self.line("    ", &self.participant(key));
        }
        if unknown.candidates.len() > self.look.limit {
            let more = unknown.candidates.len() - self.look.limit;
            self.line("    ", &format!("and {more} others"));
        }
        self.waiter("└─ ", "   ", waiter);
    }

    fn waiters(&mut self, indent: &str, node: &Node) {
        let limit = self.look.limit;
        let (drawn, rest): (Vec<_>, Vec<_>) = node
            .waiters
            .iter()
            .enumerate()
            .partition(|(at, waiter)| *at < limit || !waiter.waiters.is_empty());
        for (at, (_, waiter)) in drawn.iter().enumerate() {
            let is_last = at + 1 == drawn.len() && rest.is_empty();
            let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.waiter(&format!("{indent}{branch}"), &format!("{indent}{below}"), waiter);
        }
        if !rest.is_empty() {
            let ids: Vec<String> =
                rest.iter().take(IDS_MAX).map(|(_, waiter)| waiter.key.to_string()).collect();
            let dots = if rest.len() > IDS_MAX { ", …" } else { "" };
            let ids = ids.join(", ");
            self.line(&format!("{indent}└─ "), &format!("{} more: {ids}{dots}", rest.len()));
        }
    }

    fn waiter(&mut self, first: &str, below: &str, waiter: &Node) {
        let wait =
            waiter.wait.as_ref().map(|wait| waits_for(wait, self.look.redact)).unwrap_or_default();
        self.line(first, &format!("{}; waits {wait}", self.participant(&waiter.key)));
        if !waiter.also_blocked_by.is_empty() {
            let keys: Vec<String> =
                waiter.also_blocked_by.iter().take(IDS_MAX).map(Key::to_string).collect();
            let number = waiter.also_blocked_by.len();
            let dots = if number > IDS_MAX { ", …" } else { "" };
            self.line(below, &format!("also blocked by: {}{dots}", keys.join(", ")));
        }
        self.statement(below, &waiter.key);
        self.waiters(below, waiter);
    }

    /// `12 root@localhost shop, idle 42 s, transaction of 43 s with 1 rows locked, 1 modified`.
    fn participant(&self, key: &Key) -> String {
        let Some(session) = self.look.locks.sessions.get(key) else {
            return format!("{key} (ended, or not to be seen)");
        };
        let mut text = key.to_string();
        if let Some(what) = thread(session) {
            let _ = write!(text, " {what}");
        } else if session.user.is_some() {
            let part =
                |part: &Option<String>| name(part.as_deref().unwrap_or_default()).into_owned();
            let _ = write!(text, " {}@{}", part(&session.user), part(&session.host));
        }
        if let Some(db) = &session.db {
            let _ = write!(text, " {}", name(db));
        }
        text.push_str(&activity(session));
        text.extend(session.transaction.as_ref().map(in_words));
        text
    }

    fn statement(&mut self, indent: &str, key: &Key) {
        let Some(session) = self.look.locks.sessions.get(key) else { return };
        let statement = &session.statement;
        match (&statement.text, &statement.why_unknown) {
            (Some(text), _) => {
                let what = if statement.is_running { "runs" } else { "ran last" };
                let text = printable(text.as_bytes(), None, self.look.redact);
                self.line(indent, &format!("{what}: {}", cut(&text, STATEMENT_MAX)));
            }
            (None, Some(why)) => self.line(indent, &format!("last statement not known: {why}")),
            (None, None) => {}
        }
        let write =
            session.first_write.as_ref().filter(|text| statement.text.as_ref() != Some(*text));
        if let Some(write) = write {
            let text = printable(write.as_bytes(), None, self.look.redact);
            self.line(indent, &format!("wrote first: {}", cut(&text, STATEMENT_MAX)));
        }
    }

    fn deadlock(&mut self, deadlock: &Deadlock) {
        self.line("", "");
        let at = deadlock.at.as_deref().unwrap_or("at an unknown time");
        self.line("", &format!("last deadlock: {at} (server's time zone)"));
        for party in &deadlock.transactions {
            let id = party.connection_id.map_or("?".to_owned(), |id| id.to_string());
            let end = if party.rolled_back { ", rolled back" } else { "" };
            let active = seconds(party.active_s.map(|seconds| seconds as f64));
            self.line("  ", &format!("{id}, transaction of {active}{end}"));
            if let Some(statement) = &party.statement {
                self.line("    ", &format!("ran: {}", cut(statement, STATEMENT_MAX)));
            }
            for lock in &party.holds {
                self.line("    ", &format!("held {}", held(lock)));
            }
            for lock in &party.waits_for {
                self.line("    ", &format!("waited for {}", held(lock)));
            }
        }
    }
}

/// What a thread of the server is; `None` for a client's session.
fn thread(session: &Session) -> Option<String> {
    let what = match session.kind {
        SessionKind::Client | SessionKind::Unknown => return None,
        SessionKind::Applier => "applier of replication",
        SessionKind::Receiver => "receiver of replication",
        SessionKind::EventScheduler => "event scheduler",
        SessionKind::System => {
            let name = session.thread.as_ref().or(session.state.as_ref());
            let name = name.map_or(String::new(), |name| format!(" ({name})"));
            return Some(format!("thread of the server{name}"));
        }
        SessionKind::Event => {
            let of = session.user.as_deref().map_or(String::new(), |user| format!(" of {user}"));
            return Some(format!("event{of}"));
        }
    };
    let channel = session.channel.as_ref().filter(|channel| !channel.is_empty());
    Some(channel.map_or(what.to_owned(), |channel| format!("{what} (channel {})", name(channel))))
}

fn in_words(transaction: &Transaction) -> String {
    let age = seconds(transaction.age_s);
    let Transaction { rows_locked, rows_modified, .. } = transaction;
    match transaction.rolling_back {
        true => format!(
            ", transaction of {age} that is being rolled back, {rows_modified} changes left to undo"
        ),
        false => format!(
            ", transaction of {age} with {rows_locked} rows locked, {rows_modified} modified"
        ),
    }
}

fn activity(session: &Session) -> String {
    let since = seconds(session.since_s);
    // A session that was killed while it was idle keeps that command while it rolls back.
    if session.transaction.as_ref().is_some_and(|transaction| transaction.rolling_back) {
        return String::new();
    }
    if session.killed == Some(true) {
        return ", ending".to_owned();
    }
    match (session.is_idle(), session.command.as_deref()) {
        (true, _) => format!(", idle {since}"),
        (false, Some(_)) if session.statement.is_running => format!(", running {since}"),
        (false, Some(command)) => format!(", {command} {since}"),
        (false, None) => String::new(),
    }
}

/// `3 s for X,REC_NOT_GAP on shop.t PRIMARY, record 2:4:2`.
fn waits_for(wait: &Wait, redact: bool) -> String {
    let lock = &wait.lock;
    let kind = match lock.kind {
        LockKind::Row => "for a row lock",
        LockKind::Metadata => "for a metadata lock",
        LockKind::Table => "for the lock of a table",
        LockKind::Flush => "for the end of a flush",
        LockKind::Replication => "for another worker of replication",
        LockKind::Other | LockKind::None => "in the state",
    };
    let mut text = format!("{} {kind}", seconds(wait.waited_s));
    if let (LockKind::Other | LockKind::None | LockKind::Replication, Some(state)) =
        (lock.kind, &lock.state)
    {
        let _ = write!(text, " \"{state}\"");
    }
    let parts = [("", &lock.mode), ("on ", &lock.object), ("", &lock.index)];
    for (word, part) in parts {
        if let Some(part) = part {
            let _ = write!(text, " {word}{}", name(part));
        }
    }
    if let Some(record) = &lock.record {
        let _ = write!(text, ", record {record}");
    }
    if let Some(key) = lock.key.as_ref().filter(|_| !redact) {
        let _ = write!(text, ", key {key}");
    }
    if wait.by_elimination {
        text.push_str(" (by elimination: nobody else can hold it)");
    }
    text.push_str(match wait.source {
        Source::Sql => " [SQL]",
        Source::Memory => " [memory]",
    });
    text
}

fn held(lock: &HeldLock) -> String {
    let parts = [&lock.mode, &lock.object, &lock.index];
    let parts: Vec<&str> = parts.into_iter().filter_map(|part| part.as_deref()).collect();
    let page = lock.page.as_ref().map_or(String::new(), |page| format!(", page {page}"));
    format!("{}{page}", parts.join(" "))
}

fn seconds(number: Option<f64>) -> String {
    number.map_or("? s".to_owned(), |seconds| format!("{seconds:.0} s"))
}
