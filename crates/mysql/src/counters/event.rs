//! The meaning of an event name of Performance Schema.

use waggle_model::Command;

/// The kind of a statement event, by its name. Tried on MySQL 5.7.22, 8.0.12, 9.7 and MariaDB 10.11,
/// 11.4: every `COM_QUERY` ends as `statement/sql/…` (a syntax error as `sql/error`), every other
/// command as `statement/com/…`, and what runs inside a routine as `statement/sp/…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client sent it, with this command.
    Client(Command),
    /// It ran inside another statement, in an event of the scheduler, or a component of the server
    /// ran it (`stmt_handle`, MySQL 9).
    Nested,
    /// It stands for what was not known to be a statement yet when it ended: a packet that was not
    /// read, an event of the replica applier.
    Abstract,
    /// A class that waggle does not know: nobody can say whether the capture has it.
    Unknown,
}

/// The classes that are no commands, by the start of their names.
const CLASSES: [(&str, Event); 6] = [
    ("statement/sql/", Event::Client(Command::QUERY)),
    ("statement/sp/", Event::Nested),
    ("statement/scheduler/", Event::Nested),
    ("statement/stmt_handle/", Event::Nested),
    ("statement/abstract/", Event::Abstract),
    ("statement/rpl/", Event::Abstract),
];

impl Event {
    /// The kind of the event with this name.
    pub fn of(name: &str) -> Event {
        if let Some(command) = name.strip_prefix("statement/com/") {
            return Command::of_name(command).map_or(Event::Unknown, Event::Client);
        }
        let class = CLASSES.into_iter().find(|(start, _)| name.starts_with(start));
        class.map_or(Event::Unknown, |(_, event)| event)
    }

    /// Whether it is a statement that a client sent.
    pub fn is_statement(self) -> bool {
        matches!(self, Event::Client(command) if command.is_statement())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_of_every_family_are_known() {
        for (name, event) in [
            ("statement/sql/select", Event::Client(Command::QUERY)),
            ("statement/sql/error", Event::Client(Command::QUERY)),
            ("statement/com/Execute", Event::Client(Command::EXECUTE)),
            ("statement/com/Quit", Event::Client(Command::QUIT)),
            ("statement/com/Reset connection", Event::Client(Command::RESET_CONNECTION)),
            ("statement/com/Reset Connection", Event::Client(Command::RESET_CONNECTION)),
            ("statement/sp/stmt", Event::Nested),
            ("statement/scheduler/event", Event::Nested),
            ("statement/stmt_handle/regular", Event::Nested),
            ("statement/com/Bulk_execute", Event::Client(Command::BULK_EXECUTE)),
            ("statement/com/clone", Event::Client(Command(32))),
            ("statement/com/Error", Event::Client(Command(255))),
            ("statement/abstract/relay_log", Event::Abstract),
            ("statement/com/Tomorrow", Event::Unknown),
            ("statement/tomorrow/select", Event::Unknown),
        ] {
            assert_eq!(Event::of(name), event, "{name}");
        }
    }
}
