//! The table for a terminal.

use std::io::{self, Write};

use waggle_model::visible::{name, on_a_line};

use super::line::{Gap, Line, ServerName, StatementLine};
use super::output::Destination;

/// Waiting sessions that are named; the others are counted.
const WAITING_SHOWN: usize = 5;

/// Waits for locks that are told, microseconds.
const TOLD_FROM_US: f64 = 1e3;

/// One line per statement, one for its waits, and one for the sessions that waited behind it.
pub(crate) struct Words<W> {
    out: W,
    /// Whether the names of the columns are written.
    has_head: bool,
}

impl<W: Write> Words<W> {
    pub(crate) fn new(out: W) -> Words<W> {
        Words { out, has_head: false }
    }

    fn head(&mut self) -> io::Result<()> {
        if self.has_head {
            return Ok(());
        }
        self.has_head = true;
        writeln!(
            self.out,
            "{:<27} {:<24} {:>10} {:>8} {:<20} {:>6} {:<16} {:<28} STATEMENT",
            "TIME (UTC)", "SERVER", "ms", "ID", "ACCOUNT", "ERROR", "KIND", "OBJECT"
        )
    }

    fn statement(&mut self, line: &StatementLine) -> io::Result<()> {
        let unknown = || "-".to_owned();
        let objects: Vec<String> =
            line.objects.iter().map(|object| name(&object.full_name()).into_owned()).collect();
        let account = match (&line.user, &line.host) {
            (Some(user), Some(host)) => format!("{}@{}", name(user), name(host)),
            (Some(one), None) | (None, Some(one)) => name(one).into_owned(),
            (None, None) => unknown(),
        };
        let error = match line.error {
            Some(0) => "ok".to_owned(),
            Some(error) => error.to_string(),
            None => unknown(),
        };
        let nested = if line.nested { "(nested) " } else { "" };
        writeln!(
            self.out,
            "{:<27} {:<24} {:>10} {:>8} {:<20} {:>6} {:<16} {:<28} {nested}{}",
            line.time.map_or_else(unknown, |time| time.strftime("%F %T%.6f").to_string()),
            in_short(&line.server),
            line.duration_us.map_or_else(unknown, |us| format!("{:.3}", us / 1e3)),
            line.connection_id.map_or_else(unknown, |id| id.to_string()),
            account,
            error,
            line.kind,
            objects.join(", "),
            on_a_line(line.text.as_deref().unwrap_or("-")),
        )?;
        let lock_wait = line.lock_wait_us.filter(|us| *us >= TOLD_FROM_US);
        if let Some((waited, worked)) = lock_wait.zip(line.work_us) {
            let ms = |us: f64| format!("{:.3} ms", us / 1e3);
            writeln!(self.out, "    waited {} for locks, worked {}", ms(waited), ms(worked))?;
        }
        let waiting = line.waiting.as_deref().unwrap_or_default();
        if waiting.is_empty() {
            return Ok(());
        }
        let named = waiting.iter().take(WAITING_SHOWN).map(|one| {
            let id = one.connection_id.map_or_else(unknown, |id| id.to_string());
            format!("{} (id {id})", name(one.user.as_deref().unwrap_or("-")))
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = match waiting.len().saturating_sub(WAITING_SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        writeln!(self.out, "    waited behind it: {named}{more}")
    }

    fn gap(&mut self, gap: &Gap) -> io::Result<()> {
        let by = gap.by.iter().map(|(name, lost)| format!("{}: {lost}", on_a_line(name)));
        let by = by.collect::<Vec<_>>().join(", ");
        let time = gap.time.strftime("%F %T%.6f");
        writeln!(
            self.out,
            "{time:<27} {:<24} {}, perhaps of this kind, could not be listed ({by})",
            in_short(&gap.server),
            plural(gap.missing)
        )
    }
}

impl<W: Write + Send> Destination for Words<W> {
    fn write(&mut self, line: &Line) -> io::Result<()> {
        match line {
            Line::Statement(line) => {
                self.head()?;
                self.statement(line)
            }
            Line::Gap(gap) => {
                self.head()?;
                self.gap(gap)
            }
            // The command has said it beside the table.
            Line::Limits(_) => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A server in a column: its pid, where it has one, and its version without what follows the number.
fn in_short(server: &ServerName) -> String {
    let number = server.version.split('-').next().unwrap_or_default();
    let pid = server.pid.map_or(String::new(), |pid| format!("{pid} "));
    on_a_line(&format!("{pid}{} {number}", server.flavour)).into_owned()
}

/// A number of statements in words.
pub(crate) fn plural(statements: u64) -> String {
    match statements {
        1 => "1 statement".to_owned(),
        many => format!("{many} statements"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_locks_and_work_are_told_apart_where_it_waited() {
        let of = |lock_wait_us, work_us| {
            let line = StatementLine { lock_wait_us, work_us, ..StatementLine::default() };
            let mut out = Vec::new();
            Words::new(&mut out).write(&Line::Statement(Box::new(line))).unwrap();
            String::from_utf8(out).unwrap()
        };
        let waited = of(Some(2_500_000.0), Some(1_250.0));
        assert!(
            waited.ends_with("\n    waited 2500.000 ms for locks, worked 1.250 ms\n"),
            "{waited}"
        );
        for silent in [of(Some(0.0), Some(1.0)), of(None, None)] {
            assert!(!silent.contains("worked"), "{silent}");
        }
    }

    #[test]
    fn every_line_names_its_server_under_one_head() {
        let statement = |pid, flavour: &str, version: &str| {
            let server = ServerName { pid, flavour: flavour.into(), version: version.into() };
            Line::Statement(Box::new(StatementLine { server, ..StatementLine::default() }))
        };
        let mut out = Vec::new();
        let mut words = Words::new(&mut out);
        for line in [
            statement(Some(4711), "mariadb", "10.11.19-MariaDB-0+deb12u1"),
            statement(Some(2403), "mysql", "8.0.12"),
            statement(None, "mysql", "9.7.4-1"),
        ] {
            words.write(&line).unwrap();
        }
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 4, "{out}");
        let column = lines[0].find("SERVER").unwrap();
        let servers = lines[1..].iter().map(|line| line[column..column + 24].trim_end());
        let expected = ["4711 mariadb 10.11.19", "2403 mysql 8.0.12", "mysql 9.7.4"];
        assert_eq!(servers.collect::<Vec<_>>(), expected, "{out}");
    }
}
