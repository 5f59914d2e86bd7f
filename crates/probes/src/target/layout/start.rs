//! What `THD::set_time` shows: where a statement starts, both its start and its lock time are set.

use super::shape::Offsets;
use crate::target::arch::{Term, Trace};

const SESSION: Term = Term::Argument(0);

/// A value that the function made itself, and the field in which it lands.
fn made(trace: &Trace) -> impl Iterator<Item = (i64, &Term)> {
    trace.stores().filter_map(|(to, offset, width, value)| {
        let is_made = matches!(value, Term::Opaque(_) | Term::Sum(..));
        (*to == SESSION && width == 8 && is_made).then_some((offset, value))
    })
}

fn stored_at(trace: &Trace, at: i64) -> impl Iterator<Item = &Term> {
    trace
        .stores()
        .filter(move |(to, offset, width, _)| **to == SESSION && *offset == at && *width == 8)
        .map(|(.., value)| value)
}

fn starts(trace: &Trace, lock: impl Fn(&Term, &Term) -> bool) -> Offsets {
    made(trace)
        .filter(|(offset, start)| {
            let mut next = stored_at(trace, offset + 8).peekable();
            next.peek().is_some() && next.all(|value| lock(start, value))
        })
        .filter_map(|(offset, _)| u32::try_from(offset).ok())
        .collect()
}

/// The start goes to two neighbours: the lock field is a time and starts as the same.
pub(super) fn start_set_twice(trace: &Trace) -> Offsets {
    starts(trace, |start, lock| start == lock)
}

/// The neighbour of the start is set to zero: the lock field is a duration.
pub(super) fn start_set_beside_zero(trace: &Trace) -> Offsets {
    starts(trace, |_, lock| lock.constant() == Some(0))
}

/// The lock field in either case.
pub(super) fn lock(trace: &Trace) -> Offsets {
    let both = &start_set_twice(trace) | &start_set_beside_zero(trace);
    both.into_iter().map(|offset| offset + 8).collect()
}
