//! Which statements are listed.

use waggle_instrumentation::pattern::fits;
use waggle_sql::DdlKind;

use super::line::StatementLine;

/// Everything, unless something is named. In every name `%` stands for any characters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// With an object in one of these schemas.
    pub(crate) schemas: Vec<String>,
    /// By one of these users.
    pub(crate) users: Vec<String>,
    /// With one of these objects: `name` or `schema.name`.
    pub(crate) objects: Vec<String>,
    /// Of one of these kinds.
    pub(crate) kinds: Vec<String>,
}

impl Choice {
    /// Whether a statement is listed.
    pub(crate) fn takes(&self, line: &StatementLine) -> bool {
        let one_fits =
            |patterns: &[String], name: &str| patterns.iter().any(|pattern| fits(name, pattern));
        let all = |patterns: &[String], fit: &dyn Fn() -> bool| patterns.is_empty() || fit();
        all(&self.kinds, &|| one_fits(&self.kinds, line.kind))
            && all(&self.users, &|| {
                line.user.as_ref().is_some_and(|user| one_fits(&self.users, user))
            })
            && all(&self.schemas, &|| {
                let mut schemas = line.objects.iter().filter_map(|object| object.schema.as_ref());
                schemas.any(|schema| one_fits(&self.schemas, schema))
            })
            && all(&self.objects, &|| {
                line.objects.iter().any(|object| {
                    let name = object.name.as_ref().or(object.schema.as_ref());
                    name.is_some_and(|name| one_fits(&self.objects, name))
                        || one_fits(&self.objects, &object.full_name())
                })
            })
    }
}

/// A pattern of kinds that fits one at least.
///
/// # Errors
/// None fits, with the names of all.
pub(crate) fn kinds(pattern: &str) -> Result<String, String> {
    if DdlKind::ALL.iter().any(|kind| fits(kind.name(), pattern)) {
        return Ok(pattern.to_owned());
    }
    let names: Vec<&str> = DdlKind::ALL.iter().map(|kind| kind.name()).collect();
    Err(format!("no kind fits; one of {}, or a pattern such as drop_%", names.join(", ")))
}
