//! Where lines go.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use waggle_observe::{Queue, Room, Size, Trouble, Writer};

use super::line::{Gap, Line, ServerName, Source, StatementLine};
use crate::lacking::OutputName;

/// Lines that may wait to be written, and their bytes.
const WAITING_MAX: Room = Room { parcels: 10_000, bytes: 16 << 20 };
/// How long the last lines may take to be written.
const END_AWAITED: Duration = Duration::from_secs(10);
/// In a gap: statements that were listed, and for which there was no room.
const NOT_WRITTEN: &str = "not_written";

/// Where lines go.
pub(crate) trait Destination: Send {
    /// Takes a line.
    fn write(&mut self, line: &Line) -> io::Result<()>;

    /// No other line is there for now.
    fn flush(&mut self) -> io::Result<()>;

    /// No line will follow.
    fn close(&mut self) -> io::Result<()> {
        self.flush()
    }
}

impl Writer<Line> for Box<dyn Destination> {
    fn write(&mut self, line: Line) -> io::Result<()> {
        Destination::write(&mut **self, &line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Destination::flush(&mut **self)
    }

    fn close(&mut self) -> io::Result<()> {
        Destination::close(&mut **self)
    }
}

/// Hands lines to a destination, and never waits for it.
pub(crate) struct Lines {
    queue: Queue<Line>,
    name: OutputName,
    /// What found no room, one for each server.
    gaps: Vec<Gap>,
}

impl Lines {
    /// Begins to write to `out`.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(out: Box<dyn Destination>) -> io::Result<Lines> {
        let queue = Queue::start("output", WAITING_MAX, out)?;
        Ok(Lines { queue, name: OutputName::new("the output", "line"), gaps: Vec::new() })
    }

    /// Hands a line over. Where the destination is stuck or has failed, it is counted as not written.
    pub(crate) fn send(&mut self, line: Line) {
        let size = Size { count: 1, bytes: line.bytes() };
        // Before the next line that is written.
        if self.queue.has_room(size.bytes) {
            self.send_gaps();
        }
        let gap = gap_without(&line);
        if !self.queue.offer(line, size) {
            self.leave(gap);
        }
    }

    /// Adds to what is missing of a server.
    fn leave(&mut self, gap: Option<Gap>) {
        let Some(gap) = gap else { return };
        let of_server = |known: &&mut Gap| known.server == gap.server && known.source == gap.source;
        match self.gaps.iter_mut().find(of_server) {
            Some(known) => {
                known.missing += gap.missing;
                for (kind, missing) in gap.by {
                    *known.by.entry(kind).or_default() += missing;
                }
            }
            None => self.gaps.push(gap),
        }
    }

    fn send_gaps(&mut self) {
        let queue = &mut self.queue;
        self.gaps.retain(|gap| {
            let line = Line::Gap(gap.clone());
            // What it stands for was counted as lines already.
            let size = Size { count: 0, bytes: line.bytes() };
            !queue.offer(line, size)
        });
    }

    /// What was lost since the last call, in words. The command ends with a destination that fails, and says why.
    pub(crate) fn complaint(&mut self) -> Option<String> {
        self.send_gaps();
        let trouble = self.queue.trouble()?;
        matches!(trouble, Trouble::Lost { .. }).then(|| self.name.trouble(&trouble))
    }

    /// Whether the destination has failed.
    pub(crate) fn has_ended(&self) -> bool {
        self.queue.has_ended()
    }

    /// Waits until everything is written. Returns what is not, in words.
    ///
    /// # Errors
    /// See [`OutputName::lack`].
    pub(crate) fn close(mut self) -> io::Result<Option<String>> {
        self.send_gaps();
        self.name.lack(self.queue.close(END_AWAITED))
    }
}

/// What is missing without a line; `None` for one that stands for no statement.
fn gap_without(line: &Line) -> Option<Gap> {
    let of_statement = |server: &ServerName, source: Source| Gap {
        time: Timestamp::now(),
        server: server.clone(),
        source,
        missing: 1,
        by: [(NOT_WRITTEN.to_owned(), 1)].into(),
    };
    match line {
        Line::Statement(line) => {
            let StatementLine { server, source, .. } = &**line;
            Some(of_statement(server, *source))
        }
        Line::Gap(gap) => Some(gap.clone()),
        Line::Limits(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Waits at each line, and tells what it has written.
    struct Stuck {
        gate: Receiver<()>,
        told: Sender<Line>,
    }

    impl Destination for Stuck {
        fn write(&mut self, line: &Line) -> io::Result<()> {
            self.told.send(line.clone()).map_err(io::Error::other)?;
            self.gate.recv().map_err(io::Error::other)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn server(pid: u32) -> ServerName {
        ServerName { pid: Some(pid), ..ServerName::default() }
    }

    fn statement(pid: u32, bytes: usize) -> Line {
        let text = Some("x".repeat(bytes));
        Line::Statement(Box::new(StatementLine {
            server: server(pid),
            text,
            ..StatementLine::default()
        }))
    }

    #[test]
    fn long_lines_wait_only_as_far_as_their_bytes_go_and_what_is_left_out_is_written_as_a_gap() {
        let (open, gate) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let mut lines = Lines::start(Box::new(Stuck { gate, told: tell })).unwrap();
        lines.send(statement(1, 0));
        told.recv_timeout(PATIENCE).unwrap();
        // Fifteen of a MiB fit beside it, and what a line takes beside its text.
        (0..20).for_each(|_| lines.send(statement(1, 1 << 20)));
        (0..2).for_each(|_| lines.send(statement(2, 1 << 20)));
        let lost = Gap {
            time: Timestamp::UNIX_EPOCH,
            server: server(2),
            source: Source::Tap,
            missing: 3,
            by: [("ring_full".to_owned(), 3)].into(),
        };
        let small = Gap { server: server(3), ..lost.clone() };
        lines.send(Line::Gap(small));
        assert_eq!(
            lines.complaint().unwrap(),
            "the output takes too long: 7 lines are not in it, 7 in all"
        );
        assert_eq!(lines.complaint(), None);
        // The first ones are written, and the next call finds room.
        (0..3).for_each(|_| open.send(()).unwrap());
        (0..3).for_each(|_| drop(told.recv_timeout(PATIENCE).unwrap()));
        assert_eq!(lines.complaint(), None);
        lines.send(Line::Gap(lost));
        (0..40).for_each(|_| open.send(()).unwrap());
        let lack = lines.close().unwrap();
        assert_eq!(lack.unwrap(), "the output takes too long: 7 lines are not in it");
        let gaps = told.iter().filter_map(|line| match line {
            Line::Gap(gap) => Some((gap.server.pid.unwrap(), gap.missing, gap.by)),
            _ => None,
        });
        let by = |kind: &str, missing| [(kind.to_owned(), missing)].into();
        assert_eq!(
            gaps.collect::<Vec<_>>(),
            [
                (1, 5, by(NOT_WRITTEN, 5)),
                (2, 2, by(NOT_WRITTEN, 2)),
                (3, 3, by("ring_full", 3)),
                (2, 3, by("ring_full", 3)),
            ]
        );
    }
}
