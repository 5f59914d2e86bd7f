//! The object of a DDL statement.

use std::fmt;

macro_rules! types {
    ($($type:ident $name:literal $(, $($word:literal)|+)?;)*) => {
        /// The type of an object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the servers' own words")]
        pub enum ObjectType { $($type),* }

        impl ObjectType {
            /// From the word that names it behind `CREATE`, `ALTER` and so on, in capitals.
            pub(super) fn of_word(word: &[u8]) -> Option<ObjectType> {
                match word {
                    $($($($word)|+ => Some(ObjectType::$type),)?)*
                    _ => None,
                }
            }

            /// The name, in lower case.
            pub fn name(self) -> &'static str {
                match self { $(ObjectType::$type => $name),* }
            }
        }
    };
}

types! {
    Table "table", b"TABLE" | b"TABLES";
    View "view", b"VIEW";
    Index "index", b"INDEX";
    Trigger "trigger", b"TRIGGER";
    Procedure "procedure", b"PROCEDURE";
    Function "function", b"FUNCTION";
    Event "event", b"EVENT";
    Schema "schema", b"DATABASE" | b"SCHEMA";
    User "user", b"USER";
    Role "role", b"ROLE";
    Server "server", b"SERVER";
    Tablespace "tablespace", b"TABLESPACE" | b"LOGFILE";
    Sequence "sequence", b"SEQUENCE";
    Package "package", b"PACKAGE";
    PackageBody "package body";
    Library "library", b"LIBRARY";
    MaskingPolicy "masking policy", b"MASKING";
    ResourceGroup "resource group", b"RESOURCE";
    SpatialReferenceSystem "spatial reference system", b"REFERENCE";
    Instance "instance", b"INSTANCE";
}

impl ObjectType {
    /// Whether it lies in a schema: where none is named, in the default database of the session.
    pub fn lies_in_a_schema(self) -> bool {
        matches!(
            self,
            ObjectType::Table
                | ObjectType::View
                | ObjectType::Trigger
                | ObjectType::Procedure
                | ObjectType::Function
                | ObjectType::Event
                | ObjectType::Sequence
                | ObjectType::Package
                | ObjectType::PackageBody
                | ObjectType::Library
        )
    }
}

/// An object as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    /// What it is.
    pub object_type: ObjectType,
    /// Its schema, where the statement names one; of a schema itself its name; `*` for all.
    pub schema: Option<String>,
    /// Its name without quotes; of an account `user@host`, or the user alone; `*` for all. `None` of
    /// a schema.
    pub name: Option<String>,
}

impl fmt::Display for Object {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.schema, &self.name) {
            (Some(schema), Some(name)) => write!(out, "{schema}.{name}"),
            (Some(one), None) | (None, Some(one)) => out.write_str(one),
            (None, None) => Ok(()),
        }
    }
}
