//! Values of prepared statements.

use super::reply::Reader;
use crate::{Error, Result};

/// Column types (`enum_field_types`, include/field_types.h) whose binary form is not a string.
mod kind {
    pub(super) const TINY: u8 = 1;
    pub(super) const SHORT: u8 = 2;
    pub(super) const LONG: u8 = 3;
    pub(super) const FLOAT: u8 = 4;
    pub(super) const DOUBLE: u8 = 5;
    pub(super) const NULL: u8 = 6;
    pub(super) const TIMESTAMP: u8 = 7;
    pub(super) const LONGLONG: u8 = 8;
    pub(super) const INT24: u8 = 9;
    pub(super) const DATE: u8 = 10;
    pub(super) const TIME: u8 = 11;
    pub(super) const DATETIME: u8 = 12;
    pub(super) const YEAR: u8 = 13;
    pub(super) const BLOB: u8 = 252;
    pub(super) const VAR_STRING: u8 = 253;
}

/// A parameter of a prepared statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// A string.
    Bytes(Vec<u8>),
    /// What was sent before by [`Client::send_long_data`](super::Client::send_long_data).
    Long,
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl Value {
    /// The type and the content as COM_STMT_EXECUTE carries them.
    pub(super) fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            Self::Null => (kind::NULL, Vec::new()),
            Self::Int(number) => (kind::LONGLONG, number.to_le_bytes().to_vec()),
            Self::Double(number) => (kind::DOUBLE, number.to_le_bytes().to_vec()),
            Self::Bytes(bytes) => (kind::VAR_STRING, counted(bytes)),
            Self::Long => (kind::BLOB, Vec::new()),
        }
    }
}

/// Bytes with their length in front ("length encoded").
fn counted(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len().to_le_bytes();
    let head = match bytes.len() {
        0..=250 => &length[..1],
        251..=0xffff => &[0xfc, length[0], length[1]],
        0x1_0000..=0xff_ffff => &[0xfd, length[0], length[1], length[2]],
        _ => &[&[0xfe][..], &length].concat(),
    };
    [head, bytes].concat()
}

/// One value of a binary row, written as the text protocol writes it. Numbers with a fraction
/// are written by Rust's rules; temporal values always with microseconds if they have any.
pub(super) fn decode(reader: &mut Reader<'_>, kind: u8, unsigned: bool) -> Result<Vec<u8>> {
    let signed = |bytes: &[u8]| {
        let negative = !unsigned && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        if unsigned {
            u64::from_le_bytes(wide).to_string()
        } else {
            i64::from_le_bytes(wide).to_string()
        }
    };
    let text = match kind {
        kind::TINY => signed(reader.bytes(1)?),
        kind::SHORT | kind::YEAR => signed(reader.bytes(2)?),
        kind::LONG | kind::INT24 => signed(reader.bytes(4)?),
        kind::LONGLONG => signed(reader.bytes(8)?),
        kind::FLOAT => f32::from_le_bytes(reader.array()?).to_string(),
        kind::DOUBLE => f64::from_le_bytes(reader.array()?).to_string(),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => date(reader)?,
        kind::TIME => time(reader)?,
        _ => return Ok(reader.counted()?.to_vec()),
    };
    Ok(text.into_bytes())
}

fn date(reader: &mut Reader<'_>) -> Result<String> {
    let length = reader.u8()?;
    let mut text = match length {
        0 => return Ok("0000-00-00".to_owned()),
        4 | 7 | 11 => {
            format!("{:04}-{:02}-{:02}", reader.u16()?, reader.u8()?, reader.u8()?)
        }
        _ => return Err(Error::Protocol(format!("a date of {length} bytes"))),
    };
    if length >= 7 {
        text += &format!(" {:02}:{:02}:{:02}", reader.u8()?, reader.u8()?, reader.u8()?);
    }
    if length == 11 {
        text += &format!(".{:06}", reader.u32()?);
    }
    Ok(text)
}

fn time(reader: &mut Reader<'_>) -> Result<String> {
    let length = reader.u8()?;
    if length == 0 {
        return Ok("00:00:00".to_owned());
    }
    let sign = if reader.u8()? == 0 { "" } else { "-" };
    let hours = reader.u32()? * 24 + u32::from(reader.u8()?);
    let mut text = format!("{sign}{hours:02}:{:02}:{:02}", reader.u8()?, reader.u8()?);
    if length == 12 {
        text += &format!(".{:06}", reader.u32()?);
    }
    Ok(text)
}
