//! Which exported function reveals which field, and how.

use super::shape::{self, Offsets};
use super::{Field, notice, slow_log, start};
use crate::servers::arch::Trace;

/// One way to find a field.
pub(super) struct Derivation {
    pub(super) field: Field,
    /// The symbol as the linker knows it.
    pub(super) symbol: &'static str,
    /// The name of the pattern.
    pub(super) shape: &'static str,
    pub(super) find: fn(&Trace) -> Offsets,
}

macro_rules! by {
    ($field:expr, $symbol:expr, $find:expr $(,)?) => {
        Derivation { field: $field, symbol: $symbol, shape: stringify!($find), find: $find }
    };
}

/// Every offset that any pattern finds in a function. For tests.
#[cfg(test)]
pub(in crate::servers) fn shapes_of(trace: &Trace) -> Offsets {
    TABLE.iter().flat_map(|derivation| (derivation.find)(trace)).collect()
}

const QUERY_C: &str = "thd_query_unsafe";
const QUERY: &str = "_Z16thd_query_unsafeP3THD";
const QUERY_SAFE: [&str; 2] = ["thd_query_safe", "_Z14thd_query_safeP3THDPcm"];
/// It skips daemons.
const FIND_SESSION: &str = "_ZN16Find_thd_with_idclEP3THD";
const COM_DAEMON: u64 = 29;
const COM_STMT_PREPARE: u64 = 22;
const SET_CONTEXT: [&str; 2] =
    ["thd_set_security_context", "_Z24thd_set_security_contextP3THDP16Security_context"];
const SET_DB: [&str; 2] =
    ["_ZN3THD6set_dbERK17MYSQL_LEX_CSTRING", "_ZN3THD6set_dbEPK25st_mysql_const_lex_string"];
const QUOTE: [&str; 2] =
    ["_Z29get_quote_char_for_identifierP3THDPKcm", "_Z29get_quote_char_for_identifierPK3THDPKcm"];
const COPY_DB: [&str; 3] = [
    "_ZNK3LEX10copy_db_toEPPcPm",
    "_ZNK3LEX10copy_db_toEPPKcPm",
    "_ZN3LEX10copy_db_toEP25st_mysql_const_lex_string",
];
const DEFAULT_DB: &str = "_Z16db_is_default_dbPKcmPK3THD";
const STATUS: &str = "_ZN3THD21send_statement_statusEv";
const END: &str = "_ZN8Protocol13end_statementEv";
const IS_ERROR: &str = "_Z12thd_is_errorPK3THD";
const SET_OK: &str = "_ZN16Diagnostics_area13set_ok_statusEyyPKc";
const SET_ERROR: &str = "_ZN16Diagnostics_area16set_error_statusEjPKcS1_";
const SET_ERROR_MARIADB: &str = "_ZN16Diagnostics_area16set_error_statusEjPKcS1_\
                                 RK27Sql_user_condition_identityPK13Sql_condition";
const RESET: &str = "_ZN16Diagnostics_area22reset_diagnostics_areaEv";
/// It hands the error number of the session on.
const NOTICE_OF_ERROR: [&str; 2] = [
    "_Z18mysql_audit_notifyP3THD33mysql_event_connection_subclass_tPKc",
    "_Z38mysql_event_tracking_connection_notifyP3THDmPKc",
];
const NOTICE: &str = "_Z18mysql_audit_notifyP3THD33mysql_event_connection_subclass_tPKci";
pub(super) const SLOW_LOG: [&str; 3] = [
    "_ZN12Query_logger14slow_log_writeEP3THDPKcm",
    "_ZN12Query_logger14slow_log_writeEP3THDPKcmbyy",
    "_ZN6LOGGER14slow_log_printEP3THDPKcmy",
];
pub(super) const SET_TIME: [&str; 2] = ["_ZN3THD8set_timeEv", "_ZN3THD8set_timeElm"];
const SLOW_ROWS: [&str; 3] = [
    "_ZN14File_query_log10write_slowEP3THDyPKcmyybS3_m",
    "_ZN14File_query_log10write_slowEP3THDyyPKcmyybS3_m",
    "_ZN15MYSQL_QUERY_LOG5writeEP3THDlPKcmyybS3_m",
];
const LOCK_WAIT: &str = "thd_storage_lock_wait";
const IS_KILLED: &str = "_ZNK16Mutex_cond_array13is_thd_killedEPK3THD";
const STAGE: &str = "_ZN3THD11enter_stageEPK17PSI_stage_info_v1PS0_PKcS5_j";
const CONTEXT: [&str; 2] =
    ["thd_get_security_context", "_Z24thd_get_security_contextP3THDPP16Security_context"];

