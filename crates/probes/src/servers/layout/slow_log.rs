//! What the slow-log function reveals. It is the one exported function of every server that uses
//! the statement's start, the lock time and the parts of the security context.
//!
//! `Query_logger::slow_log_write` (MySQL) and `LOGGER::slow_log_print` (MariaDB) take the session
//! as second argument. They subtract the start from the current time and, if the lock field is a
//! time, subtract the start from that too. They build `priv_user[user] @ host [ip]` with
//! `strxnmov`. `File_query_log::write_slow` (MySQL) and `MYSQL_QUERY_LOG::write` (MariaDB) have the
//! session in the same place, and print the numbers of rows.

use super::shape::Offsets;
use crate::servers::arch::{Term, Trace};

const SESSION: Term = Term::Argument(1);

/// Subtracted from something: the start.
pub(super) fn start(trace: &Trace) -> Offsets {
    trace.subtractions().filter_map(|(_, right)| right.field_of(&SESSION, 8)).collect()
}

/// What the start is subtracted from, where that is a field itself: the lock time.
pub(super) fn lock(trace: &Trace) -> Offsets {
    trace
        .subtractions()
        .filter(|(_, right)| right.field_of(&SESSION, 8).is_some())
        .filter_map(|(left, _)| left.field_of(&SESSION, 8))
        .collect()
}

/// `strxnmov(buffer, size, priv_user, "[", user, "] @ ", host, " [", ip, "]", NullS)`.
struct Account {
    context: u32,
    user: u32,
    host: u32,
    address: u32,
}

fn accounts(trace: &Trace) -> impl Iterator<Item = Account> {
    trace.calls().filter_map(|arguments| {
        let (context, ..) = arguments[6].load()?;
        Some(Account {
            context: context.field_of(&SESSION, 8)?,
            user: arguments[4].field_of(context, 8)?,
            host: arguments[6].field_of(context, 8)?,
            address: arguments[8].field_of(context, 8)?,
        })
    })
}

/// The security context in the session.
pub(super) fn context(trace: &Trace) -> Offsets {
    accounts(trace).map(|account| account.context).collect()
}

/// The user in the context.
pub(super) fn user(trace: &Trace) -> Offsets {
    accounts(trace).map(|account| account.user).collect()
}

/// The host in the context.
pub(super) fn host(trace: &Trace) -> Offsets {
    accounts(trace).map(|account| account.host).collect()
}

/// The address in the context.
pub(super) fn address(trace: &Trace) -> Offsets {
    accounts(trace).map(|account| account.address).collect()
}

/// `my_b_printf(…, query_time, lock_time, rows_sent, rows_examined, …)`, where both times are texts on
/// the stack.
fn rows(trace: &Trace) -> impl Iterator<Item = (u32, u32)> {
    let is_local = |term: &Term| term.clone().split().0 == Term::Frame;
    trace.calls().flat_map(|arguments| arguments.windows(4)).filter_map(move |four| {
        let rows = (four[2].field_of(&SESSION, 8)?, four[3].field_of(&SESSION, 8)?);
        (is_local(&four[0]) && is_local(&four[1])).then_some(rows)
    })
}

/// Rows sent, as printed.
pub(super) fn rows_sent(trace: &Trace) -> Offsets {
    rows(trace).map(|(sent, _)| sent).collect()
}

/// Rows examined, as printed.
pub(super) fn rows_examined(trace: &Trace) -> Offsets {
    rows(trace).map(|(_, examined)| examined).collect()
}
