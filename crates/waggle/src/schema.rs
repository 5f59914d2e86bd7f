//! Whether a page of `docs/reference` documents the types of some JSON.

use std::fs;
use std::path::Path;

use schemars::Schema;
use serde_json::Value;

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

/// Compares `NAME-json.schema.json` with the schema; `UPDATE=1` writes it.
pub(crate) fn assert_kept(name: &str, schema: &Schema) {
    let path = Path::new(REFERENCE).join(format!("{name}-json.schema.json"));
    let now = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &now).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == now,
        "the types of the JSON of {name} have changed; run UPDATE=1 cargo test -p waggle json and \
         commit docs/reference"
    );
}

/// Asserts that `NAME-json.md` explains every property, and that there are more than `least`.
pub(crate) fn assert_explained(name: &str, schema: &Schema, least: usize) {
    let page = format!("{name}-json.md");
    let text = fs::read_to_string(Path::new(REFERENCE).join(&page)).unwrap();
    let mut keys = Vec::new();
    names(&serde_json::to_value(schema).unwrap(), &mut keys);
    assert!(keys.len() > least, "{keys:?}");
    // It ends a path, or what is in it has a path.
    let is_missing = |key: &&String| {
        let ways = ["`", "."].map(|before| ["`", "."].map(|after| format!("{before}{key}{after}")));
        !ways.iter().flatten().any(|way| text.contains(way))
    };
    let missing: Vec<_> = keys.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "not in docs/reference/{page}: {missing:?}");
}

/// Every name of a property, also of those inside.
fn names(schema: &Value, into: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                into.extend(properties.keys().cloned());
            }
            members.values().for_each(|member| names(member, into));
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, into)),
        _ => {}
    }
}
