//! Which accounts, objects and threads are recorded.

use crate::pattern::fits;
use crate::plan::{PlanError, yes_no};
use crate::state::{Rows, State};
use crate::table::Table;

/// Everything, unless something is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Sessions of these accounts only.
    pub accounts: Vec<Account>,
    /// Objects of these schemas only.
    pub schemas: Vec<String>,
    /// These objects only.
    pub objects: Vec<Object>,
    /// These threads only: their number in `threads`, or a pattern of their names.
    pub threads: Vec<ThreadName>,
}

/// An account, as `setup_actors` has it; `%` is any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub user: String,
    /// The host.
    pub host: String,
}

/// A kind of object that `setup_objects` knows, and one of that kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// `EVENT`, `FUNCTION`, `PROCEDURE`, `TABLE` or `TRIGGER`.
    pub kind: String,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
}

/// How threads are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadName {
    /// By `THREAD_ID`.
    Number(u64),
    /// By `NAME`, a pattern.
    Name(String),
}

/// An existing thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// `THREAD_ID`.
    pub thread: u64,
    /// `NAME`.
    pub name: String,
    /// `PROCESSLIST_USER`; `None`: it serves no client.
    pub user: Option<String>,
    /// `PROCESSLIST_HOST`.
    pub host: Option<String>,
}

/// The kinds of objects that `setup_objects` knows.
pub const OBJECT_KINDS: [&str; 5] = ["EVENT", "FUNCTION", "PROCEDURE", "TABLE", "TRIGGER"];

/// The name of a thread that serves a client, in all versions.
const THREAD_OF_A_SESSION: &str = "thread/sql/one_connection";

/// A name as the tables have it. They compare names whole, `%` alone is any.
///
/// # Errors
/// It is empty, has quotes around it, or is a pattern: no row would ever fit.
pub fn name(text: &str) -> Result<String, String> {
    let is_quoted = |quote| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    if text.is_empty() {
        return Err("a name is missing".to_owned());
    }
    if ['\'', '"', '`'].into_iter().any(is_quoted) {
        return Err(format!("`{text}`: write names without quotes"));
    }
    if text.contains('%') && text != "%" {
        return Err(format!("`{text}`: % stands for a whole name only, not for a part of one"));
    }
    Ok(text.to_owned())
}

impl std::str::FromStr for Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (user, host) = text.rsplit_once('@').unwrap_or((text, "%"));
        if user.is_empty() || host.is_empty() {
            return Err(format!("`{text}` is no account; write user@host, or user@%"));
        }
        Ok(Account { user: name(user)?, host: name(host)? })
    }
}

impl std::str::FromStr for Object {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            format!(
                "`{text}` is no object; write TYPE:schema.name with one of {}",
                OBJECT_KINDS.join(", ")
            )
        };
        let (kind, object) = text.split_once(':').ok_or_else(wrong)?;
        let (schema, object) = object.split_once('.').ok_or_else(wrong)?;
        let kind = kind.to_ascii_uppercase();
        if !OBJECT_KINDS.contains(&kind.as_str()) || schema.is_empty() || object.is_empty() {
            return Err(wrong());
        }
        if schema == "%" && object != "%" {
            return Err(format!(
                "`{text}`: a name needs its schema; setup_objects knows no other rule"
            ));
        }
        Ok(Object { kind, schema: name(schema)?, name: name(object)? })
    }
}

impl std::str::FromStr for ThreadName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(number) => Ok(ThreadName::Number(number)),
            Err(_) if text.starts_with("thread/") || text.contains('%') => {
                Ok(ThreadName::Name(text.to_owned()))
            }
            Err(_) => Err(format!(
                "`{text}` is no thread; write its number in performance_schema.threads, or a name \
                 such as thread/sql/one_connection"
            )),
        }
    }
}

impl Filter {
    /// Changes the tables that decide whose events are recorded.
    pub(crate) fn apply(&self, state: &mut State, sessions: &[Session]) -> Result<(), PlanError> {
        if !self.records_new_sessions() {
            rows_of(state, Table::Actors)?.clear();
        } else if !self.accounts.is_empty() {
            self.set_actors(rows_of(state, Table::Actors)?);
        }
        if !self.schemas.is_empty() || !self.objects.is_empty() {
            self.set_objects(rows_of(state, Table::Objects)?);
        }
        if !self.threads.is_empty() {
            self.look_for_threads(state, sessions)?;
            for (key, settings) in state.rows_mut(Table::SetupThreads).into_iter().flatten() {
                let is_chosen = self.threads.iter().any(|thread| thread.names(&key[0]));
                *settings = yes_no(is_chosen, is_chosen);
            }
        }
        if !self.accounts.is_empty() || !self.threads.is_empty() {
            self.set_threads(rows_of(state, Table::Threads)?, sessions);
        }
        Ok(())
    }

