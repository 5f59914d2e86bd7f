//! Which statements are listed.

use waggle_instrumentation::pattern::fits;
use waggle_sql::DdlKind;

use super::line::StatementLine;

/// Lists everything unless something is named. In every name `%` stands for any characters. A
/// statement also passes if what matters is not known: an audit leaves out only what is known to be
/// something else.
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
        // Some servers tell names of objects apart by their letters' case and others do not.
        let object_fits = |patterns: &[String], name: &str| {
            let name = name.to_lowercase();
            patterns.iter().any(|pattern| fits(&name, &pattern.to_lowercase()))
        };
        let all = |patterns: &[String], fit: &dyn Fn() -> bool| patterns.is_empty() || fit();
        all(&self.kinds, &|| one_fits(&self.kinds, line.kind))
            && all(&self.users, &|| {
                line.user.as_ref().is_none_or(|user| one_fits(&self.users, user))
            })
            && all(&self.schemas, &|| {
                let mut schemas = line.objects.iter().filter_map(|object| object.schema.as_ref());
                schemas.any(|schema| object_fits(&self.schemas, schema)) || may_hide_an_object(line)
            })
            && all(&self.objects, &|| {
                let mut objects = line.objects.iter();
                objects.any(|object| {
                    let name = object.name.as_ref().or(object.schema.as_ref());
                    name.is_some_and(|name| object_fits(&self.objects, name))
                        || object_fits(&self.objects, &object.full_name())
                }) || may_hide_an_object(line)
            })
    }
}

/// Whether a statement can be about something that is not among its objects: it has more of them, it has
/// none, as where its text is not known or it means what the session has, or the schema in which they lie
/// is not known. That is known as soon as the account is.
fn may_hide_an_object(line: &StatementLine) -> bool {
    let is_schema_known = line.default_schema.is_some() || line.account_absent.is_none();
    line.objects_truncated
        || line.objects.is_empty()
        || !is_schema_known && line.objects.iter().any(|object| object.schema.is_none())
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

#[cfg(test)]
mod tests {
    use super::super::line::ObjectLine;
    use super::*;

    /// `DROP TABLE orders` by ann in the schema shop.
    fn drop_table() -> StatementLine {
        StatementLine {
            kind: "drop_table",
            objects: vec![ObjectLine {
                object_type: "table",
                schema: Some("shop".to_owned()),
                name: Some("orders".to_owned()),
            }],
            user: Some("ann".to_owned()),
            default_schema: Some("shop".to_owned()),
            ..StatementLine::default()
        }
    }

    /// Whether it passes when one is asked for: a user, a schema, an object, an object with its schema.
    fn passes(line: &StatementLine, names: [&str; 4]) -> [bool; 4] {
        let [users, schemas, objects, whole] = names.map(|name| vec![name.to_owned()]);
        [
            Choice { users, ..Choice::default() },
            Choice { schemas, ..Choice::default() },
            Choice { objects, ..Choice::default() },
            Choice { objects: whole, ..Choice::default() },
        ]
        .map(|choice| choice.takes(line))
    }

    const ITS: [&str; 4] = ["ann", "Shop", "ORDERS", "shop.ord%"];
    const OTHERS: [&str; 4] = ["bob", "other", "items", "other.orders"];

    #[test]
    fn what_is_known_is_listed_where_it_fits_only() {
        assert_eq!(passes(&drop_table(), ITS), [true; 4]);
        assert_eq!(passes(&drop_table(), OTHERS), [false; 4]);
    }

    #[test]
    fn what_is_not_known_passes_every_filter_but_the_others() {
        let known = drop_table();
        let nobody = StatementLine { user: None, ..known.clone() };
        assert_eq!(passes(&nobody, OTHERS), [true, false, false, false]);
        let more = StatementLine { objects_truncated: true, ..known.clone() };
        assert_eq!(passes(&more, OTHERS), [false, true, true, true]);
        // Its text is not known, or means what the session has, as `SET PASSWORD` does.
        let without = StatementLine { objects: Vec::new(), ..known.clone() };
        assert_eq!(passes(&without, OTHERS), [false, true, true, true]);
        let kind = Choice { kinds: vec!["create_%".to_owned()], ..Choice::default() };
        assert!(!kind.takes(&without));
    }

    #[test]
    fn objects_of_a_session_that_is_not_known_may_lie_in_any_schema() {
        let mut nobody = StatementLine {
            user: None,
            account_absent: Some("it has not replied".to_owned()),
            default_schema: None,
            ..drop_table()
        };
        assert_eq!(passes(&nobody, OTHERS), [true, false, false, false]);
        nobody.objects[0].schema = None;
        assert_eq!(passes(&nobody, OTHERS), [true; 4]);
        // That none was chosen is known of the others.
        let chose_none = StatementLine { account_absent: None, ..nobody };
        assert_eq!(passes(&chose_none, OTHERS), [true, false, false, false]);
    }
}
