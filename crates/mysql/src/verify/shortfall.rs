//! How far the server's digest rows fall short, if its sums by event name confirm the capture. Those
//! sums miss nothing, because each thread adds to its own.

use std::collections::BTreeMap;

use super::join::Joined;
use super::{Captured, CapturedDigest, Field};
use crate::Difference;
use crate::counters::{Event, Sums};

/// The fields that are summed from the statements of a digest.
const SUMMED: [Field; 4] =
    [Field::Errors, Field::RowsSent, Field::RowsExamined, Field::RowsAffected];

/// What was captured of such a field; `None` if the layout does not give it, or another field.
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

#[cfg(test)]
mod tests {
    use waggle_model::Reading;

    use super::*;
    use crate::verify::tests::{captured, server};
    use crate::verify::{Why, verify};

    #[test]
    fn a_sum_that_the_events_confirm_may_miss_the_rows_of_some_calls() {
        // What the row has, what the events have, and what another row has too much.
        for (row, events, other, why) in [
            (267, 369, 100, Some(Why::UnlockedRow)),
            (264, 369, 100, Some(Why::UnlockedRow)),
            (263, 369, 100, None),
            (267, 368, 100, None),
            (267, 369, 102, None),
        ] {
            let digests = [("UPDATE `a`", 269), ("UPDATE `b`", 100)];
            let mut server = server("9.7.4", &digests, 369, 0);
            let Reading::Value(rows) = &mut server.digests else { panic!("no digests") };
            (rows[0].sums.rows_affected, rows[1].sums.rows_affected) = (row, other);
            let Reading::Value(by_name) = &mut server.events else { panic!("no events") };
            by_name.get_mut("statement/sql/select").unwrap().rows_affected = events;
            let mut ours = captured(&[("UPDATE `a`", false, 269), ("UPDATE `b`", false, 100)]);
            for one in ours.digests.values_mut() {
                one.rows_affected = Some(one.calls.all());
            }
            let report = verify(&ours, &server);
            let first = &report.differing[0];
            assert_eq!((first.field, first.ours, first.why), (Field::RowsAffected, 269, why));
            assert_eq!(report.passed(), why.is_some(), "{row} {events} {other}");
        }
    }

    #[test]
    fn a_sum_of_an_unlocked_row_may_miss_the_rows_of_a_call() {
        for (rows, why) in [(199_900, Some(Why::UnlockedRow)), (199_700, None), (200_100, None)] {
            let mut server = server("9.7.4", &[("SELECT ?", 2_000)], 2_000, 0);
            let Reading::Value(digests) = &mut server.digests else { panic!("no digests") };
            digests[0].sums.rows_sent = rows;
            let mut ours = captured(&[("SELECT ?", false, 2_000)]);
            ours.digests.values_mut().for_each(|one| one.rows_sent = Some(200_000));
            let report = verify(&ours, &server);
            assert_eq!(
                (report.differing[0].field, report.differing[0].why),
                (Field::RowsSent, why)
            );
            assert_eq!(report.passed(), why.is_some());
        }
    }
}