    /// Refuses a thread that is not there and will not come.
    fn look_for_threads(&self, state: &State, sessions: &[Session]) -> Result<(), PlanError> {
        for thread in &self.threads {
            let is_there = sessions.iter().any(|session| thread.is(session));
            if !is_there && !state.rows(Table::SetupThreads).any(|(key, _)| thread.names(&key[0])) {
                return Err(PlanError::Filter(format!(
                    "thread {thread}: there is none in performance_schema.threads, and none of this \
                     name to come in setup_threads; look there for its number or name"
                )));
            }
        }
        Ok(())
    }

    /// Whether a session that comes may be of the chosen threads. Who it is of decides
    /// `setup_actors`: `setup_threads` has no say about threads that serve clients.
    fn records_new_sessions(&self) -> bool {
        self.threads.is_empty()
            || self.threads.iter().any(|thread| thread.names(THREAD_OF_A_SESSION))
    }

    fn set_actors(&self, rows: &mut Rows) {
        rows.clear();
        for Account { user, host } in &self.accounts {
            let key = vec![host.clone(), user.clone(), "%".to_owned()];
            rows.insert(key, yes_no(true, true));
        }
    }

    /// Names the chosen ones, and turns the others off. The most special row counts.
    fn set_objects(&self, rows: &mut Rows) {
        let kinds: std::collections::BTreeSet<String> =
            rows.keys().map(|key| key[0].clone()).collect();
        for settings in rows.values_mut() {
            *settings = yes_no(false, false);
        }
        for schema in &self.schemas {
            for kind in &kinds {
                let key = vec![kind.clone(), schema.clone(), "%".to_owned()];
                rows.insert(key, yes_no(true, true));
            }
        }
        for Object { kind, schema, name } in &self.objects {
            let key = vec![kind.clone(), schema.clone(), name.clone()];
            rows.insert(key, yes_no(true, true));
        }
    }

    fn set_threads(&self, rows: &mut Rows, sessions: &[Session]) {
        for session in sessions {
            // Who serves no client is chosen by its thread alone.
            let is_chosen = if self.threads.is_empty() {
                match &session.user {
                    Some(_) => self.accounts.iter().any(|account| account.is_of(session)),
                    None => continue,
                }
            } else {
                let by_account = self.accounts.is_empty()
                    || self.accounts.iter().any(|account| account.is_of(session));
                by_account && self.threads.iter().any(|thread| thread.is(session))
            };
            if let Some(settings) = rows.get_mut(&vec![session.thread.to_string()]) {
                *settings = yes_no(is_chosen, is_chosen);
            }
        }
    }
}

fn rows_of(state: &mut State, table: Table) -> Result<&mut Rows, PlanError> {
    let why = state.why_absent(table).unwrap_or_default().to_owned();
    state.rows_mut(table).ok_or(PlanError::Absent(why))
}

impl Account {
    /// Whether a session is of it.
    pub(crate) fn is_of(&self, session: &Session) -> bool {
        let same = |pattern: &str, value: &Option<String>| {
            pattern == "%" || value.as_deref() == Some(pattern)
        };
        same(&self.user, &session.user) && same(&self.host, &session.host)
    }
}

impl ThreadName {
    /// Whether it is this one.
    pub(crate) fn is(&self, session: &Session) -> bool {
        match self {
            ThreadName::Number(number) => session.thread == *number,
            ThreadName::Name(_) => self.names(&session.name),
        }
    }

    /// Whether threads with this name are meant. A number means one existing thread, and no new
    /// ones.
    fn names(&self, name: &str) -> bool {
        match self {
            ThreadName::Number(_) => false,
            ThreadName::Name(pattern) => fits(name, pattern),
        }
    }
}

impl std::fmt::Display for ThreadName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ThreadName::Number(number) => write!(formatter, "{number}"),
            ThreadName::Name(pattern) => write!(formatter, "{pattern}"),
        }
    }
}
