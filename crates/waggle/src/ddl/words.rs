//! A table for people.

use std::io::{self, Write};

use super::line::{Gap, Line, ServerName, StatementLine};
use super::output::Destination;

/// Waiting sessions that are named; the others are counted.
const WAITING_SHOWN: usize = 5;

/// One line per statement, and one for those that waited behind it.
pub(crate) struct Words<W> {
    out: W,
    /// The server of the line before.
    server: Option<ServerName>,
}

impl<W: Write> Words<W> {
    pub(crate) fn new(out: W) -> Words<W> {
        Words { out, server: None }
    }

    fn head(&mut self, server: &ServerName) -> io::Result<()> {
        if self.server.as_ref() == Some(server) {
            return Ok(());
        }
        let pid = server.pid.map_or(String::new(), |pid| format!(" (pid {pid})"));
        writeln!(self.out, "{} {}{pid}", server.flavour, server.version)?;
        writeln!(
            self.out,
            "{:<27} {:>10} {:>8} {:<20} {:>6} {:<16} {:<28} STATEMENT",
            "TIME (UTC)", "ms", "ID", "ACCOUNT", "ERROR", "KIND", "OBJECT"
        )?;
        self.server = Some(server.clone());
        Ok(())
    }

    fn statement(&mut self, line: &StatementLine) -> io::Result<()> {
        let unknown = || "-".to_owned();
        let objects: Vec<String> = line.objects.iter().map(|object| object.full_name()).collect();
        let account = match (&line.user, &line.host) {
            (Some(user), Some(host)) => format!("{user}@{host}"),
            (Some(one), None) | (None, Some(one)) => one.clone(),
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
            "{:<27} {:>10} {:>8} {:<20} {:>6} {:<16} {:<28} {nested}{}",
            line.time.map_or_else(unknown, |time| time.strftime("%F %T%.6f").to_string()),
            line.duration_us.map_or_else(unknown, |us| format!("{:.3}", us / 1e3)),
            line.connection_id.map_or_else(unknown, |id| id.to_string()),
            plain(&account),
            error,
            line.kind,
            plain(&objects.join(", ")),
            plain(line.text.as_deref().unwrap_or("-")),
        )?;
        let waiting = line.waiting.as_deref().unwrap_or_default();
        if waiting.is_empty() {
            return Ok(());
        }
        let named = waiting.iter().take(WAITING_SHOWN).map(|one| {
            let id = one.connection_id.map_or_else(unknown, |id| id.to_string());
            format!("{} (id {id})", plain(one.user.as_deref().unwrap_or("-")))
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = match waiting.len().saturating_sub(WAITING_SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        writeln!(self.out, "    waited behind it: {named}{more}")
    }

    fn gap(&mut self, gap: &Gap) -> io::Result<()> {
        let by = gap.by.iter().map(|(name, lost)| format!("{}: {lost}", plain(name)));
        let by = by.collect::<Vec<_>>().join(", ");
        let time = gap.time.strftime("%F %T%.6f");
        writeln!(
            self.out,
            "{time:<27} {}, perhaps of this kind, could not be listed ({by})",
            plural(gap.missing)
        )
    }
}

impl<W: Write + Send> Destination for Words<W> {
    fn write(&mut self, line: &Line) -> io::Result<()> {
        match line {
            Line::Statement(line) => {
                self.head(&line.server)?;
                self.statement(line)
            }
            Line::Gap(gap) => {
                self.head(&gap.server)?;
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

/// A number of statements in words.
pub(crate) fn plural(statements: u64) -> String {
    match statements {
        1 => "1 statement".to_owned(),
        many => format!("{many} statements"),
    }
}

/// A text in one line, without control characters that a statement may hold.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
