//! Whether everything is on that feeds the statement tables of Performance Schema.

use waggle_model::Reading;

use crate::connection::{Connection, ConnectionError, MARK, absent_or, text};

/// What keeps the tables from counting every statement.
#[derive(Default)]
pub(super) struct Setup {
    /// Why no statement table can be read at all.
    unreadable: Option<String>,
    consumers_off: Vec<String>,
    instruments_off: Vec<String>,
    threads_off: u64,
    actors_off: bool,
    keeps_no_digests: bool,
}

pub(super) fn read(connection: &mut Connection) -> Result<Setup, ConnectionError> {
    let mut setup = Setup::default();
    if !connection.server_identity().performance_schema {
        setup.unreadable = Some(
            "Performance Schema is off; start the server with performance_schema=ON to have it \
             counted"
                .to_owned(),
        );
        return Ok(setup);
    }
    let all = connection.rows(&format!(
        "SELECT 'consumer' AS {MARK}, NAME FROM performance_schema.setup_consumers \
           WHERE ENABLED = 'NO' AND NAME IN \
             ('global_instrumentation', 'thread_instrumentation', 'statements_digest') \
         UNION ALL SELECT 'instrument', NAME FROM performance_schema.setup_instruments \
           WHERE (ENABLED = 'NO' OR TIMED = 'NO') AND (NAME LIKE 'statement/sql/%' \
             OR NAME LIKE 'statement/abstract/%' \
             OR NAME IN ('statement/com/Execute', 'statement/com/Bulk_execute')) \
         UNION ALL SELECT 'threads', COUNT(*) FROM performance_schema.threads \
           WHERE INSTRUMENTED = 'NO' AND TYPE = 'FOREGROUND' \
         UNION ALL SELECT 'actors', COUNT(*) FROM performance_schema.setup_actors \
           WHERE HOST = '%' AND USER = '%' AND ENABLED = 'YES'"
    ));
    let rows = match absent_or(connection, "the setup tables", all)? {
        Reading::Value(rows) => rows,
        Reading::Absent(why) => {
            setup.unreadable = Some(why);
            return Ok(setup);
        }
    };
    setup.keeps_no_digests = connection.digest_length()?.value() == Some(&0);
    for row in &rows {
        let value = text(row, 1);
        match text(row, 0).as_str() {
            "consumer" => setup.consumers_off.push(value),
            "instrument" => setup.instruments_off.push(value),
            "threads" => setup.threads_off = value.parse().unwrap_or(0),
            _ => setup.actors_off = value == "0",
        }
    }
    Ok(setup)
}

impl Setup {
    /// Why the tables by event name do not count every statement; `None` if they do.
    pub(super) fn events(&self) -> Option<String> {
        if let Some(why) = &self.unreadable {
            return Some(why.clone());
        }
        let consumer = self.consumers_off.iter().find(|name| *name != "statements_digest");
        if let Some(name) = consumer {
            return Some(format!(
                "consumer {name} is off; run UPDATE performance_schema.setup_consumers SET \
                 ENABLED = 'YES' WHERE NAME = '{name}'"
            ));
        }
        if let Some(first) = self.instruments_off.first() {
            return Some(format!(
                "{} statement instruments are off or not timed ({first} is one); run UPDATE \
                 performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE \
                 NAME LIKE 'statement/%'",
                self.instruments_off.len()
            ));
        }
        if self.actors_off || self.threads_off > 0 {
            return Some(format!(
                "Performance Schema does not count every session ({} are left out now); set \
                 ENABLED = 'YES' in performance_schema.setup_actors for '%'@'%' and connect anew",
                self.threads_off
            ));
        }
        None
    }

    /// Why the digest tables do not count every statement; `None` if they do.
    pub(super) fn digests(&self) -> Option<String> {
        let consumer = "consumer statements_digest is off; run UPDATE \
                        performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = \
                        'statements_digest'";
        let length = "the server keeps no digests: max_digest_length or \
                      performance_schema_max_digest_length is 0";
        self.events()
            .or_else(|| (!self.consumers_off.is_empty()).then(|| consumer.to_owned()))
            .or_else(|| self.keeps_no_digests.then(|| length.to_owned()))
    }
}
