//! The output of finished intervals: lines of JSON, a plain table, or the terminal view.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use waggle_model::Record;
use waggle_observe::{News, Queue, RecordSink, Room, Size, Standing, Writer};
use waggle_tui::App;

use super::snapshots::{Snapshots, view_options};
use super::{Shown, json, terminal};
use crate::lacking::{OutputName, plural};
use crate::said::Said;
use crate::streams::Plain;
use crate::text::json as json_text;

/// Cursor home, erase below (ECMA-48 CUP and ED).
const TOP_OF_AN_EMPTY_SCREEN: &str = "\x1b[H\x1b[J";

/// Columns where there is no terminal: room for all that counts.
const COLUMNS: u16 = 160;

/// What writes records. It may wait.
pub(crate) trait Output: Send {
    /// The records of all servers whose interval ended at the same time.
    fn take(&mut self, entries: &[Entry]) -> io::Result<()>;

    /// A server is watched from now on, or has ended. Not for what a program reads.
    fn tell(&mut self, _news: &str) -> io::Result<()> {
        Ok(())
    }

    /// Nothing follows.
    fn close(&mut self) -> io::Result<()>;
}

/// A record that is to be written.
pub(crate) struct Entry {
    pub(crate) record: Arc<Record>,
    /// Intervals of its server just before it that are not in the output.
    pub(crate) left_out: u64,
}

/// A line of JSON per interval and server.
pub(crate) struct Lines<W> {
    pub(crate) out: W,
    pub(crate) shown: Shown,
}

impl<W: Write + Send> Output for Lines<W> {
    fn take(&mut self, entries: &[Entry]) -> io::Result<()> {
        for entry in entries {
            writeln!(self.out, "{}", json_text(&json::Line::new(entry, self.shown))?)?;
        }
        self.out.flush()
    }

