//! What a statement of data definition is about.

use std::fmt;

/// The type of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the servers' own words")]
pub enum ObjectType {
    Table,
    View,
    Index,
    Trigger,
    Procedure,
    Function,
    Event,
    Schema,
    User,
    Role,
    Server,
    Tablespace,
    Sequence,
    Package,
    PackageBody,
    Library,
    MaskingPolicy,
    ResourceGroup,
    SpatialReferenceSystem,
    Instance,
}

impl ObjectType {
    /// From the word that names it behind `CREATE`, `ALTER` and so on, in capitals.
    pub(super) fn of_word(word: &[u8]) -> Option<ObjectType> {
        Some(match word {
            b"TABLE" | b"TABLES" => ObjectType::Table,
            b"VIEW" => ObjectType::View,
            b"INDEX" => ObjectType::Index,
            b"TRIGGER" => ObjectType::Trigger,
            b"PROCEDURE" => ObjectType::Procedure,
            b"FUNCTION" => ObjectType::Function,
            b"EVENT" => ObjectType::Event,
            b"DATABASE" | b"SCHEMA" => ObjectType::Schema,
            b"USER" => ObjectType::User,
            b"ROLE" => ObjectType::Role,
            b"SERVER" => ObjectType::Server,
            b"TABLESPACE" | b"LOGFILE" => ObjectType::Tablespace,
            b"SEQUENCE" => ObjectType::Sequence,
            b"PACKAGE" => ObjectType::Package,
            b"LIBRARY" => ObjectType::Library,
            b"MASKING" => ObjectType::MaskingPolicy,
            b"RESOURCE" => ObjectType::ResourceGroup,
            b"REFERENCE" => ObjectType::SpatialReferenceSystem,
            b"INSTANCE" => ObjectType::Instance,
            _ => return None,
        })
    }

    /// The name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            ObjectType::Table => "table",
            ObjectType::View => "view",
            ObjectType::Index => "index",
            ObjectType::Trigger => "trigger",
            ObjectType::Procedure => "procedure",
            ObjectType::Function => "function",
            ObjectType::Event => "event",
            ObjectType::Schema => "schema",
            ObjectType::User => "user",
            ObjectType::Role => "role",
            ObjectType::Server => "server",
            ObjectType::Tablespace => "tablespace",
            ObjectType::Sequence => "sequence",
            ObjectType::Package => "package",
            ObjectType::PackageBody => "package body",
            ObjectType::Library => "library",
            ObjectType::MaskingPolicy => "masking policy",
            ObjectType::ResourceGroup => "resource group",
            ObjectType::SpatialReferenceSystem => "spatial reference system",
            ObjectType::Instance => "instance",
        }
    }

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
