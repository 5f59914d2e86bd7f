//! Where the intervals go that have ended: lines of JSON, a plain table, or the terminal view.

use std::io::{self, Write};

use waggle_model::{Cost, Interval, Server};

use super::{Shown, json, table};

/// Cursor home, erase below (ECMA-48 CUP and ED).
const TOP_OF_AN_EMPTY_SCREEN: &[u8] = b"\x1b[H\x1b[J";

/// One interval of one server that has ended.
pub(crate) struct Finished {
    /// Whose it is.
    pub(crate) server: Server,
    /// What ran.
    pub(crate) interval: Interval,
    /// Whether the sessions could be read.
    pub(crate) sessions_known: bool,
    /// What watching cost.
    pub(crate) cost: Cost,
    /// The server ended in it.
    pub(crate) ended: bool,
}

/// What takes the intervals. An error ends the watch.
pub(crate) trait Output {
    /// The intervals of all servers that ended at the same time.
    fn take(&mut self, finished: Vec<Finished>) -> io::Result<()>;

    /// News of a server: it is watched from now on, or it has ended.
    fn tell(&mut self, news: &str) -> io::Result<()>;

    /// A server that cannot be watched.
    fn complain(&mut self, why: &str) {
        // Beside the output, which may be read by a program.
        let _ = writeln!(io::stderr(), "waggle: {why}");
    }
}

/// A line of JSON per interval and server.
pub(crate) struct Lines<W> {
    pub(crate) out: W,
    pub(crate) shown: Shown,
}

impl<W: Write> Output for Lines<W> {
    fn take(&mut self, finished: Vec<Finished>) -> io::Result<()> {
        for Finished { server, interval, sessions_known, cost, .. } in &finished {
            let shown = Shown { sessions_known: *sessions_known, ..self.shown };
            let time = jiff::Timestamp::now().to_string();
            let line = json::Line::new(time, server, interval, shown, cost);
            serde_json::to_writer(&mut self.out, &line)?;
            writeln!(self.out)?;
        }
        self.out.flush()
    }

    fn tell(&mut self, _news: &str) -> io::Result<()> {
        Ok(())
    }
}

/// A table per interval and server.
pub(crate) struct Table<W> {
    pub(crate) out: W,
    pub(crate) shown: Shown,
    /// Each interval takes the place of the one before.
    pub(crate) refresh: bool,
}

impl<W: Write> Output for Table<W> {
    fn take(&mut self, finished: Vec<Finished>) -> io::Result<()> {
        let goes_on = finished.iter().any(|one| !one.ended);
        if self.refresh && goes_on {
            self.out.write_all(TOP_OF_AN_EMPTY_SCREEN)?;
        }
        let width = terminal_width();
        for Finished { server, interval, sessions_known, cost, .. } in &finished {
            let shown = Shown { sessions_known: *sessions_known, ..self.shown };
            writeln!(self.out, "{}", table::render(server, interval, shown, cost, width))?;
        }
        if goes_on { self.out.flush() } else { Ok(()) }
    }

    fn tell(&mut self, news: &str) -> io::Result<()> {
        writeln!(self.out, "{news}")
    }
}

fn terminal_width() -> usize {
    rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .unwrap_or(120)
}
