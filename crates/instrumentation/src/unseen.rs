//! Names in a filter that this account cannot see on the server.

use waggle_mysql::{Connection, ConnectionError};

use crate::filter::{Filter, Object, Session};
use crate::statements::quoted;

/// Names in a filter that this account cannot see, one line each: misspelled, not there yet, or
/// without a right to it. The filter needs no such right.
///
/// # Errors
/// The connection is broken.
pub fn unseen(
    connection: &mut Connection,
    filter: &Filter,
    sessions: &[Session],
) -> Result<Vec<String>, ConnectionError> {
    let mut unseen = Vec::new();
    for account in &filter.accounts {
        if !sessions.iter().any(|session| session.user.is_some() && account.is_of(session)) {
            let (user, host) = (&account.user, &account.host);
            unseen.push(format!("no session of account {user}@{host} is there now"));
        }
    }
    for thread in &filter.threads {
        if !sessions.iter().any(|session| thread.is(session)) {
            unseen.push(format!(
                "no thread {thread} is there now; one that starts is recorded unless it has an account"
            ));
        }
    }
    for schema in filter.schemas.iter().filter(|schema| *schema != ANY) {
        let condition = format!("SCHEMATA WHERE SCHEMA_NAME = {}", quoted(schema));
        if !is_there(connection, &condition)? {
            unseen.push(format!("this account sees no schema {schema}"));
        }
    }
    for object in filter.objects.iter().filter(|object| object.name != ANY) {
        if !is_there(connection, &condition(object))? {
            let Object { kind, schema, name } = object;
            unseen.push(format!("this account sees no {} {schema}.{name}", kind.to_lowercase()));
        }
    }
    Ok(unseen)
}

/// Any name.
const ANY: &str = "%";

fn is_there(connection: &mut Connection, condition: &str) -> Result<bool, ConnectionError> {
    let rows = connection.rows(&format!("SELECT 1 FROM information_schema.{condition} LIMIT 1"))?;
    Ok(!rows.is_empty())
}

/// Of a trigger the schema of its table is named, too, which is its own: 5.7 looks at the tables of every
/// schema otherwise.
fn condition(object: &Object) -> String {
    let (schema, name) = (quoted(&object.schema), quoted(&object.name));
    match object.kind.as_str() {
        "TABLE" => format!("TABLES WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name}"),
        "EVENT" => format!("EVENTS WHERE EVENT_SCHEMA = {schema} AND EVENT_NAME = {name}"),
        "TRIGGER" => format!(
            "TRIGGERS WHERE EVENT_OBJECT_SCHEMA = {schema} AND TRIGGER_SCHEMA = {schema} AND \
             TRIGGER_NAME = {name}"
        ),
        kind => format!(
            "ROUTINES WHERE ROUTINE_SCHEMA = {schema} AND ROUTINE_NAME = {name} AND ROUTINE_TYPE = {}",
            quoted(kind)
        ),
    }
}
