//! Where a build of the server keeps the fields that waggle reads.
//!
//! A layout belongs to an ELF file, not to a process. waggle derives it once per build by decoding
//! small exported functions of the server, and checks it against every process that runs the build.
//! A field that cannot be derived, or that fails its check, is absent with its reason. The others
//! still work.

mod check;
#[cfg(test)]
pub(crate) mod crafted;
mod derive;
mod field;
#[cfg(test)]
mod fuzz;
mod known;
mod notice;
pub(super) mod shape;
mod slow_log;
mod start;
mod table;

pub use check::Now;
pub use derive::Source;
pub use field::{Base, Field};
pub use known::Confirmation;
#[cfg(test)]
pub(super) use table::shapes_of;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use waggle_model::{BuildKey, Clock, Flavour, Reading};

/// The place of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the start of the field's base.
    pub offset: u32,
    /// How it was found, for `waggle doctor`: for example `decoded thd_get_thread_id`.
    pub how: String,
}

/// How to find the session that the running thread serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CurrentThd {
    /// A thread-local pointer at this distance from the thread pointer (MySQL 8 and later,
    /// MariaDB). Negative on x86-64.
    ThreadLocal {
        /// Bytes from the thread pointer.
        offset: i64,
    },
    /// A value of `pthread_getspecific` (MySQL 5.7). The key is chosen at run time, so this names
    /// the variable that holds it; [`crate::servers::Instance`] has the key itself.
    PthreadKey {
        /// Address of the key variable (`THR_THD`, `u32`) as the ELF file states it.
        key_address: u64,
    },
}

/// What the server keeps as lock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockTime {
    /// The time of day, in the clock of the statement's start, at which locking ended; the start
    /// is to be subtracted (MySQL 5.7 and 8.0.12, MariaDB).
    Until,
    /// A length in microseconds (MySQL 9).
    Duration,
}

/// How the strings of the security context are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextStrings {
    /// A pointer, and a length in the eight bytes after it (MySQL).
    PointerAndLength,
    /// A pointer to a string that ends with a zero byte (MariaDB).
    ZeroEnded,
}

/// The values of the diagnostics area's status (`Diagnostics_area::enum_diagnostics_status` in
/// `sql/sql_error.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiagnosticsCodes {
    /// Nothing yet.
    pub empty: u32,
    /// An OK packet: `affected` is valid.
    pub ok: u32,
    /// The same of an execution with arrays of values; `None` if the family has none.
    pub ok_bulk: Option<u32>,
    /// A result set ended.
    pub eof: u32,
    /// An error: the error number is valid.
    pub error: u32,
    /// The reply is none of a statement's (`COM_STMT_PREPARE` and others).
    pub disabled: u32,
}

impl DiagnosticsCodes {
    /// The codes of a family.
    pub fn of(flavour: Flavour) -> Self {
        match flavour {
            Flavour::Mysql => {
                Self { empty: 0, ok: 1, ok_bulk: None, eof: 2, error: 3, disabled: 4 }
            }
            // DA_OK_BULK is 3; DA_EOF_BULK, 4, is a result set like any other.
            Flavour::Mariadb => {
                Self { empty: 0, ok: 1, ok_bulk: Some(3), eof: 2, error: 5, disabled: 6 }
            }
        }
    }

    /// Whether the reply is an OK packet.
    pub fn is_ok(&self, status: u32) -> bool {
        status == self.ok || Some(status) == self.ok_bulk
    }
}

/// Everything that is known of one build.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The build it belongs to.
    pub build: BuildKey,
    /// The family.
    pub flavour: Flavour,
    /// The version as the binary states it; `unknown` where it does not, and then the running
    /// server has it in memory ([`crate::servers::elf::Elf::version_address`]).
    pub version: String,
    /// How the session of a thread is found. Without it nothing can be captured.
    pub current_thd: Reading<CurrentThd>,
    /// The place of every field of [`Field::ALL`], or the reason why it has none.
    pub fields: BTreeMap<Field, Reading<Place>>,
    /// The clock of the statement's start.
    pub clock: Clock,
    /// What the lock field holds.
    pub lock_time: Reading<LockTime>,
    /// How user, host and address are kept.
    pub context_strings: ContextStrings,
    /// The values of the diagnostics area's status.
    pub diagnostics: DiagnosticsCodes,
}

impl Layout {
    /// A build of which only the family is known.
    pub(crate) fn of(flavour: Flavour, build: BuildKey, version: String) -> Layout {
        let (clock, context_strings) = match flavour {
            Flavour::Mysql => (Clock::Wall, ContextStrings::PointerAndLength),
            Flavour::Mariadb => (Clock::Monotonic, ContextStrings::ZeroEnded),
        };
        Layout {
            build,
            flavour,
            version,
            current_thd: Reading::absent("it was not looked for"),
            fields: BTreeMap::new(),
            clock,
            lock_time: Reading::absent("it was not looked for"),
            context_strings,
            diagnostics: DiagnosticsCodes::of(flavour),
        }
    }

    /// The offset of a field, where it is known.
    pub fn offset(&self, field: Field) -> Option<u32> {
        self.fields.get(&field)?.value().map(|place| place.offset)
    }

    fn shows(&self, fields: &[Field]) -> bool {
        fields.iter().all(|field| self.offset(*field).is_some())
    }

    /// Whether texts can be read, and so digests be made.
    pub fn shows_texts(&self) -> bool {
        self.shows(&[Field::QueryText, Field::QueryLength])
    }

    /// Whether a reply says if it is the last of its statement, and how that ended.
    pub fn shows_status(&self) -> bool {
        self.shows(&[Field::Diagnostics, Field::DiagnosticsStatus])
    }

    /// Whether there is a sign of the end of a statement, without which none can be captured: the
    /// status of its reply, or the start, which another statement changes.
    pub fn shows_ends(&self) -> bool {
        self.shows_status() || self.offset(Field::StartTime).is_some()
    }

    /// The same layout less one field, as if this build did not show it. For tests.
    pub fn without(&self, field: Field) -> Layout {
        let mut layout = self.clone();
        layout.fields.insert(field, Reading::absent("it was hidden on purpose"));
        layout
    }

    /// What waggle does not measure on this build, by field, and why.
    pub fn absences(&self) -> Vec<String> {
        let one = |(field, place): (&Field, &Reading<Place>)| {
            let why = place.why()?;
            Some(format!("{} is not known, {}: {why}", field.name(), field.consequence()))
        };
        self.fields.iter().filter_map(one).collect()
    }
}
