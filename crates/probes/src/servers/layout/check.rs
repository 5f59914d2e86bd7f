//! Checks a layout against a running server: every field of a session must have a plausible value.
//!
//! A wrong offset shows a pointer instead of a small number, or the reverse. A field that fails
//! becomes absent, with its reason. The other fields stay.

use std::cell::RefCell;

use waggle_model::{Clock, Reading};

use super::{Base, ContextStrings, Field, Layout, LockTime};

/// The time of the check in both clocks, microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// `CLOCK_REALTIME`.
    pub wall_us: u64,
    /// `CLOCK_MONOTONIC`.
    pub monotonic_us: u64,
}

const DAY_US: u64 = 24 * 3600 * 1_000_000;
/// A session can have been idle this long. The two clocks lie half a century apart, so the bound
/// need not be tight to tell them from each other.
const IDLE_MAX_US: u64 = 366 * DAY_US;
/// A text of this length is no text: packets end at 1 GiB (`max_allowed_packet`).
const TEXT_MAX: u64 = 1 << 30;
/// Names of databases, users and hosts are far shorter (`NAME_LEN`, `HOSTNAME_LENGTH`).
const NAME_MAX: u64 = 1024;
/// Commands end at about 30 in MySQL; MariaDB has a few near 254 (`enum_server_command`).
const COMMAND_MAX: u64 = 255;
/// The flags fit in the two bytes of the protocol's OK packet.
const SERVER_STATUS_MAX: u64 = 0xffff;
/// The highest bit of either family lies below (`MODE_…` in `sql/system_variables.h`).
const SQL_MODE_MAX: u64 = 1 << 40;
/// Numbers of collations have 11 bits (`MY_ALL_CHARSETS_SIZE` in `include/m_ctype.h`); those of
/// MariaDB's later kinds go up to 4096.
const COLLATION_MAX: u64 = 4096;
/// No statement reads more rows than this.
const ROWS_MAX: u64 = 1 << 48;
/// Error numbers have two bytes in the protocol.
const ERROR_MAX: u64 = 0xffff;
/// Where programs have their memory on 64-bit Linux, less the page at 0.
const POINTERS: std::ops::Range<u64> = 0x1000..1 << 56;

/// Fields of the session that may be wrong one by one. The start and what depends on it are two.
const MISFITS_MAX: usize = 2;

/// What a check found wrong, in words.
type Verdict = Result<(), String>;

impl Layout {
    /// The same layout, less the fields that do not fit one session of a running server.
    ///
    /// `session` is the address of the session of a connection, best one that runs a statement;
    /// `read` fills the buffer from the server's memory and says whether it could.
    pub fn validate(
        &self,
        session: u64,
        now: Now,
        mut read: impl FnMut(u64, &mut [u8]) -> bool,
    ) -> Layout {
        let checked = Checked { layout: self, session, now, read: RefCell::new(&mut read) };
        let mut result = self.clone();
        for (field, place) in &mut result.fields {
            if let Reading::Value(found) = place
                && let Err(why) = checked.field(*field)
            {
                *place = Reading::absent(format!(
                    "{} gives offset {:#x}, but in the running server {why}",
                    found.how, found.offset
                ));
            }
        }
        if let Ok(clock) = checked.clock() {
            result.clock = clock;
        }
        let of_session = result.fields.iter().filter(|(field, _)| field.base() == Base::Session);
        let misfits = of_session
            .filter(|(field, place)| place.value().is_none() && self.offset(**field).is_some());
        if misfits.count() > MISFITS_MAX {
            let why =
                "three or more fields do not fit the running server: this is no session of it";
            result.fields.values_mut().for_each(|place| *place = Reading::absent(why));
        }
        result
    }
}

type Read<'a> = dyn FnMut(u64, &mut [u8]) -> bool + 'a;

struct Checked<'a> {
    layout: &'a Layout,
    session: u64,
    now: Now,
    read: RefCell<&'a mut Read<'a>>,
}

