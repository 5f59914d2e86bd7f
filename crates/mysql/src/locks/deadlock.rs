//! Parses the last deadlock from `SHOW ENGINE INNODB STATUS`.
//!
//! That statement holds mutexes of the lock system while it writes up to a megabyte of text, so it
//! is sent only on request. The parser returns an answer for every text. It leaves out the contents
//! of records, which the server prints in hexadecimal.

use serde::Serialize;

use super::gate::grant_process;
use crate::connection::{Connection, ConnectionError, text};
use waggle_model::Reading;

/// Characters of a statement that are kept.
const STATEMENT_MAX: usize = 4096;
/// Transactions and locks that are kept.
const ENTRIES_MAX: usize = 64;

/// Two or more transactions that waited for each other, until InnoDB rolled one back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Deadlock {
    /// When, as the server writes it: its own time zone.
    pub at: Option<String>,
    /// Who took part, in the server's order.
    pub transactions: Vec<Party>,
}

/// A transaction of a deadlock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Party {
    /// The transaction's id.
    pub id: Option<String>,
    /// For how long it ran, in seconds.
    pub active_s: Option<u64>,
    /// The session.
    pub connection_id: Option<u64>,
    /// The statement that waited.
    pub statement: Option<String>,
    /// What it held.
    pub holds: Vec<HeldLock>,
    /// What it waited for.
    pub waits_for: Vec<HeldLock>,
    /// Whether it was the one that was rolled back, as the server says it (MariaDB 11.4.5 has been
    /// seen to name the other one).
    pub rolled_back: bool,
}

/// A lock as the deadlock names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeldLock {
    /// `schema.table`.
    pub object: Option<String>,
    /// The index; `None` for the lock of a table.
    pub index: Option<String>,
    /// The mode as the server writes it: `X locks rec but not gap`.
    pub mode: Option<String>,
    /// Tablespace and page.
    pub page: Option<String>,
}

/// Asks the server. `Value(None)` means no deadlock since the server's start.
///
/// # Errors
/// The connection is broken.
pub fn last_deadlock(
    connection: &mut Connection,
) -> Result<Reading<Option<Deadlock>>, ConnectionError> {
    match connection.rows("SHOW ENGINE INNODB STATUS") {
        Ok(rows) => Ok(Reading::Value(rows.first().and_then(|row| parse(&text(row, 2))))),
        Err(error) if error.is_access_denied() => Ok(Reading::Absent(format!(
            "account may not read the last deadlock; run {}",
            grant_process(connection)
        ))),
        Err(error) => Err(error),
    }
}

/// Where a line belongs.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Head,
    Statement,
    Holds,
    WaitsFor,
    Other,
}

/// Reads the section `LATEST DETECTED DEADLOCK`; `None` if there is none.
pub fn parse(status: &str) -> Option<Deadlock> {
    let mut lines = status.lines().skip_while(|line| line.trim() != "LATEST DETECTED DEADLOCK");
    lines.next()?;
    let mut deadlock = Deadlock::default();
    let mut part = Part::Other;
    for line in lines.skip(1) {
        // A new section begins with a rule.
        if line.len() >= 8 && line.bytes().all(|byte| byte == b'-') {
            break;
        }
        if deadlock.at.is_none() && deadlock.transactions.is_empty() {
            deadlock.at = time(line);
        }
        match heading(line) {
            Some(Heading::Transaction) if deadlock.transactions.len() < ENTRIES_MAX => {
                deadlock.transactions.push(Party::default());
                part = Part::Head;
            }
            Some(Heading::Transaction) => part = Part::Other,
            Some(Heading::Part(next)) => part = next,
            Some(Heading::RolledBack(number)) => {
                if let Some(victim) = number.checked_sub(1) {
                    deadlock
                        .transactions
                        .get_mut(victim)
                        .iter_mut()
                        .for_each(|party| party.rolled_back = true);
                }
                part = Part::Other;
            }
            None => {
                if let Some(party) = deadlock.transactions.last_mut() {
                    part = party.line(part, line);
                }
            }
        }
    }
    Some(deadlock)
}

