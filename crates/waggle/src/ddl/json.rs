//! Lines of JSON.

use std::io::{self, Write};

use super::line::Line;
use super::output::Destination;
use crate::text::json;

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
    Ok((json(line)? + "\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::Line;
    use crate::schema;

    #[test]
    fn the_schema_of_the_reference_is_that_of_the_types_and_every_key_is_explained() {
        let schema = schemars::schema_for!(Line);
        schema::assert_kept("ddl", &schema);
        schema::assert_explained("ddl", &schema, 25);
    }
}
