//! DDL and account management: what a statement does, and to which objects.
//!
//! waggle reads the first words of the statement as tokens and needs no grammar. It does not read
//! the body of a routine, or names beside the object (`LIKE`, `REFERENCES`, a query): see
//! [`Tables`](crate::Tables).

mod kind;
mod object;
mod privileges;
mod walk;

pub use kind::DdlKind;
pub use object::{Object, ObjectType};

use crate::SessionSettings;

/// The most objects of one statement.
const OBJECTS_MAX: usize = 32;

/// What a statement of data definition or account management does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ddl {
    /// What it does.
    pub kind: DdlKind,
    /// What it is about, in the order in which the statement names it; at most 32.
    pub objects: Vec<Object>,
    /// The objects exist for one session only (`TEMPORARY`).
    pub temporary: bool,
    /// There are more objects than 32, or may be more: the text was cut before the last.
    pub truncated: bool,
}

impl Ddl {
    /// Whether the first letters can be those of a definition; cheap.
    pub fn may_begin(sql: &[u8]) -> bool {
        walk::may_begin(sql)
    }

    /// Reads a whole statement under the settings of its session; `None` if it defines nothing.
    /// Executable comments are read as code. Of several statements the first counts.
    pub fn of(sql: &[u8], settings: SessionSettings) -> Option<Ddl> {
        walk::walk(sql, settings, sql.len())
    }

    /// Reads the beginning of a statement, as a capture limit left it. A name that ends with the text
    /// may be a part of one and is left out; the objects are truncated then.
    pub fn of_beginning(sql: &[u8], settings: SessionSettings) -> Option<Ddl> {
        walk::walk(sql, settings, sql.len().saturating_sub(1))
    }

    fn new(kind: DdlKind) -> Ddl {
        Ddl { kind, objects: Vec::new(), temporary: false, truncated: false }
    }

    fn add(&mut self, object: Object) {
        if self.objects.contains(&object) {
            return;
        }
        if self.objects.len() < OBJECTS_MAX {
            self.objects.push(object);
        } else {
            self.truncated = true;
        }
    }
}