    fn close(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The terminal view as a plain table, per interval and server.
pub(crate) struct Table<W> {
    out: Plain<W>,
    /// Digests of an interval.
    limit: usize,
    /// Each interval takes the place of the one before.
    refresh: bool,
    app: App,
    snapshots: Snapshots,
}

impl<W: Write> Table<W> {
    /// Writes to `out`. `refresh`: each interval takes the place of the one before. Prices are read from the directory
    /// `prices`.
    pub(crate) fn new(
        out: Plain<W>,
        shown: Shown,
        refresh: bool,
        prices: Option<PathBuf>,
    ) -> Table<W> {
        let app = App::new(view_options(!shown.redact));
        Table { out, limit: shown.limit, refresh, app, snapshots: Snapshots::new(prices) }
    }
}

impl<W: Write + Send> Output for Table<W> {
    fn take(&mut self, entries: &[Entry]) -> io::Result<()> {
        let goes_on = entries.iter().any(|entry| entry.record.ended.is_none());
        if self.refresh && goes_on {
            self.out.styled(TOP_OF_AN_EMPTY_SCREEN)?;
        }
        let (columns, look) = (terminal_width(), terminal::look());
        for Entry { record, left_out } in entries {
            let (pid, own) = (record.server.pid, record.interval.own_statements);
            self.app.take(self.snapshots.of(record.clone()));
            let table = waggle_tui::table(&mut self.app, pid, look, columns, self.limit);
            self.out.write_all(table.as_bytes())?;
            if *left_out > 0 {
                let intervals = plural(*left_out, "interval");
                writeln!(
                    self.out,
                    "left out {intervals} before this one: the output took too long"
                )?;
            }
            if own > 0 {
                writeln!(self.out, "left out {own} of waggle's own")?;
            }
            writeln!(self.out)?;
        }
        if goes_on { self.out.flush() } else { Ok(()) }
    }

    fn tell(&mut self, news: &str) -> io::Result<()> {
        writeln!(self.out, "{news}")
    }

    fn close(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn terminal_width() -> u16 {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| size.ws_col).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

/// Intervals that may wait to be written, and bytes of their texts. A busy host stops a reader for seconds.
const WAITING_MAX: Room = Room { parcels: 16, bytes: 64 << 20 };
/// How long the last ones may take to be written.
const END_AWAITED: Duration = Duration::from_secs(10);

/// An output on a thread of its own. What finds it stuck is left out and counted.
pub(crate) struct Written {
    queue: Queue<Item>,
    name: OutputName,
    /// Intervals that were left out since the last one that was taken, by server.
    left_out: BTreeMap<(u32, u64), u64>,
    said: Said,
}

enum Item {
    Entries(Vec<Entry>),
    News(String),
}

/// The thread of an output.
struct OnThread<O>(O);

impl<O: Output> Writer<Item> for OnThread<O> {
    fn write(&mut self, item: Item) -> io::Result<()> {
        match item {
            Item::Entries(entries) => self.0.take(&entries),
            Item::News(news) => self.0.tell(&news),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        self.0.close()
    }
}

impl Written {
    /// Begins to write to `out`.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(out: impl Output + 'static) -> io::Result<Written> {
        let queue = Queue::start("output", WAITING_MAX, OnThread(out))?;
        let name = OutputName::new("the output", "interval");
        Ok(Written { queue, name, left_out: BTreeMap::new(), said: Said::start()? })
    }

    /// Waits until everything is written. Returns what is not, in words.
    ///
    /// # Errors
    /// See [`OutputName::lack`].
    pub(crate) fn close(mut self) -> io::Result<Option<String>> {
        self.name.lack(self.queue.close(END_AWAITED))
    }

    fn is_read_no_more(&mut self) -> bool {
        self.queue.failure().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    }
}

impl RecordSink for Written {
    fn take(&mut self, records: &[Arc<Record>]) {
        let entry = |record: &Arc<Record>| {
            let left_out = self.left_out.get(&life_of(record)).copied().unwrap_or_default();
            Entry { record: record.clone(), left_out }
        };
        let entries = records.iter().map(entry).collect();
        let bytes = records.iter().map(|record| record.text_bytes() as u64).sum();
        let size = Size { count: records.len() as u64, bytes };
        let is_taken = self.queue.offer(Item::Entries(entries), size);
        for record in records {
            let life = life_of(record);
            if is_taken || record.ended.is_some() {
                self.left_out.remove(&life);
            } else {
                *self.left_out.entry(life).or_default() += 1;
            }
        }
    }

    fn news(&mut self, news: &News) {
        match news {
            // Beside the output, which may be read by a program.
            News::Refused(..) | News::RefusedMany(..) => self.tell(&news.to_string()),
            News::Attached(_) | News::Gone(_) => {
                self.queue.offer(Item::News(news.to_string()), Size::default());
            }
        }
    }

    fn tell(&mut self, words: &str) {
        self.said.tell(words);
    }

    fn complaint(&mut self) -> Option<String> {
        let trouble = self.queue.trouble().filter(|_| !self.is_read_no_more())?;
        Some(self.name.trouble(&trouble))
    }

    fn standing(&mut self) -> Standing {
        match self.queue.has_ended() {
            true if self.is_read_no_more() => Standing::EndsAll,
            true => Standing::Ended,
            false => Standing::Takes,
        }
    }
}

/// What tells one life of a server from every other.
fn life_of(record: &Record) -> (u32, u64) {
    (record.server.pid, record.server.start_ticks)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::mpsc;

    use serde_json::Value;
    use waggle_model::{BuildKey, Flavour, Interval, Reading, Server};

    use super::super::Csv;
    use super::*;

    const SHOWN: Shown = Shown { limit: 20, redact: true, nested: false };

    pub(crate) fn record(pid: u32) -> Arc<Record> {
        Arc::new(Record {
            server: Server {
                pid,
                start_ticks: 0,
                flavour: Flavour::Mysql,
                version: String::new(),
                build: BuildKey(String::new()),
                executable: "/".into(),
                max_digest_length: Reading::Value(1024),
            },
            identity: 0,
            begin_wall_ns: 0,
            end_wall_ns: 0,
            state: Reading::absent(""),
            processors: Reading::absent(""),
            storage: Reading::absent(""),
            logins: Reading::absent(""),
            unread: Reading::absent(""),
            interval: Interval::default(),
            running: Reading::absent(""),
            starts_known: true,
            is_pooled: false,
            parts: Reading::absent(""),
            cost: Reading::absent(""),
            ended: None,
        })
    }

    /// Tells what it is given, and takes nothing more until it is opened.
    struct Reader {
        gate: mpsc::Receiver<()>,
        to: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.to.send(bytes.to_vec()).map_err(io::Error::other)?;
            // Once it is open it stays so.
            let _ = self.gate.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stalls_is_told_what_it_missed_and_so_is_the_user() {
        let (open, gate) = mpsc::channel();
        let (to, got) = mpsc::channel();
        let out = io::BufWriter::new(Reader { gate, to });
        let mut written = Written::start(Lines { out, shown: SHOWN }).unwrap();
        written.take(&[record(1)]);
        let mut text = got.recv().unwrap();
        // The first is under way, and as many wait as may.
        (0..WAITING_MAX.parcels).for_each(|_| written.take(&[record(1), record(2)]));
        assert_eq!(written.complaint(), None);
        written.take(&[record(1), record(2)]);
        let words = "the output takes too long: 2 intervals are not in it, 2 in all";
        assert_eq!(written.complaint().as_deref(), Some(words));
        written.take(&[record(1), record(2)]);
        written.take(&[record(1)]);
        let words = "the output takes too long: 3 intervals are not in it, 5 in all";
        assert_eq!(written.complaint().as_deref(), Some(words));
        assert_eq!((written.complaint(), written.standing()), (None, Standing::Takes));
        drop(open);
        while written.queue.unwritten() > 5 {
            std::thread::yield_now();
        }
        written.take(&[record(2)]);
        written.take(&[record(1), record(2)]);
        let lack = written.close().unwrap();
        assert_eq!(lack.unwrap(), "the output takes too long: 5 intervals are not in it");
        got.iter().for_each(|bytes| text.extend(bytes));
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
        let left_out = lines.map(|line| {
            (line["server"]["pid"].as_u64().unwrap(), line["intervals_left_out"].as_u64().unwrap())
        });
        let left_out: Vec<_> = left_out.filter(|(_, left_out)| *left_out > 0).collect();
        assert_eq!(left_out, [(2, 2), (1, 3)]);
    }

    #[test]
    fn an_output_that_fails_ends_alone_and_one_that_nobody_reads_any_more_ends_all() {
        struct Fails(ErrorKind);
        impl Write for Fails {
            fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Err(self.0.into())
            }
        }
        let failed = |kind| {
            let mut written = Written::start(Csv::new(Fails(kind), 1)).unwrap();
            written.take(&[record(1)]);
            while !written.queue.has_ended() {
                std::thread::yield_now();
            }
            written.take(&[record(1)]);
            let (standing, complaint) = (written.standing(), written.complaint());
            (standing, complaint, written.close())
        };
        let (standing, complaint, end) = failed(ErrorKind::StorageFull);
        let why = "the output cannot be written: no storage space; ";
        assert_eq!(standing, Standing::Ended);
        assert_eq!(complaint, Some(format!("{why}it has ended, all else goes on")));
        assert_eq!(end.unwrap(), Some(format!("{why}2 intervals are not in it")));
        let (standing, complaint, end) = failed(ErrorKind::BrokenPipe);
        assert_eq!((standing, complaint), (Standing::EndsAll, None));
        assert_eq!(end.unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
