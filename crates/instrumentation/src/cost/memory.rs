//! The memory of Performance Schema, by the kind of event that it serves.

use std::collections::BTreeMap;

use waggle_model::Reading;

use super::Fixed;

/// The kinds, by a part of the names of their buffers; the first match counts.
const KINDS: [(&str, &str); 15] = [
    ("digest", "statement"),
    ("statement", "statement"),
    ("session_connect_attrs", "session"),
    ("stages", "stage"),
    ("transactions", "transaction"),
    ("waits", "wait"),
    ("memory", "memory"),
    ("error", "error"),
    ("mutex", "wait"),
    ("rwlock", "wait"),
    ("cond", "wait"),
    ("table", "wait"),
    ("file", "wait"),
    ("socket", "wait"),
    ("metadata_lock", "wait"),
];

/// The row that is the whole.
const WHOLE: &str = "performance_schema";

/// Sums up buffers, as `SHOW ENGINE PERFORMANCE_SCHEMA STATUS` names them.
pub(super) fn fixed(buffers: &Reading<BTreeMap<String, u64>>) -> Fixed {
    let mut memory_bytes = BTreeMap::new();
    for (name, bytes) in buffers.value().into_iter().flatten().filter(|(name, _)| *name != WHOLE) {
        let kind = KINDS.iter().find(|(part, _)| name.contains(part)).map_or("other", |one| one.1);
        let sum: &mut u64 = memory_bytes.entry(kind).or_default();
        *sum = sum.saturating_add(*bytes);
    }
    let memory_missing = buffers.why().map(str::to_owned);
    Fixed { memory_bytes, memory_bytes_total: total(buffers), memory_missing, cores: None }
}

/// The whole, bytes; `None` if it cannot be read.
pub(super) fn total(buffers: &Reading<BTreeMap<String, u64>>) -> Option<u64> {
    buffers.value()?.get(WHOLE).copied()
}

/// Buffers with a row for each object that a class records. None is made while the class is off, and
/// none is given back when it is off again (`pfs_create_file`, `pfs_open_table` and
/// `pfs_create_metadata_lock` in `storage/perfschema/pfs.cc`; "The Performance Schema
/// Memory-Allocation Model" of the MySQL manual). All others have the size that they get when the
/// server starts, or grow with sessions, whatever is on.
const GROWING: [(&str, &[&str]); 4] = [
    ("wait/io/file", &["file_instances"]),
    ("wait/io/table", &["(pfs_table)", "table_io_waits_summary_by_index_usage"]),
    ("wait/lock/metadata", &["metadata_locks"]),
    ("wait/lock/table", &["(pfs_table)", "table_lock_waits_summary_by_table"]),
];

/// The buffers that grow with a class, and the bytes that they have now; `None` if that cannot be
/// read.
pub(super) fn growing(
    class: &str,
    buffers: &Reading<BTreeMap<String, u64>>,
) -> impl Iterator<Item = (&'static str, Option<u64>)> {
    let grows = GROWING.iter().find(|(of, _)| *of == class).map_or(&[][..], |(_, grows)| *grows);
    grows.iter().map(move |name| {
        // One that has nothing is not among them.
        (*name, buffers.value().map(|all| all.get(*name).copied().unwrap_or(0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_has_nothing_yet_is_told_from_one_that_cannot_be_read() {
        let growing = |class, buffers: &[(&str, u64)]| {
            let buffers = buffers.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes));
            growing(class, &Reading::Value(buffers.collect())).collect::<Vec<_>>()
        };
        let locks = "wait/lock/metadata";
        assert_eq!(growing(locks, &[("threads", 1)]), [("metadata_locks", Some(0))]);
        assert_eq!(growing(locks, &[("metadata_locks", 8)]), [("metadata_locks", Some(8))]);
        let unread: Vec<_> = super::growing(locks, &Reading::absent("no right")).collect();
        assert_eq!(unread, [("metadata_locks", None)]);
        assert!(growing("stage", &[("threads", 1)]).is_empty());
    }

    #[test]
    fn every_buffer_is_counted_once() {
        let buffers = [
            ("events_waits_history_long", 1),
            ("events_waits_summary_by_thread_by_event_name", 2),
            ("mutex_instances", 4),
            ("events_statements_summary_by_digest", 8),
            ("events_statements_history.sqltext", 16),
            ("memory_summary_by_thread_by_event_name", 32),
            ("threads", 64),
            ("performance_schema", 127),
        ];
        let buffers = buffers.map(|(name, bytes)| (name.to_owned(), bytes));
        let fixed = fixed(&Reading::Value(buffers.into()));
        let expected = [("memory", 32), ("other", 64), ("statement", 24), ("wait", 7)];
        assert_eq!(fixed.memory_bytes, expected.into());
        assert_eq!(fixed.memory_bytes_total, Some(127));
        assert_eq!(fixed.cores, None, "not measured is not zero");
    }
}
