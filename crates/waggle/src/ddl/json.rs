//! Lines of JSON.

use std::io::{self, Write};

use super::line::Line;
use super::output::Destination;

/// Lines of JSON on a stream.
pub(crate) struct Json<W>(pub(crate) W);

impl<W: Write + Send> Destination for Json<W> {
    fn write(&mut self, line: &Line) -> io::Result<()> {
        self.0.write_all(&bytes_of(line)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A line with its end.
pub(super) fn bytes_of(line: &Line) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

    #[test]
    fn the_schema_of_the_reference_is_that_of_the_types() {
        let path = Path::new(REFERENCE).join("ddl-json.schema.json");
        let now = serde_json::to_string_pretty(&schemars::schema_for!(Line)).unwrap() + "\n";
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &now).unwrap();
        }
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == now,
            "the types of the JSON of ddl have changed; run UPDATE=1 cargo test -p waggle json \
             and commit docs/reference"
        );
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

    #[test]
    fn every_key_of_the_schema_is_explained() {
        let text = fs::read_to_string(Path::new(REFERENCE).join("ddl-json.md")).unwrap();
        let schema = serde_json::to_value(schemars::schema_for!(Line)).unwrap();
        let mut keys = Vec::new();
        names(&schema, &mut keys);
        assert!(keys.len() > 25, "{keys:?}");
        let is_missing = |key: &&String| {
            !text.contains(&format!("`{key}`")) && !text.contains(&format!(".{key}`"))
        };
        let missing: Vec<_> = keys.iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "not in docs/reference/ddl-json.md: {missing:?}");
    }
}
