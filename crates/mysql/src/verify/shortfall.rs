//! By how much the server's digest rows fall short, where its sums by event name say that the capture is
//! right: each thread adds to those for itself, so that they miss nothing.

use std::collections::BTreeMap;

use super::join::Joined;
use super::{Captured, CapturedDigest, Field};
use crate::Difference;
use crate::counters::{Event, Sums};

/// The fields that are summed from the statements of a digest.
const SUMMED: [Field; 4] =
    [Field::Errors, Field::RowsSent, Field::RowsExamined, Field::RowsAffected];

/// What was captured of such a field; `None` where the layout does not give it, or another field.
pub(super) fn captured_sum(digest: &CapturedDigest, field: Field) -> Option<u64> {
    match field {
        Field::Errors => Some(digest.errors),
        Field::RowsSent => digest.rows_sent,
        Field::RowsExamined => digest.rows_examined,
        Field::RowsAffected => digest.rows_affected,
        _ => None,
    }
}

/// What the server summed of such a field.
pub(super) fn counted_sum(sums: &Sums, field: Field) -> u64 {
    match field {
        Field::Errors => sums.errors,
        Field::RowsSent => sums.rows_sent,
        Field::RowsExamined => sums.rows_examined,
        Field::RowsAffected => sums.rows_affected,
        _ => 0,
    }
}

/// By field, what all digest rows together miss of our sum. Only the fields whose sum over everything
/// that was captured is the server's sum by event name.
pub(super) fn shortfalls(
    captured: &Captured,
    server: &Difference,
    joined: &Joined,
) -> BTreeMap<Field, u64> {
    let agrees = |field: &Field| {
        let ours: Option<u64> =
            captured.digests.values().map(|digest| captured_sum(digest, *field)).sum();
        captured.unkept == 0 && ours.is_some() && ours == by_event_name(server, *field)
    };
    let of_rows = |field: Field| {
        let (mut ours, mut theirs) = (0, 0);
        for (key, row) in &joined.theirs {
            let digest = joined.ours.get(key).map(|ours| &ours.digest);
            ours += digest.and_then(|digest| captured_sum(digest, field)).unwrap_or(0);
            theirs += counted_sum(&row.sums, field);
        }
        (field, ours.saturating_sub(theirs))
    };
    SUMMED.into_iter().filter(agrees).map(of_rows).collect()
}

fn by_event_name(server: &Difference, field: Field) -> Option<u64> {
    let statements =
        server.events.value()?.iter().filter(|(name, _)| Event::of(name).is_statement());
    Some(statements.map(|(_, sums)| counted_sum(sums, field)).sum())
}