enum Heading {
    Transaction,
    Part(Part),
    RolledBack(usize),
}

/// `*** (1) TRANSACTION:` and the like. A statement may hold such a line: then a part is cut short.
fn heading(line: &str) -> Option<Heading> {
    let rest = line.strip_prefix("*** ")?;
    if let Some(number) = rest.strip_prefix("WE ROLL BACK TRANSACTION (") {
        return Some(Heading::RolledBack(number.split(')').next()?.parse().ok()?));
    }
    let title = match rest.strip_prefix('(') {
        Some(numbered) => numbered.split_once(") ")?.1,
        None => rest,
    };
    Some(match title.trim_end() {
        "TRANSACTION:" => Heading::Transaction,
        "HOLDS THE LOCK(S):" => Heading::Part(Part::Holds),
        "WAITING FOR THIS LOCK TO BE GRANTED:" => Heading::Part(Part::WaitsFor),
        _ => Heading::Part(Part::Other),
    })
}

impl Party {
    /// Takes a line; gives the part to which the next one belongs.
    fn line(&mut self, part: Part, line: &str) -> Part {
        match part {
            Part::Head => return self.head(line),
            Part::Statement => self.more_of_the_statement(line),
            Part::Holds => add(&mut self.holds, line),
            Part::WaitsFor => add(&mut self.waits_for, line),
            Part::Other => {}
        }
        part
    }

    /// The lines before the statement; the one that names the session is the last of them.
    fn head(&mut self, line: &str) -> Part {
        if let Some(rest) = line.strip_prefix("TRANSACTION ") {
            self.id = rest.split(',').next().map(|id| id.trim().to_owned());
            self.active_s = after(rest, "ACTIVE ");
        } else if line.contains(" thread id ") && line.contains("query id ") {
            self.connection_id = after(line, " thread id ");
            return Part::Statement;
        }
        Part::Head
    }

    fn more_of_the_statement(&mut self, line: &str) {
        // Not every version has an empty line or a heading behind the statement.
        if line.is_empty() && self.statement.is_none() {
            return;
        }
        let statement = self.statement.get_or_insert_default();
        if !statement.is_empty() {
            statement.push('\n');
        }
        let room = STATEMENT_MAX.saturating_sub(statement.len());
        statement.extend(line.chars().take(room));
    }
}

fn add(locks: &mut Vec<HeldLock>, line: &str) {
    let is_lock = line.starts_with("RECORD LOCKS ") || line.starts_with("TABLE LOCK ");
    if is_lock && locks.len() < ENTRIES_MAX {
        locks.push(lock(line));
    }
}

/// ``RECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table `shop`.`t` trx id 9 lock_mode X
/// locks rec but not gap waiting``, or ``TABLE LOCK table `shop`.`t` trx id 9 lock mode IX``.
fn lock(line: &str) -> HeldLock {
    let number = |name: &str| after::<u64>(line, name);
    let page = number("space id ").zip(number("page no "));
    let object = line.split_once("table ").and_then(|(_, rest)| rest.split_once(" trx id"));
    let index = line.split_once(" index ").and_then(|(_, rest)| rest.split_once(" of table "));
    let mode = line.split_once(" lock_mode ").or_else(|| line.split_once(" lock mode "));
    let mode = mode.map(|(_, mode)| mode.trim_end().trim_end_matches(" waiting").to_owned());
    HeldLock {
        object: object.map(|(object, _)| object.replace('`', "")),
        index: index.map(|(index, _)| index.trim_matches('`').to_owned()),
        mode,
        page: page.map(|(space, page)| format!("{space}:{page}")),
    }
}

/// `2026-11-22 09:22:37`, which the line begins with.
fn time(line: &str) -> Option<String> {
    let time = line.get(..19)?;
    let is_digit = |at: usize| time.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    (is_digit(0) && is_digit(3) && is_digit(18)).then(|| time.to_owned())
}

/// The number behind a word.
fn after<T: std::str::FromStr>(line: &str, word: &str) -> Option<T> {
    let (_, rest) = line.split_once(word)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
#[path = "deadlock_tests.rs"]
mod tests;
