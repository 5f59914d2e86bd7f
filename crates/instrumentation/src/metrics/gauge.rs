//! Tells counters from gauges.
//!
//! A counter only grows. If it fell, somebody reset it, for example with `FLUSH STATUS`, and its
//! count for that interval is not known. A gauge shows a state: it goes up and down and has no rate.

use super::Counter;
use crate::pattern::fits;

/// Gauges of InnoDB that `TYPE` does not tell from counters. Source: what `MONITOR_SET`, `MONITOR_DEC`
/// and the third place of `MONITOR_INC_VALUE_CUMULATIVE` are given in `storage/innobase`, and the
/// status variables among them.
const OF_INNODB: [&str; 21] = [
    "%_avg_%",
    "%_pct",
    "%_pct_%",
    "%_per_call",
    "buffer_flush_n_to_flush_%",
    "cpu_n",
    "ddl_background_drop_%",
    "ddl_online_create_index",
    "ddl_pending_alter_table",
    "ibuf_size",
    "lock_rec_locks",
    "lock_row_lock_current_waits",
    "lock_table_locks",
    "log_concurrency_margin",
    "log_flush_max_time",
    "log_free_space",
    "log_write_to_file_requests_interval",
    "metadata_table_reference_count",
    "os_%pending_%",
    "trx_active_transactions",
    "trx_undo_slots_%",
];

/// Gauges of the global status. Source: what the manuals of MySQL 9.7 and MariaDB 11.4 call current,
/// the largest, the average, or a size, in "Server Status Variables"; no server says it.
const OF_STATUS: [&str; 58] = [
    "%_open_temp_tables",
    "Acl_%",
    "Aria_pagecache_blocks_%",
    "Binlog_disk_use",
    "Binlog_snapshot_position",
    "Delayed_insert_threads",
    "Error_log_buffered_%",
    "Global_connection_memory",
    "Innodb_%_pending_%",
    "Innodb_available_undo_logs",
    "Innodb_buffer_pool_bytes_%",
    "Innodb_buffer_pool_pages_data",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_buffer_pool_pages_free",
    "Innodb_buffer_pool_pages_latched",
    "Innodb_buffer_pool_pages_misc",
    "Innodb_buffer_pool_pages_old",
    "Innodb_buffer_pool_pages_total",
    "Innodb_buffer_pool_resize_status_%",
    "Innodb_checkpoint_%",
    "Innodb_history_list_length",
    "Innodb_ibuf_free_list",
    "Innodb_ibuf_segment_size",
    "Innodb_ibuf_size",
    "Innodb_mem_%",
    "Innodb_num_open_files",
    "Innodb_onlineddl_%",
    "Innodb_page_size",
    "Innodb_redo_log_%size%",
    "Innodb_row_lock_current_waits",
    "Innodb_row_lock_time_avg",
    "Innodb_row_lock_time_max",
    "Innodb_undo_tablespaces_%",
    "Key_blocks_%",
    "Max_used_connections",
    "Memory_used%",
    "Mysqlx_worker_threads%",
    "Not_flushed_delayed_rows",
    "Open_%",
    "Performance_schema_session_connect_attrs_longest_seen",
    "Prepared_stmt_count",
    "Qcache_free_%",
    "Qcache_queries_in_cache",
    "Qcache_total_blocks",
    "Rpl_semi_sync_%_avg_wait_time",
    "Rpl_semi_sync_%_clients",
    "Rpl_semi_sync_%_wait_sessions",
    "Slaves_connected",
    "Slaves_running",
    "Ssl_used_session_cache_entries",
    "Tc_log_max_pages_used",
    "Threadpool_%threads",
    "Threads_cached",
    "Threads_connected",
    "Threads_running",
    "wsrep_%_queue%",
    "wsrep_cluster_size",
    "wsrep_thread_count",
];

impl Counter {
    /// Whether it shows a state and counts nothing.
    pub fn is_gauge(&self) -> bool {
        // Of a set one counter has the sum, one the number of times, and one what came last, such as
        // the pages of the last batch.
        let is_last = self.kind == "set_member" && self.name.ends_with("_pages");
        self.kind == "value" || is_last || is_any_of(&OF_INNODB, &self.name)
    }
}

/// Whether a variable of the global status shows a state and counts nothing.
pub(super) fn is_gauge_of_status(name: &str) -> bool {
    is_any_of(&OF_STATUS, name)
}

fn is_any_of(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| fits(name, pattern))
}

/// What a counter has counted between two readings; `None` if it fell.
pub fn growth(before: i64, now: i64) -> Option<i64> {
    now.checked_sub(before).filter(|growth| *growth >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fell_was_set_back_and_has_not_counted_less_than_nothing() {
        assert_eq!(growth(3, 5), Some(2));
        assert_eq!(growth(-4, -1), Some(3));
        assert_eq!(growth(5, 5), Some(0));
        assert_eq!(growth(5, 3), None);
        assert_eq!(growth(i64::MIN, i64::MAX), None);
    }

    #[test]
    fn a_gauge_of_innodb_is_known_by_its_type_or_by_its_name() {
        let is_gauge = |kind: &str, name: &str| {
            let (name, kind) = (name.to_owned(), kind.to_owned());
            Counter { name, kind, ..Counter::default() }.is_gauge()
        };
        for (kind, name) in [
            ("value", "buffer_pool_pages_dirty"),
            ("set_member", "buffer_LRU_batch_scanned_per_call"),
            ("set_member", "buffer_flush_adaptive_pages"),
            ("counter", "buffer_flush_avg_page_rate"),
            ("counter", "buffer_flush_pct_for_lsn"),
            ("counter", "cpu_utime_pct"),
            ("counter", "lock_rec_locks"),
            ("counter", "os_pending_reads"),
            ("status_counter", "os_log_pending_fsyncs"),
            ("status_counter", "lock_row_lock_current_waits"),
        ] {
            assert!(is_gauge(kind, name), "{kind} {name}");
        }
        for (kind, name) in [
            ("counter", "trx_rw_commits"),
            ("counter", "lock_rec_lock_waits"),
            ("counter", "cpu_utime_abs"),
            ("status_counter", "os_log_fsyncs"),
            ("status_counter", "buffer_pages_written"),
            ("set_owner", "buffer_flush_adaptive_total_pages"),
            ("set_member", "buffer_flush_adaptive"),
            ("set_member", "buffer_LRU_batch_num_scan"),
        ] {
            assert!(!is_gauge(kind, name), "{kind} {name}");
        }
    }

    #[test]
    fn a_gauge_of_the_status_is_known_by_its_name() {
        for name in [
            "Threads_running",
            "Open_tables",
            "Innodb_buffer_pool_pages_free",
            "Innodb_data_pending_reads",
            "Innodb_redo_log_capacity_resized",
            "Max_used_connections",
            "Replica_open_temp_tables",
        ] {
            assert!(is_gauge_of_status(name), "{name}");
        }
        for name in [
            "Threads_created",
            "Opened_tables",
            "Innodb_buffer_pool_pages_flushed",
            "Innodb_data_reads",
            "Innodb_redo_log_current_lsn",
            "Questions",
            "Innodb_row_lock_time",
            "Connection_errors_max_connections",
        ] {
            assert!(!is_gauge_of_status(name), "{name}");
        }
    }
}
