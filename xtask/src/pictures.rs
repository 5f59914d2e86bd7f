//! `cargo xtask pictures`: takes the pictures of the documents from real runs of the terminal view and of the profile.

mod flame;
mod svg;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail, ensure};
use waggle_testkit::sysbench::{Length, Sysbench};
use waggle_testkit::{Account, Client, Server, Transport, Version, target_dir};

/// Columns and lines of the terminal.
const SIZE: (usize, usize) = (120, 34);
/// How long the server works before the first picture: the load over time needs some.
const WARMED_UP: Duration = Duration::from_secs(45);
/// How long sessions wait for locks before it.
const WAITED: Duration = Duration::from_secs(8);
/// How long a view is waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// Takes the pictures anew.
pub(crate) fn run() -> Result<()> {
    let waggle = target_dir().join("debug/waggle");
    ensure!(waggle.is_file(), "{} is missing; run make build", waggle.display());
    let server = Server::start(Version::Mysql9)?;
    let sysbench = sysbench();
    sysbench.prepare(&server)?;
    flame::take(&waggle, &server)?;
    let _load = sysbench.start(&server)?;
    let mut holder = session(&server)?;
    make_tables(&mut holder)?;
    let terminal = Terminal::start(&server)?;
    terminal.type_in(&format!("{} watch --pid {}", waggle.display(), server.pid()))?;
    terminal.press("Enter")?;
    terminal.wait_for("DIGESTS by load")?;
    thread::sleep(WARMED_UP);
    // While it is watched, so that it is known what the holder ran.
    block(&server, &mut holder)?;
    terminal.wait_for("4 waiting for a lock")?;
    thread::sleep(WAITED);
    terminal.take("watch")?;
    terminal.press("r")?;
    terminal.press("Enter")?;
    terminal.wait_for("Wrote first")?;
    terminal.take("session")?;
    terminal.press("Escape")?;
    terminal.press("r")?;
    terminal.open_first("kind:update")?;
    terminal.wait_for("Waits now")?;
    terminal.take("digest-waits")?;
    terminal.press("Escape")?;
    terminal.open_first("kind:select")?;
    terminal.wait_for("Where the time goes")?;
    terminal.take("digest")?;
    Ok(())
}

/// Where the pictures are kept.
fn folder() -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn session(server: &Server) -> Result<Client> {
    Ok(Client::builder().database("test").connect(server, Transport::Unix, Account::ROOT)?)
}

fn sysbench() -> Sysbench {
    let mut sysbench = Sysbench::new("oltp_read_write");
    sysbench.table_size = 5_000;
    sysbench.threads = 3;
    // Transactions per second: as fast as it goes, a busy machine loses statements.
    sysbench.arguments.push("--rate=150".to_owned());
    sysbench.length = Length::Time(WARMED_UP + 3 * LIMIT);
    sysbench
}

/// Nobody gives up waiting for what is in them.
fn make_tables(client: &mut Client) -> Result<()> {
    for sql in [
        "CREATE TABLE stock (id INT PRIMARY KEY, left_over INT) ENGINE = InnoDB",
        "CREATE TABLE orders (id INT PRIMARY KEY) ENGINE = InnoDB",
        "INSERT INTO stock VALUES (1, 10)",
        "SET GLOBAL innodb_lock_wait_timeout = 1000",
    ] {
        client.run(sql)?;
    }
    Ok(())
}

/// A session that has changed a row and does nothing more; three wait for the row, and one for a metadata lock.
fn block(server: &Server, holder: &mut Client) -> Result<()> {
    for sql in
        ["BEGIN", "UPDATE stock SET left_over = 9 WHERE id = 1", "SELECT COUNT(*) FROM orders"]
    {
        holder.run(sql)?;
    }
    let update = "UPDATE stock SET left_over = left_over - 1 WHERE id = 1";
    let alter = "ALTER TABLE orders ADD COLUMN placed DATETIME";
    for sql in [update, update, update, alter] {
        let mut waiting = session(server)?;
        // It ends with the server.
        thread::spawn(move || waiting.run(sql).map(drop));
    }
    Ok(())
}

/// A tmux of our own; it ends when it is dropped.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    fn start(server: &Server) -> Result<Terminal> {
        let terminal = Terminal { socket: server.datadir().with_file_name("tmux") };
        let size = [SIZE.0.to_string(), SIZE.1.to_string()];
        let place = ["new-session", "-d", "-x", &size[0], "-y", &size[1]];
        terminal.run(&[place.as_slice(), &["bash", "--norc", "--noprofile"]].concat())?;
        Ok(terminal)
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut tmux = Command::new("tmux");
        tmux.args(["-u", "-f", "/dev/null", "-S"]).arg(&self.socket).args(arguments);
        tmux.env("LANG", "C.UTF-8").env_remove("NO_COLOR").env_remove("LC_ALL");
        let output = tmux.output().context("tmux cannot be run; cargo xtask setup installs it")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tmux {arguments:?}: {error}");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn type_in(&self, text: &str) -> Result<()> {
        self.run(&["send-keys", "-l", text]).map(drop)
    }

    fn press(&self, key: &str) -> Result<()> {
        self.run(&["send-keys", key])?;
        // Each is drawn by itself, as if a person had pressed it.
        thread::sleep(Duration::from_millis(150));
        Ok(())
    }

    /// Opens the first digest that passes a filter.
    fn open_first(&self, filter: &str) -> Result<()> {
        self.press("/")?;
        self.press("C-u")?;
        self.type_in(filter)?;
        self.press("Enter")?;
        self.wait_for(&format!("filter: {filter}"))?;
        self.press("Home")?;
        self.press("Enter")
    }

    fn wait_for(&self, word: &str) -> Result<()> {
        let begin = Instant::now();
        loop {
            let screen = self.run(&["capture-pane", "-p"])?;
            if screen.contains(word) {
                return Ok(());
            }
            if begin.elapsed() > LIMIT {
                bail!("no sign of {word:?}:\n{screen}");
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Writes what is on the screen to `docs/pictures/NAME.svg`.
    fn take(&self, name: &str) -> Result<()> {
        let screen = self.run(&["capture-pane", "-p", "-e"])?;
        let path = folder()?.join(format!("{name}.svg"));
        fs::write(&path, svg::of_screen(&screen, SIZE.0))?;
        println!("docs/pictures/{name}.svg");
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.run(&["kill-server"]);
    }
}
