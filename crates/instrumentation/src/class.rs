//! The classes of instruments.

/// The class of an instrument: the first parts of its name that tell what kind of event it is, such as
/// `wait/synch/mutex`, `wait/io/file`, `stage` or `statement`.
///
/// Source: "Performance Schema Instrument Naming Conventions" of the MySQL manual.
pub fn class_of(instrument: &str) -> &str {
    let parts = match instrument.split('/').next() {
        Some("wait") => 3,
        _ => 1,
    };
    let end = instrument.match_indices('/').nth(parts - 1).map_or(instrument.len(), |(at, _)| at);
    &instrument[..end]
}

/// The top level of the class: the part before the first `/`.
pub fn kind_of(instrument: &str) -> &str {
    instrument.split('/').next().unwrap_or(instrument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_three_parts_and_the_others_one() {
        for (name, class) in [
            ("wait/synch/mutex/sql/LOCK_open", "wait/synch/mutex"),
            ("wait/io/table/sql/handler", "wait/io/table"),
            ("wait/lock/metadata/sql/mdl", "wait/lock/metadata"),
            ("idle", "idle"),
            ("statement/sql/select", "statement"),
            ("memory/innodb/std", "memory"),
            ("wait/odd", "wait/odd"),
            ("", ""),
        ] {
            assert_eq!(class_of(name), class);
        }
    }
}
