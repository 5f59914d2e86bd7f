//! What is switched on.

use std::collections::BTreeSet;

use waggle_instrumentation::class::{class_of, kind_of};
use waggle_instrumentation::cost::calibration::Storage;
use waggle_mysql::connection::text;
use waggle_mysql::{Connection, ConnectionError};

/// The kinds whose events can be kept beside their sums.
const KEPT: [&str; 4] = ["stage", "statement", "transaction", "wait"];

/// The consumers that are always on.
const ALWAYS: [&str; 2] = ["thread_instrumentation", "statements_digest"];

/// A class, or a kind with all of its classes, and where its events are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Such as `wait/synch/mutex`, or `wait`.
    pub class: String,
    /// Where its events are kept.
    pub kept: Storage,
}

impl Arm {
    /// Everything that this server can be priced for.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn all(connection: &mut Connection) -> Result<Vec<Arm>, ConnectionError> {
        let rows = connection.rows("SELECT NAME FROM performance_schema.setup_instruments")?;
        let names: Vec<String> = rows.iter().map(|row| text(row, 0)).collect();
        let classes: BTreeSet<&str> = names.iter().map(|name| class_of(name)).collect();
        let kinds: BTreeSet<&str> = classes.iter().map(|class| kind_of(class)).collect();
        let mut arms: Vec<Arm> = classes
            .union(&kinds)
            .map(|class| Arm { class: (*class).to_owned(), kept: Storage::Sums })
            .collect();
        for kind in KEPT.into_iter().filter(|kind| kinds.contains(kind)) {
            let kept = [Storage::History, Storage::HistoryLong];
            arms.extend(kept.map(|kept| Arm { class: kind.to_owned(), kept }));
        }
        Ok(arms)
    }

    /// Sets the server so that [`switch`] turns this on and off, and nothing else.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn set(&self, connection: &mut Connection) -> Result<(), ConnectionError> {
        switch(connection, false)?;
        set_consumers(connection, &self.consumers())?;
        connection.rows(
            "UPDATE performance_schema.setup_instruments SET ENABLED = 'NO' WHERE ENABLED = 'YES'",
        )?;
        // MySQL 8.0.12 does not find the sxlocks by the index on the name.
        connection.rows(&format!(
            "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' \
             WHERE CONCAT(NAME) = '{0}' OR CONCAT(NAME) LIKE '{0}/%'",
            self.class
        ))?;
        Ok(())
    }

    /// Sets the server so that [`switch`] turns every class on and off.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) fn set_all(connection: &mut Connection) -> Result<(), ConnectionError> {
        switch(connection, false)?;
        set_consumers(connection, &ALWAYS.map(str::to_owned))?;
        let all = "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES'";
        connection.rows(all).map(drop)
    }

    /// The digest belongs to statements: nobody has their sums without it.
    fn consumers(&self) -> Vec<String> {
        let kind = kind_of(&self.class);
        let places: &[&str] = match self.kept {
            Storage::Sums => &[],
            Storage::History => &["current", "history"],
            Storage::HistoryLong => &["current", "history", "history_long"],
        };
        let always = ALWAYS.map(str::to_owned);
        let kept = places.iter().map(|place| format!("events_{kind}s_{place}"));
        always.into_iter().chain(kept).collect()
    }
}

/// Turns these consumers on, and all others off.
fn set_consumers(connection: &mut Connection, on: &[String]) -> Result<(), ConnectionError> {
    let on = on.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let set = format!(
        "UPDATE performance_schema.setup_consumers SET ENABLED = IF(NAME IN ({on}), 'YES', 'NO')"
    );
    connection.rows(&set).map(drop)
}

/// Turns all that is set on or off by the one switch above everything. Off, the server takes the same
/// way as with every instrument off.
pub(crate) fn switch(connection: &mut Connection, on: bool) -> Result<(), ConnectionError> {
    let on = if on { "YES" } else { "NO" };
    connection
        .rows(&format!(
            "UPDATE performance_schema.setup_consumers SET ENABLED = '{on}' \
             WHERE NAME = 'global_instrumentation'"
        ))
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_are_those_of_the_kind() {
        let arm = Arm { class: "wait/io/file".to_owned(), kept: Storage::History };
        let consumers = arm.consumers();
        assert_eq!(consumers[2..], ["events_waits_current", "events_waits_history"]);
        let sums = Arm { kept: Storage::Sums, ..arm };
        assert_eq!(sums.consumers().len(), 2);
    }
}
