//! Reading what the server answers.

use super::connect::DEPRECATE_EOF;
use super::{Client, value};
use crate::{Error, Result};

/// Bits of the server status (`SERVER_*`, include/mysql_com.h).
const MORE_RESULTS: u16 = 1 << 3;
const CURSOR_EXISTS: u16 = 1 << 6;
/// Bit of a column's flags (`UNSIGNED_FLAG`).
const UNSIGNED: u16 = 1 << 5;
/// A longer packet that starts with 0xfe is a row; but with `CLIENT_DEPRECATE_EOF` it is an OK
/// packet up to the largest packet.
const EOF_LIMIT: usize = 9;
const OK_LIMIT: usize = 0xff_ffff;

/// One row: a value is NULL or its text, also in the binary protocol.
pub type Row = Vec<Option<Vec<u8>>>;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name or alias.
    pub name: String,
    /// Its type (`enum_field_types`).
    pub kind: u8,
    /// Its flags (`*_FLAG`, include/mysql_com.h).
    pub flags: u16,
}

/// One result: of a SELECT, of a statement without rows, or an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultSet {
    /// Empty for a statement without rows.
    pub columns: Vec<Column>,
    /// Empty if there are none, or if they were not kept.
    pub rows: Vec<Row>,
    /// Rows changed.
    pub affected: u64,
    /// The server's status bits at the end of the result.
    pub status: u16,
    /// Number of warnings.
    pub warnings: u16,
    /// The server's error number and message.
    pub error: Option<(u16, String)>,
    /// Whether another result follows.
    pub more: bool,
}

impl ResultSet {
    /// One value as text; none if it is NULL or not there.
    pub fn text(&self, row: usize, column: usize) -> Option<String> {
        let value = self.rows.get(row)?.get(column)?.as_ref()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// Whether the statement left an open cursor.
    pub fn has_cursor(&self) -> bool {
        self.status & CURSOR_EXISTS != 0
    }

    /// The server's error as an error of the kit.
    pub fn refused(self) -> Result<Self> {
        match self.error {
            Some((code, message)) => Err(Error::Refused { code, message }),
            None => Ok(self),
        }
    }
}

impl Client {
    /// Reads all results of a statement that was sent by COM_QUERY.
    pub fn read_reply(&mut self) -> Result<Vec<ResultSet>> {
        self.read_results(|row, columns| {
            let mut reader = Reader::new(row);
            columns.iter().map(|_| Ok(reader.nullable()?.map(<[u8]>::to_vec))).collect()
        })
    }

    /// Reads all results of a statement that was sent by COM_STMT_EXECUTE.
    pub(super) fn read_binary_reply(&mut self) -> Result<Vec<ResultSet>> {
        self.read_results(binary_row)
    }

    fn read_results(
        &mut self,
        decode: fn(&[u8], &[Column]) -> Result<Row>,
    ) -> Result<Vec<ResultSet>> {
        let mut results = Vec::new();
        loop {
            let mut rows = Vec::new();
            let mut result = self.read_result(&mut |row| rows.push(row.to_vec()))?;
            let decoded = rows.iter().map(|row| decode(row, &result.columns));
            result.rows = decoded.collect::<Result<_>>()?;
            let more = result.more;
            results.push(result);
            if !more {
                return Ok(results);
            }
        }
    }

    /// Reads one result; each row goes undecoded to `row`.
    pub(super) fn read_result(&mut self, row: &mut dyn FnMut(&[u8])) -> Result<ResultSet> {
        let packet = self.read_packet()?;
        let mut reader = Reader::new(&packet);
        match reader.u8()? {
            0 | 0xff | 0xfe => return end(&packet, ResultSet::default()),
            0xfb => {
                self.send_local_data()?;
                return self.read_result(row);
            }
            _ => {}
        }
        let columns = self.read_columns(Reader::new(&packet).number()?)?;
        let mut result = ResultSet { columns, ..ResultSet::default() };
        if !self.deprecates_eof() {
            result = end(&self.read_packet()?, result)?;
            if result.has_cursor() {
                return Ok(result);
            }
        }
        self.read_rows(result, row)
    }

    /// Reads the rows that follow the columns, and the end of the result.
    pub(super) fn read_rows(
        &mut self,
        result: ResultSet,
        row: &mut dyn FnMut(&[u8]),
    ) -> Result<ResultSet> {
        let limit = if self.deprecates_eof() { OK_LIMIT } else { EOF_LIMIT };
        loop {
            let packet = self.read_packet()?;
            match packet.first() {
                Some(0xff) => return end(&packet, result),
                Some(0xfe) if packet.len() < limit => return end(&packet, result),
                _ => row(&packet),
            }
        }
    }