impl Checked<'_> {
    fn number_at(&self, address: u64, width: u32) -> Option<u64> {
        let mut bytes = [0; 8];
        let width = (width as usize).min(8);
        let is_read = (self.read.borrow_mut())(address, &mut bytes[..width]);
        is_read.then_some(u64::from_le_bytes(bytes))
    }

    fn value(&self, field: Field) -> Result<u64, String> {
        let offset =
            self.layout.offset(field).ok_or_else(|| format!("{} is absent", field.name()))?;
        let base = match field.base() {
            Base::Session => self.session,
            Base::Diagnostics => self.pointer(Field::Diagnostics)?,
            Base::SecurityContext => self.pointer(Field::SecurityContext)?,
        };
        let address = base.wrapping_add(u64::from(offset));
        self.number_at(address, field.width()).ok_or_else(|| "it cannot be read".to_owned())
    }

    fn pointer(&self, field: Field) -> Result<u64, String> {
        let value = self.value(field)?;
        let leads_somewhere = POINTERS.contains(&value) && self.number_at(value, 1).is_some();
        leads_somewhere
            .then_some(value)
            .ok_or_else(|| format!("{} is {value:#x}, which is no address", field.name()))
    }

    fn below(&self, field: Field, limit: u64) -> Verdict {
        match self.value(field)? {
            value if value <= limit => Ok(()),
            value => Err(format!("it holds {value}, more than {limit}")),
        }
    }

    /// A pointer that may be null.
    fn optional_pointer(&self, field: Field) -> Verdict {
        match self.value(field)? {
            0 => Ok(()),
            _ => self.pointer(field).map(|_| ()),
        }
    }

    fn field(&self, field: Field) -> Verdict {
        match field {
            Field::QueryText | Field::Database | Field::State => self.optional_pointer(field),
            Field::QueryLength => self.length(Field::QueryText, field, TEXT_MAX),
            Field::DatabaseLength => self.length(Field::Database, field, NAME_MAX),
            Field::ConnectionId => match self.value(field)? {
                0 => Err("the session of a connection has the id 0".to_owned()),
                _ => Ok(()),
            },
            Field::SqlMode => self.below(field, SQL_MODE_MAX),
            // The number of an error, or of a kind of end.
            Field::Killed => self.below(field, ERROR_MAX),
            Field::Charset => self.charset(),
            Field::ServerStatus => self.below(field, SERVER_STATUS_MAX),
            Field::Command => self.below(field, COMMAND_MAX),
            Field::StartTime => self.clock().map(|_| ()),
            Field::LockTime => self.lock_time(),
            Field::RowsSent | Field::RowsExamined => self.below(field, ROWS_MAX),
            Field::Diagnostics | Field::SecurityContext => self.pointer(field).map(|_| ()),
            Field::IsSent => self.below(field, 1),
            Field::DiagnosticsStatus => {
                self.below(field, u64::from(self.layout.diagnostics.disabled))
            }
            // Any number may stand there: it counts only after an OK.
            Field::RowsAffected => self.value(field).map(|_| ()),
            Field::ErrorNumber => self.below(field, ERROR_MAX),
            Field::User | Field::Host | Field::Address => self.context_string(field),
        }
    }

    fn charset(&self) -> Verdict {
        match self.number_at(self.pointer(Field::Charset)?, 4) {
            Some(number) if (1..=COLLATION_MAX).contains(&number) => Ok(()),
            Some(number) => Err(format!("it leads to a collation of the number {number}")),
            None => Err("what it leads to cannot be read".to_owned()),
        }
    }

    fn length(&self, text: Field, length: Field, limit: u64) -> Verdict {
        if self.value(text)? == 0 {
            return Ok(());
        }
        self.below(length, limit)
    }

    fn context_string(&self, field: Field) -> Verdict {
        self.optional_pointer(field)?;
        if self.layout.context_strings == ContextStrings::ZeroEnded || self.value(field)? == 0 {
            return Ok(());
        }
        let offset = self.layout.offset(field).unwrap_or_default();
        let context = self.pointer(Field::SecurityContext)?;
        match self.number_at(context.wrapping_add(u64::from(offset) + 8), 8) {
            Some(length) if length <= NAME_MAX => Ok(()),
            Some(length) => Err(format!("its length is {length}")),
            None => Err("its length cannot be read".to_owned()),
        }
    }

    /// The one clock in which the start of the statement is a time of the past.
    fn clock(&self) -> Result<Clock, String> {
        let start = self.value(Field::StartTime)?;
        let is_past = |now: u64| {
            start > now.saturating_sub(IDLE_MAX_US) && start < now.saturating_add(DAY_US)
        };
        match (is_past(self.now.wall_us), is_past(self.now.monotonic_us) && start > 0) {
            (true, false) => Ok(Clock::Wall),
            (false, true) => Ok(Clock::Monotonic),
            _ => Err(format!("it holds {start}, which is a time in neither clock")),
        }
    }

    fn lock_time(&self) -> Verdict {
        let lock = self.value(Field::LockTime)?;
        let length = match self.layout.lock_time.value() {
            Some(LockTime::Until) if lock > 0 => lock.abs_diff(self.value(Field::StartTime)?),
            _ => lock,
        };
        if length < DAY_US {
            Ok(())
        } else {
            Err(format!(
                "it holds {lock}, which is {} hours from the start",
                length / 3_600_000_000
            ))
        }
    }
}

#[cfg(test)]
mod tests;