/// Every derivation. Those of one field are tried in this order; all that fit must agree.
pub(super) const TABLE: &[Derivation] = &[
    by!(Field::QueryText, QUERY_C, shape::returned::<8>),
    by!(Field::QueryText, QUERY, shape::returned::<8>),
    by!(Field::QueryText, "thd_query_string", shape::returned_address),
    by!(Field::QueryText, QUERY_SAFE[0], shape::copied_text),
    by!(Field::QueryText, QUERY_SAFE[1], shape::copied_text),
    by!(Field::QueryLength, QUERY_C, shape::returned_second),
    by!(Field::QueryLength, QUERY, shape::returned_second),
    by!(Field::QueryLength, "thd_query_string", shape::returned_address_length),
    by!(Field::QueryLength, QUERY_SAFE[0], shape::copied_text_length),
    by!(Field::QueryLength, QUERY_SAFE[1], shape::copied_text_length),
    by!(Field::Database, "thd_current_db", shape::returned_address),
    by!(Field::Database, COPY_DB[0], shape::duplicated_text),
    by!(Field::Database, COPY_DB[1], shape::duplicated_text),
    by!(Field::Database, COPY_DB[2], shape::duplicated_text),
    by!(Field::Database, SET_DB[0], shape::overwritten_text),
    by!(Field::Database, SET_DB[1], shape::overwritten_text),
    by!(Field::Database, DEFAULT_DB, shape::compared_text),
    by!(Field::DatabaseLength, "thd_current_db", shape::returned_address_length),
    by!(Field::DatabaseLength, COPY_DB[0], shape::duplicated_length),
    by!(Field::DatabaseLength, COPY_DB[1], shape::duplicated_length),
    by!(Field::DatabaseLength, COPY_DB[2], shape::duplicated_length),
    by!(Field::DatabaseLength, SET_DB[0], shape::overwritten_text_length),
    by!(Field::DatabaseLength, SET_DB[1], shape::overwritten_text_length),
    by!(Field::DatabaseLength, DEFAULT_DB, shape::compared_text_length),
    by!(Field::ConnectionId, "thd_get_thread_id", shape::returned_number),
    by!(Field::ConnectionId, "thd_security_context", shape::printed_id),
    by!(Field::ConnectionId, FIND_SESSION, shape::argument_compared_with_own::<1>),
    by!(Field::ServerStatus, STATUS, shape::passed::<1, 4>),
    by!(Field::ServerStatus, END, shape::protocol_status),
    by!(Field::ServerStatus, "_ZN3THD24set_status_no_index_usedEv", shape::flag_set),
    by!(
        Field::Command,
        "_ZN3THD11set_commandE19enum_server_command",
        shape::argument_stored::<1, 4>,
    ),
    by!(Field::Command, "thd_current_command", shape::returned::<4>),
    by!(Field::Command, FIND_SESSION, shape::argument_compared::<1, COM_DAEMON>),
    by!(Field::Command, SLOW_LOG[2], shape::argument_compared::<1, COM_STMT_PREPARE>),
    by!(Field::StartTime, SLOW_LOG[0], slow_log::start),
    by!(Field::StartTime, SLOW_LOG[1], slow_log::start),
    by!(Field::StartTime, SLOW_LOG[2], slow_log::start),
    by!(Field::StartTime, SET_TIME[0], start::start_set_beside_zero),
    by!(Field::StartTime, SET_TIME[0], start::start_set_twice),
    by!(Field::StartTime, SET_TIME[1], start::start_set_twice),
    by!(Field::StartTime, LOCK_WAIT, start::before_added),
    by!(Field::LockTime, LOCK_WAIT, shape::argument_added),
    by!(Field::LockTime, SLOW_LOG[0], slow_log::lock),
    by!(Field::LockTime, SLOW_LOG[1], slow_log::lock),
    by!(Field::LockTime, SLOW_LOG[2], slow_log::lock),
    by!(Field::LockTime, SET_TIME[0], start::lock),
    by!(Field::LockTime, SET_TIME[1], start::lock),
    by!(Field::RowsSent, "_ZN3THD18inc_sent_row_countEy", shape::argument_added),
    by!(Field::RowsSent, "_ZN3THD18set_sent_row_countEy", shape::argument_stored::<1, 8>),
    by!(Field::RowsSent, SLOW_ROWS[0], slow_log::rows_sent),
    by!(Field::RowsSent, SLOW_ROWS[1], slow_log::rows_sent),
    by!(Field::RowsSent, SLOW_ROWS[2], slow_log::rows_sent),
    by!(Field::RowsExamined, "_ZN3THD22inc_examined_row_countEy", shape::argument_added),
    by!(Field::RowsExamined, "_ZN3THD22set_examined_row_countEy", shape::argument_stored::<1, 8>),
    by!(Field::RowsExamined, "_ZN3THD28ps_report_examined_row_countEv", shape::passed::<1, 8>),
    by!(Field::RowsExamined, SLOW_ROWS[0], slow_log::rows_examined),
    by!(Field::RowsExamined, SLOW_ROWS[1], slow_log::rows_examined),
    by!(Field::RowsExamined, SLOW_ROWS[2], slow_log::rows_examined),
    by!(Field::State, STAGE, shape::copied_to::<2, 8>),
    by!(Field::State, "set_thd_stage_info", shape::copied_to::<2, 8>),
    by!(Field::State, "_Z19deinit_event_threadP3THD", shape::text_stored),
    by!(Field::SqlMode, "thd_is_strict_mode", shape::strict_modes),
    by!(Field::SqlMode, "_Z18thd_is_strict_modePK3THD", shape::strict_modes),
    by!(Field::SqlMode, QUOTE[0], shape::ansi_quotes),
    by!(Field::SqlMode, QUOTE[1], shape::ansi_quotes),
    by!(Field::Charset, "thd_charset", shape::returned::<8>),
    by!(Field::Charset, "_Z11thd_charsetP3THD", shape::returned::<8>),
    by!(Field::Charset, "_ZN3THD14update_charsetEv", shape::converted),
    by!(Field::Killed, "thd_killed", shape::returned::<4>),
    by!(Field::Killed, IS_KILLED, shape::argument_compared::<1, 0>),
    by!(Field::Killed, "thd_kill_level", shape::argument_compared::<0, 0>),
    by!(Field::Killed, "_ZN3THD12reset_killedEv", shape::cleared_where_set),
    by!(Field::Diagnostics, STATUS, shape::compared_through),
    by!(Field::Diagnostics, IS_ERROR, shape::compared_through),
    by!(Field::Diagnostics, NOTICE_OF_ERROR[0], shape::passed_through::<3, 4>),
    by!(Field::Diagnostics, NOTICE_OF_ERROR[1], shape::passed_through::<3, 4>),
    by!(Field::Diagnostics, "thd_get_error_number", shape::returned_through),
    by!(Field::Diagnostics, "thd_current_status", shape::compared_through),
    by!(Field::Diagnostics, END, shape::protocol_area),
    by!(Field::SecurityContext, CONTEXT[0], shape::copied_to::<1, 0>),
    by!(Field::SecurityContext, CONTEXT[1], shape::copied_to::<1, 0>),
    by!(Field::SecurityContext, "thd_user_name", shape::returned_through),
    by!(Field::SecurityContext, SLOW_LOG[0], slow_log::context),
    by!(Field::SecurityContext, SLOW_LOG[1], slow_log::context),
    by!(Field::SecurityContext, SLOW_LOG[2], slow_log::context),
    by!(Field::SecurityContext, "thd_client_host", shape::returned_through),
    by!(Field::SecurityContext, SET_CONTEXT[0], shape::argument_stored::<1, 8>),
    by!(Field::SecurityContext, SET_CONTEXT[1], shape::argument_stored::<1, 8>),
    by!(Field::IsSent, STATUS, shape::flag_inner),
    by!(Field::IsSent, END, shape::protocol_flag),
    by!(Field::IsSent, RESET, shape::flags_cleared),
    by!(Field::DiagnosticsStatus, STATUS, shape::compared_inner),
    by!(Field::DiagnosticsStatus, IS_ERROR, shape::compared_inner),
    by!(Field::DiagnosticsStatus, "thd_current_status", shape::compared_inner),
    by!(Field::DiagnosticsStatus, SET_OK, shape::number_stored::<1, 4>),
    by!(Field::DiagnosticsStatus, SET_ERROR, shape::compared),
    by!(Field::DiagnosticsStatus, SET_ERROR_MARIADB, shape::compared),
    by!(Field::RowsAffected, SET_OK, shape::argument_stored::<1, 8>),
    by!(Field::RowsAffected, STATUS, shape::replied_rows),
    by!(Field::RowsAffected, RESET, shape::words_cleared),
    by!(Field::ErrorNumber, "thd_get_error_number", shape::returned_inner::<4>),
    by!(Field::ErrorNumber, STATUS, shape::passed_inner::<1, 4>),
    by!(Field::ErrorNumber, SET_ERROR, shape::argument_stored::<1, 4>),
    by!(Field::ErrorNumber, SET_ERROR_MARIADB, shape::argument_stored::<1, 4>),
    by!(Field::User, "_ZNK16Security_context4userEv", shape::returned::<8>),
    by!(Field::User, "thd_user_name", shape::returned_inner::<8>),
    by!(Field::User, "_ZN16Security_context12set_user_ptrEPKcm", shape::argument_stored::<1, 8>),
    by!(Field::User, NOTICE, notice::user),
    by!(Field::User, SLOW_LOG[0], slow_log::user),
    by!(Field::User, SLOW_LOG[1], slow_log::user),
    by!(Field::User, SLOW_LOG[2], slow_log::user),
    by!(Field::Host, "_ZNK16Security_context4hostEv", shape::returned::<8>),
    by!(Field::Host, "thd_client_host", shape::returned_inner::<8>),
    by!(Field::Host, "_ZN16Security_context12set_host_ptrEPKcm", shape::argument_stored::<1, 8>),
    by!(Field::Host, NOTICE, notice::host),
    by!(Field::Host, SLOW_LOG[0], slow_log::host),
    by!(Field::Host, SLOW_LOG[1], slow_log::host),
    by!(Field::Host, SLOW_LOG[2], slow_log::host),
    by!(Field::Address, "_ZNK16Security_context2ipEv", shape::returned::<8>),
    by!(Field::Address, "thd_client_ip", shape::returned_inner::<8>),
    by!(Field::Address, "_ZN16Security_context10set_ip_ptrEPKci", shape::argument_stored::<1, 8>),
    by!(Field::Address, NOTICE, notice::address),
    by!(Field::Address, SLOW_LOG[0], slow_log::address),
    by!(Field::Address, SLOW_LOG[1], slow_log::address),
    by!(Field::Address, SLOW_LOG[2], slow_log::address),
];
