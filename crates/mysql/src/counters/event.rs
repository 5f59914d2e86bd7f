//! What an event name of Performance Schema stands for.

use waggle_model::Command;

/// The kind of a statement event, by its name. Tried on MySQL 5.7.22, 8.0.12, 9.7 and MariaDB 10.11,
/// 11.4: every `COM_QUERY` ends as `statement/sql/…` (a syntax error as `sql/error`), every
/// `COM_STMT_EXECUTE` as `statement/com/Execute`, and what runs inside a routine as `statement/sp/…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client sent it, with this command.
    Client(Command),
    /// It ran inside another statement or in an event of the scheduler.
    Nested,
    /// Anything else: the replica applier, or a command that has no reply of its own name.
    Other,
}

/// `statement/com/NAME` and its command number (`include/my_command.h`, `sql/sql_parse.cc`).
const COMMANDS: [(&str, u8); 23] = [
    ("Quit", 1),
    ("Init DB", 2),
    ("Field List", 4),
    ("Create DB", 5),
    ("Drop DB", 6),
    ("Refresh", 7),
    ("Shutdown", 8),
    ("Statistics", 9),
    ("Processlist", 10),
    ("Connect", 11),
    ("Kill", 12),
    ("Debug", 13),
    ("Ping", 14),
    ("Change user", 17),
    ("Binlog Dump", 18),
    ("Prepare", 22),
    ("Execute", 23),
    ("Long Data", 24),
    ("Close stmt", 25),
    ("Reset stmt", 26),
    ("Set option", 27),
    ("Fetch", 28),
    ("Reset Connection", 31),
];

impl Event {
    /// The kind of the event with this name.
    pub fn of(name: &str) -> Event {
        if name.starts_with("statement/sql/") {
            return Event::Client(Command::QUERY);
        }
        if name.starts_with("statement/sp/") || name.starts_with("statement/scheduler/") {
            return Event::Nested;
        }
        let command = name.strip_prefix("statement/com/").and_then(|command| {
            COMMANDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(command))
        });
        command.map_or(Event::Other, |(_, number)| Event::Client(Command(*number)))
    }

    /// Whether it is a statement that a client sent: `COM_QUERY` or `COM_STMT_EXECUTE`.
    pub fn is_statement(self) -> bool {
        matches!(self, Event::Client(command) if command.is_statement())
    }
}

/// Whether the server counts a command in `Questions`: all but `COM_PING`, `COM_STATISTICS`,
/// `COM_STMT_PREPARE`, `COM_STMT_CLOSE` and `COM_STMT_RESET` (`CF_SKIP_QUESTIONS` in
/// `sql/sql_parse.cc`; tried on all five servers).
pub(super) fn is_question(command: Command) -> bool {
    !matches!(command.0, 0 | 9 | 11 | 14 | 22 | 25 | 26 | 29)
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
            ("statement/com/Quit", Event::Client(Command(1))),
            ("statement/com/Reset connection", Event::Client(Command(31))),
            ("statement/com/Reset Connection", Event::Client(Command(31))),
            ("statement/sp/stmt", Event::Nested),
            ("statement/scheduler/event", Event::Nested),
            ("statement/abstract/relay_log", Event::Other),
            ("statement/com/Error", Event::Other),
        ] {
            assert_eq!(Event::of(name), event, "{name}");
        }
    }
}
