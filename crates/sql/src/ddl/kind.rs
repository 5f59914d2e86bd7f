//! The kinds of DDL statements, by the names that the servers use.

use super::object::ObjectType;

macro_rules! kinds {
    ($($kind:ident $name:literal),* $(,)?) => {
        /// What a statement of data definition or account management does. The names are those of
        /// the servers' instruments `statement/sql/…` (`com_status_vars` in `sql/mysqld.cc`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DdlKind {
            $(#[doc = concat!("`", $name, "`.")] $kind),*
        }

        impl DdlKind {
            /// All of them.
            pub const ALL: &[DdlKind] = &[$(DdlKind::$kind),*];

            /// The name of its instrument, without `statement/sql/`.
            pub fn name(self) -> &'static str {
                match self { $(DdlKind::$kind => $name),* }
            }
        }
    };
}

kinds! {
    AlterDb "alter_db",
    AlterDbUpgrade "alter_db_upgrade",
    AlterEvent "alter_event",
    AlterFunction "alter_function",
    AlterInstance "alter_instance",
    AlterLibrary "alter_library",
    AlterProcedure "alter_procedure",
    AlterResourceGroup "alter_resource_group",
    AlterSequence "alter_sequence",
    AlterServer "alter_server",
    AlterTable "alter_table",
    AlterTablespace "alter_tablespace",
    AlterUser "alter_user",
    AlterUserDefaultRole "alter_user_default_role",
    CreateDb "create_db",
    CreateEvent "create_event",
    CreateFunction "create_function",
    CreateIndex "create_index",
    CreateLibrary "create_library",
    CreateMaskingPolicy "create_masking_policy",
    CreatePackage "create_package",
    CreatePackageBody "create_package_body",
    CreateProcedure "create_procedure",
    CreateResourceGroup "create_resource_group",
    CreateRole "create_role",
    CreateSequence "create_sequence",
    CreateServer "create_server",
    CreateSpatialReferenceSystem "create_spatial_reference_system",
    CreateTable "create_table",
    CreateTrigger "create_trigger",
    CreateUdf "create_udf",
    CreateUser "create_user",
    CreateView "create_view",
    DropDb "drop_db",
    DropEvent "drop_event",
    DropFunction "drop_function",
    DropIndex "drop_index",
    DropLibrary "drop_library",
    DropMaskingPolicy "drop_masking_policy",
    DropPackage "drop_package",
    DropPackageBody "drop_package_body",
    DropProcedure "drop_procedure",
    DropResourceGroup "drop_resource_group",
    DropRole "drop_role",
    DropSequence "drop_sequence",
    DropServer "drop_server",
    DropSpatialReferenceSystem "drop_spatial_reference_system",
    DropTable "drop_table",
    DropTrigger "drop_trigger",
    DropUser "drop_user",
    DropView "drop_view",
    Grant "grant",
    GrantRoles "grant_roles",
    RenameTable "rename_table",
    RenameUser "rename_user",
    Revoke "revoke",
    RevokeAll "revoke_all",
    RevokeRoles "revoke_roles",
    SetPassword "set_password",
    Truncate "truncate",
}

/// The names of MariaDB that differ.
const MARIADB: [(&str, DdlKind); 2] =
    [("grant_role", DdlKind::GrantRoles), ("revoke_role", DdlKind::RevokeRoles)];

impl DdlKind {
    /// The kind that an instrument such as `statement/sql/drop_table` counts; `None` if it counts
    /// something else.
    pub fn of_instrument(instrument: &str) -> Option<DdlKind> {
        let name = instrument.strip_prefix("statement/sql/")?;
        let same = DdlKind::ALL.iter().copied().find(|kind| kind.name() == name);
        same.or_else(|| MARIADB.iter().find(|(other, _)| *other == name).map(|(_, kind)| *kind))
    }

    /// What `CREATE` does with such an object.
    pub(super) fn create(object: ObjectType) -> Option<DdlKind> {
        DdlKind::of("create_", object)
    }

    /// What `ALTER` does with such an object.
    pub(super) fn alter(object: ObjectType) -> Option<DdlKind> {
        // The servers count that of a view as its creation.
        DdlKind::of(if object == ObjectType::View { "create_" } else { "alter_" }, object)
    }

    /// What `DROP` does with such an object.
    pub(super) fn drop(object: ObjectType) -> Option<DdlKind> {
        DdlKind::of("drop_", object)
    }

    /// The kind whose name is that of the verb and of the object.
    fn of(verb: &str, object: ObjectType) -> Option<DdlKind> {
        let name = match object {
            // The servers count every statement about tablespaces as a change.
            ObjectType::Tablespace => return Some(DdlKind::AlterTablespace),
            ObjectType::Schema => "db",
            object => object.name(),
        };
        let is_it = |rest: &str| rest.split('_').eq(name.split(' '));
        DdlKind::ALL.iter().copied().find(|kind| kind.name().strip_prefix(verb).is_some_and(is_it))
    }
}