    /// Reads that many column definitions ("Protocol::ColumnDefinition41").
    pub(super) fn read_columns(&mut self, count: u64) -> Result<Vec<Column>> {
        let mut columns = Vec::new();
        for _ in 0..count {
            let packet = self.read_packet()?;
            let mut reader = Reader::new(&packet);
            for _catalog_schema_table_original in 0..4 {
                reader.counted()?;
            }
            let name = String::from_utf8_lossy(reader.counted()?).into_owned();
            reader.counted()?;
            // The length of what follows, the character set, the width.
            reader.bytes(1 + 2 + 4)?;
            columns.push(Column { name, kind: reader.u8()?, flags: reader.u16()? });
        }
        Ok(columns)
    }

    pub(super) fn deprecates_eof(&self) -> bool {
        self.capabilities & DEPRECATE_EOF != 0
    }

    /// Answers the server's wish for a local file, with an empty packet at the end.
    fn send_local_data(&mut self) -> Result<()> {
        let data = std::mem::take(&mut self.wire.local_data);
        for chunk in data.chunks(1 << 20) {
            self.write_packet(chunk)?;
        }
        self.write_packet(&[])
    }
}

/// Reads an OK, EOF or ERR packet into a result.
fn end(packet: &[u8], mut result: ResultSet) -> Result<ResultSet> {
    let mut reader = Reader::new(packet);
    match reader.u8()? {
        0xff => {
            if let Error::Refused { code, message } = reader.error()? {
                result.error = Some((code, message));
            }
            result.more = false;
            return Ok(result);
        }
        0xfe if packet.len() < 6 => {
            result.warnings = reader.u16()?;
            result.status = reader.u16()?;
        }
        _ => {
            result.affected = reader.number()?;
            reader.number()?;
            result.status = reader.u16()?;
            result.warnings = reader.u16()?;
        }
    }
    result.more = result.status & MORE_RESULTS != 0;
    Ok(result)
}

/// Decodes a row of the binary protocol: a zero, a bitmap of NULLs that starts at bit 2, values.
pub(super) fn binary_row(row: &[u8], columns: &[Column]) -> Result<Row> {
    let mut reader = Reader::new(row);
    reader.u8()?;
    let nulls = reader.bytes((columns.len() + 9) / 8)?.to_vec();
    let mut values = Vec::with_capacity(columns.len());
    for (number, column) in columns.iter().enumerate() {
        let bit = number + 2;
        values.push(if nulls[bit / 8] >> (bit % 8) & 1 == 1 {
            None
        } else {
            Some(value::decode(&mut reader, column.kind, column.flags & UNSIGNED != 0)?)
        });
    }
    Ok(values)
}

/// Reads the fields of a packet from front to back.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(packet: &'a [u8]) -> Self {
        Self { rest: packet }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let short = || Error::Protocol("a packet ends too early".to_owned());
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(short)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A length-encoded number.
    pub(super) fn number(&mut self) -> Result<u64> {
        let size = match self.u8()? {
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            small => return Ok(u64::from(small)),
        };
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(self.bytes(size)?);
        Ok(u64::from_le_bytes(wide))
    }

    /// A length-encoded string.
    pub(super) fn counted(&mut self) -> Result<&'a [u8]> {
        let length = self.number()?;
        self.bytes(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// A length-encoded string or NULL (0xfb).
    pub(super) fn nullable(&mut self) -> Result<Option<&'a [u8]>> {
        if self.rest.first() == Some(&0xfb) {
            self.u8()?;
            return Ok(None);
        }
        self.counted().map(Some)
    }

    /// A string up to a NUL, which is skipped, or to the end.
    pub(super) fn until_nul(&mut self) -> Result<&'a [u8]> {
        let length = self.rest.iter().position(|&byte| byte == 0);
        let bytes = self.bytes(length.unwrap_or(self.rest.len()))?;
        self.rest = self.rest.get(1..).unwrap_or_default();
        Ok(bytes)
    }

    /// The rest of an ERR packet: number, SQL state if there is one, message.
    pub(super) fn error(&mut self) -> Result<Error> {
        let code = self.u16()?;
        let message = match self.rest {
            [b'#', _, _, _, _, _, message @ ..] => message,
            message => message,
        };
        Ok(Error::Refused { code, message: String::from_utf8_lossy(message).into_owned() })
    }
}
