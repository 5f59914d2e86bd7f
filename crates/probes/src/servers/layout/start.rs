//! What `THD::set_time` reveals: at the start of a statement it sets both the start and the lock
//! time.

use super::shape::{Offsets, argument_added};
use crate::servers::arch::{Term, Trace, offset};

const SESSION: Term = Term::Argument(0);

/// A value that the function made itself, and the field in which it lands.
fn made(trace: &Trace) -> impl Iterator<Item = (u32, &Term)> {
    trace.stores().filter_map(|(to, distance, width, value)| {
        let is_made = matches!(value, Term::Opaque(_) | Term::Sum(..));
        (*to == SESSION && width == 8 && is_made).then_some((offset(distance)?, value))
    })
}

fn stored_at(trace: &Trace, at: u32) -> impl Iterator<Item = &Term> {
    trace
        .stores()
        .filter(move |(to, distance, width, _)| {
            **to == SESSION && offset(*distance) == Some(at) && *width == 8
        })
        .map(|(.., value)| value)
}

fn starts(trace: &Trace, lock: impl Fn(&Term, &Term) -> bool) -> Offsets {
    let is_start = |(offset, start): &(u32, &Term)| {
        let mut next = stored_at(trace, offset + 8).peekable();
        next.peek().is_some() && next.all(|value| lock(start, value))
    };
    made(trace).filter(is_start).map(|(offset, _)| offset).collect()
}

/// The start goes to two neighbours: the lock field is a time and starts as the same.
pub(super) fn start_set_twice(trace: &Trace) -> Offsets {
    starts(trace, |start, lock| start == lock)
}

/// The neighbour of the start is set to zero: the lock field is a duration.
pub(super) fn start_set_beside_zero(trace: &Trace) -> Offsets {
    starts(trace, |_, lock| lock.constant() == Some(0))
}

/// What stands before the field to which a wait for a lock is added: in every family the start is
/// declared right before the lock time.
pub(super) fn before_added(trace: &Trace) -> Offsets {
    argument_added(trace).into_iter().filter_map(|offset| offset.checked_sub(8)).collect()
}

/// The lock field in either case.
pub(super) fn lock(trace: &Trace) -> Offsets {
    let both = &start_set_twice(trace) | &start_set_beside_zero(trace);
    both.into_iter().map(|offset| offset + 8).collect()
}
