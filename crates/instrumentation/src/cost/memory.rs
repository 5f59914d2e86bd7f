//! The memory of Performance Schema, by what it serves.

use std::collections::BTreeMap;

use super::Fixed;

/// The kinds, by what stands in the names of their buffers; the first that fits counts.
const KINDS: [(&str, &str); 12] = [
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
];

/// Sums up buffers, as `SHOW ENGINE PERFORMANCE_SCHEMA STATUS` names them. The row
/// `performance_schema` is the whole.
pub(super) fn fixed(buffers: &BTreeMap<String, u64>) -> Fixed {
    let mut memory_bytes = BTreeMap::new();
    let mut total = None;
    for (name, bytes) in buffers {
        if name == "performance_schema" {
            total = Some(*bytes);
            continue;
        }
        let kind = KINDS.iter().find(|(part, _)| name.contains(part)).map_or("other", |one| one.1);
        *memory_bytes.entry(kind).or_default() += bytes;
    }
    Fixed { memory_bytes, memory_bytes_total: total, cores: None }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let fixed = fixed(&buffers.map(|(name, bytes)| (name.to_owned(), bytes)).into());
        let expected = [("memory", 32), ("other", 64), ("statement", 24), ("wait", 7)];
        assert_eq!(fixed.memory_bytes, expected.into());
        assert_eq!(fixed.memory_bytes_total, Some(127));
        assert_eq!(fixed.cores, None, "not measured is not zero");
    }
}
