//! A page of the reference that documents JSON: a table of paths per command.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// A key, `[]` for an item of a list, or `*` for any key.
type Steps = Vec<String>;

/// The tables of a page, by the command in the heading above.
pub(super) fn documented(page: &str) -> Vec<(String, BTreeSet<Steps>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    let text = fs::read_to_string(path).unwrap();
    let mut tables: Vec<(String, BTreeSet<Steps>)> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("## `").and_then(|rest| rest.strip_suffix('`')) {
            tables.push((command.to_owned(), BTreeSet::new()));
        } else if let Some((path, _)) =
            line.strip_prefix("| `").and_then(|rest| rest.split_once('`'))
            && let Some((_, paths)) = tables.last_mut()
        {
            paths.insert(path.split('.').map(str::to_owned).collect());
        }
    }
    tables
}

/// Everything that is printed is documented, and everything documented was printed, or lies in what
/// was empty.
pub(super) fn compare(command: &str, documented: &BTreeSet<Steps>, printed: &str) {
    let mut paths = BTreeSet::new();
    for value in serde_json::Deserializer::from_str(printed).into_iter::<Value>() {
        collect(&value.unwrap(), &mut Vec::new(), &mut paths);
    }
    assert!(!paths.is_empty(), "{command}: printed nothing");
    for path in &paths {
        let is_documented = documented.iter().any(|known| begins(known, path));
        assert!(is_documented, "{command}: {} is not documented", path.join("."));
    }
    for known in documented {
        let was_printed = paths.iter().any(|path| begins(known, path));
        assert!(was_printed, "{command}: {} is documented, not printed", known.join("."));
    }
}

/// The paths to all values; those to empty lists and objects, and to nulls, end there.
fn collect(value: &Value, path: &mut Steps, paths: &mut BTreeSet<Steps>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Array(items) => items.iter().map(|item| ("[]".to_owned(), item)).collect(),
        Value::Object(items) => items.iter().map(|(key, item)| (key.clone(), item)).collect(),
        _ => Vec::new(),
    };
    if children.is_empty() {
        paths.insert(path.clone());
    }
    for (step, child) in children {
        path.push(step);
        collect(child, path, paths);
        path.pop();
    }
}

/// Whether a printed path is the documented one, or ends on the way to it where nothing was.
fn begins(documented: &[String], printed: &[String]) -> bool {
    let fits = |(known, step): (&String, &String)| known == step || known == "*" && step != "[]";
    printed.len() <= documented.len() && documented.iter().zip(printed).all(fits)
}
