//! Prepared statements of the binary protocol.

use super::reply::{self, Column, Reader, ResultSet};
use super::value::Value;
use super::{Client, Command};
use crate::Result;

/// `CURSOR_TYPE_READ_ONLY` (include/mysql_com.h).
const READ_ONLY_CURSOR: u8 = 1;

/// `STMT_BULK_FLAG_CLIENT_SEND_TYPES` of MariaDB (include/mysql_com.h).
const SENDS_TYPES: u16 = 128;
/// A value follows, or it is NULL (`STMT_INDICATOR_…`, the same file).
const INDICATORS: [u8; 2] = [0, 1];

/// A statement that the server has prepared for one session.
#[derive(Clone, Debug)]
pub struct StatementHandle {
    /// The server's number for it.
    pub id: u32,
    /// How many `?` it has.
    pub params: u16,
    columns: Vec<Column>,
}

impl Client {
    /// Prepares a statement (COM_STMT_PREPARE).
    pub fn prepare(&mut self, sql: impl AsRef<[u8]>) -> Result<StatementHandle> {
        self.send(Command::StmtPrepare, sql.as_ref())?;
        let packet = self.read_packet()?;
        let mut reader = Reader::new(&packet);
        if reader.u8()? == 0xff {
            return Err(reader.error()?);
        }
        let (id, columns, params) = (reader.u32()?, reader.u16()?, reader.u16()?);
        self.read_definitions(params)?;
        let columns = self.read_definitions(columns)?;
        Ok(StatementHandle { id, params, columns })
    }

    /// Definitions of parameters or columns: none at all if there are none.
    fn read_definitions(&mut self, count: u16) -> Result<Vec<Column>> {
        let columns = self.read_columns(u64::from(count))?;
        if count > 0 && !self.deprecates_eof() {
            self.read_packet()?;
        }
        Ok(columns)
    }

    /// Runs a prepared statement (COM_STMT_EXECUTE) and reads all results; with `cursor`, asks
    /// for a read-only cursor, whose rows come by [`Client::fetch`].
    pub fn execute(
        &mut self,
        statement: &StatementHandle,
        values: &[Value],
        cursor: bool,
    ) -> Result<Vec<ResultSet>> {
        self.send_execute(statement, values, cursor)?;
        self.read_binary_reply()
    }

    /// Sends COM_STMT_EXECUTE and reads nothing.
    pub fn send_execute(
        &mut self,
        statement: &StatementHandle,
        values: &[Value],
        cursor: bool,
    ) -> Result<()> {
        let mut payload = statement.id.to_le_bytes().to_vec();
        payload.push(if cursor { READ_ONLY_CURSOR } else { 0 });
        payload.extend(1u32.to_le_bytes());
        if !values.is_empty() {
            let mut nulls = vec![0u8; values.len().div_ceil(8)];
            let (mut types, mut contents) = (Vec::new(), Vec::new());
            for (number, value) in values.iter().enumerate() {
                if *value == Value::Null {
                    nulls[number / 8] |= 1 << (number % 8);
                }
                let (kind, content) = value.encode();
                types.extend([kind, 0]);
                contents.extend(content);
            }
            payload.extend(nulls);
            // The types come with every execution.
            payload.push(1);
            payload.extend(types);
            payload.extend(contents);
        }
        self.send(Command::StmtExecute, &payload)
    }

    /// Runs a prepared statement for each of these rows of values, in one packet
    /// (COM_STMT_BULK_EXECUTE); MariaDB only. The types are those of the first row.
    pub fn execute_bulk(
        &mut self,
        statement: &StatementHandle,
        rows: &[Vec<Value>],
    ) -> Result<ResultSet> {
        let mut payload = statement.id.to_le_bytes().to_vec();
        payload.extend(SENDS_TYPES.to_le_bytes());
        for value in rows.first().into_iter().flatten() {
            payload.extend([value.encode().0, 0]);
        }
        for value in rows.iter().flatten() {
            payload.push(INDICATORS[usize::from(*value == Value::Null)]);
            payload.extend(value.encode().1);
        }
        self.simple(Command::StmtBulkExecute, &payload)
    }

    /// Appends to a parameter (COM_STMT_SEND_LONG_DATA); the server does not answer. Execute with
    /// [`Value::Long`] in its place.
    pub fn send_long_data(
        &mut self,
        statement: &StatementHandle,
        parameter: u16,
        data: &[u8],
    ) -> Result<()> {
        let id = statement.id.to_le_bytes();
        let payload = [&id[..], &parameter.to_le_bytes(), data].concat();
        self.send(Command::StmtSendLongData, &payload)
    }

    /// Fetches up to `rows` rows of an open cursor (COM_STMT_FETCH).
    pub fn fetch(&mut self, statement: &StatementHandle, rows: u32) -> Result<ResultSet> {
        let payload = [statement.id.to_le_bytes(), rows.to_le_bytes()].concat();
        self.send(Command::StmtFetch, &payload)?;
        let columns = statement.columns.clone();
        let mut fetched = Vec::new();
        let result = ResultSet { columns, ..ResultSet::default() };
        let mut result = self.read_rows(result, &mut |row| fetched.push(row.to_vec()))?;
        let decoded = fetched.iter().map(|row| reply::binary_row(row, &result.columns));
        result.rows = decoded.collect::<Result<_>>()?;
        Ok(result)
    }

    /// Forgets long data and closes the cursor (COM_STMT_RESET).
    pub fn reset_statement(&mut self, statement: &StatementHandle) -> Result<ResultSet> {
        self.simple(Command::StmtReset, &statement.id.to_le_bytes())
    }

    /// Frees a prepared statement (COM_STMT_CLOSE); the server does not answer.
    pub fn close_statement(&mut self, statement: StatementHandle) -> Result<()> {
        self.send(Command::StmtClose, &statement.id.to_le_bytes())
    }
}
