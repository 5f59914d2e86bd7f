//! No secret leaves waggle by any of its outputs, whatever is on.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use waggle_testkit::client::Command;
use waggle_testkit::secrets::{SECRET, shown, statements, told_before};
use waggle_testkit::{Account, Client, Server, Transport, Version};

use crate::load;
use crate::tmux::Tmux;
use crate::watching::{Ended, WAGGLE, Waggle};

/// The account that most statements are about.
const ACCOUNT: &str = "waggle_ann";

/// Who runs them: `SET PASSWORD` is about this account, not about the administrator.
const SPEAKER: Account = Account { user: "waggle_bob", password: "" };

/// Statements with a secret that run for a while.
const SLOW: [&str; 3] = [
    "SELECT SLEEP(5) AS waggle_slow, AES_ENCRYPT('a', '§')",
    "SELECT SLEEP(5) AS waggle_slow, 'ALTER USER u IDENTIFIED BY \"§\"'",
    "DO SLEEP(5) /* SET PASSWORD FOR u = '§' */",
];

/// What some of them need to succeed.
const TABLES: [&str; 4] = [
    "CREATE TABLE users (id INT PRIMARY KEY, name TEXT, password TEXT, passwd TEXT, pwd TEXT)",
    "CREATE TABLE t (id INT, url TEXT, dsn TEXT, j TEXT)",
    "CREATE TABLE cfg (k TEXT, v TEXT)",
    "CREATE TABLE headers (v TEXT)",
];

/// Bytes of a text that one of the outputs captures.
const TEXT_LIMIT: &str = "256";
/// Bytes of a secret that are within it.
const CAPTURED: usize = 6;

/// Modes in which strings end elsewhere, or are names.
const MODES: [&str; 3] = ["", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"];

/// A statement with so many blanks that its secret is cut by the limit; `None` if there is no room for blanks.
fn cut_in_secret(sql: &str) -> Option<String> {
    let (secret, blank) = (sql.find(SECRET)?, sql.find(' ')?);
    let limit: usize = TEXT_LIMIT.parse().unwrap();
    let more = limit.checked_sub(CAPTURED + secret).filter(|_| blank < secret)?;
    Some([&sql[..blank], &" ".repeat(more), &sql[blank..]].concat())
}

fn speaker(server: &Server) -> Client {
    Client::builder().database("test").connect(server, Transport::Unix, SPEAKER).unwrap()
}

/// Runs everything: each statement by itself and in each mode, then each in a session of its own that waits for
/// a lock, so that it is seen running, too. `SET PASSWORD` comes to nobody's harm. A server that does not know a
/// statement refuses it, and its text is captured all the same.
fn say_everything(server: &Server, seen: impl FnOnce()) {
    let mut admin = load::session(server);
    TABLES.iter().for_each(|table| drop(admin.run(table).unwrap()));
    let mut client = speaker(server);
    for mode in MODES {
        client.run(format!("SET SESSION sql_mode = '{mode}'")).unwrap();
        // There a whole literal in double quotes is a name.
        let is_name =
            |sql: &String| mode == "ANSI_QUOTES" && sql.contains(&format!("\"{SECRET}\""));
        for statement in statements().into_iter().filter(|sql| !is_name(sql)) {
            client.query(statement).unwrap();
        }
    }
    client.run("SET SESSION sql_mode = ''").unwrap();
    for statement in told_before().iter().filter_map(|sql| cut_in_secret(sql)) {
        client.query(statement).unwrap();
    }
    admin.query("DROP USER IF EXISTS waggle_ann, waggle_ann@localhost").unwrap();
    // Prepared in the binary protocol, where the server knows the statement.
    let text = format!("CREATE USER waggle_ann@localhost IDENTIFIED BY '{SECRET}'");
    if let Ok(prepared) = client.prepare(&text) {
        client.execute(&prepared, &[], false).unwrap();
    }
    // The speaker's own password may be another by now.
    admin.run(format!("DROP USER {0}@localhost", SPEAKER.user)).unwrap();
    make_speaker(&mut admin);
    // The table lists those first that run longest.
    let slow = SLOW.iter().map(|one| one.replace('§', SECRET));
    let all: Vec<String> = slow.chain(statements()).collect();
    let mut waiting: Vec<Client> = all.iter().map(|_| speaker(server)).collect();
    admin.run("FLUSH TABLES WITH READ LOCK").unwrap();
    for (client, statement) in waiting.iter_mut().zip(all) {
        client.send(Command::Query, statement.as_bytes()).unwrap();
    }
    seen();
    admin.run("UNLOCK TABLES").unwrap();
    for client in &mut waiting {
        client.read_reply().unwrap();
    }
}

/// Goes on with one statement: the list of digests has those of the last interval.
fn say_on(server: &Server, is_over: &AtomicBool) {
    let mut client = load::session(server);
    // For longer than anything is waited for.
    for _ in 0..3000 {
        client.query(format!("SELECT AES_ENCRYPT('x', '{SECRET}')")).unwrap();
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn make_speaker(admin: &mut Client) {
    admin.run(format!("CREATE USER {0}@localhost", SPEAKER.user)).unwrap();
    admin
        .run(format!("GRANT ALL ON *.* TO {0}@localhost WITH GRANT OPTION", SPEAKER.user))
        .unwrap();
}

fn assert_no_secret(what: &str, ended: &Ended) {
    for (name, text) in [("output", &ended.out), ("error output", &ended.err)] {
        assert_eq!(shown(text), None, "{what}: {name}");
    }
    assert_no_file_holds(&ended.dir.path().join("home"));
}

fn assert_no_file_holds(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_file_holds(&path);
        } else if path.is_file() {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert_eq!(shown(&text), None, "{}", path.display());
        }
    }
}

/// Everything that watches, with literals shown.
struct Outputs {
    named: Vec<(&'static str, Waggle)>,
    terminal: Tmux,
}

impl Outputs {
    fn start(server: &Server) -> Outputs {
        let pid = server.pid().to_string();
        let options = server.defaults_file();
        let options = options.to_str().unwrap();
        let literals = ["--interval", "500ms", "--limit", "1000", "--no-redact", "--pid", &pid];
        let watch = |more: &[&str]| Waggle::start(&[&["watch"], &literals[..], more].concat());
        let named = vec![
            (
                "json",
                watch(&["--json", "--slowlog", "slow.log", "--nested", "--defaults-file", options]),
            ),
            // Some texts end within the secret.
            ("cut", watch(&["--json", "--slowlog", "slow.log", "--text-limit", TEXT_LIMIT])),
            ("fingerprints", watch(&["--csv", "--fingerprint", "percona"])),
            ("csv", watch(&["--csv"])),
            ("table", watch(&["--table"])),
            (
                "redacted",
                Waggle::start(&["watch", "--table", "--interval", "500ms", "--pid", &pid]),
            ),
            ("ddl", Waggle::start(&["ddl", "tail", "--no-redact", "--nested", "--pid", &pid])),
            (
                "verify",
                Waggle::start(&["verify", "--json", "--pid", &pid, "--defaults-file", options]),
            ),
        ];
        let terminal = Tmux::start(250, 120);
        terminal.command(&format!("{WAGGLE} watch {}", literals.join(" ")));
        let mut outputs = Outputs { named, terminal };
        let mut client = load::session(server);
        outputs
            .of("verify")
            .wait_for("the first reading", |it| it.err().contains("counters are read"));
        outputs.of("ddl").wait_for("the tap", |it| it.err().contains("is watched"));
        for name in ["json", "cut", "csv", "fingerprints", "table", "redacted"] {
            outputs.of(name).wait_for("an interval", |it| {
                // CSV begins with the first statement.
                client.run("SELECT 1").unwrap();
                !it.printed().is_empty()
            });
        }
        outputs.terminal.wait_for("the view", |screen| screen.contains("DIGESTS by load"));
        outputs
    }

    fn of(&mut self, name: &str) -> &mut Waggle {
        let mut named = self.named.iter_mut();
        named.find_map(|(known, it)| (*known == name).then_some(it)).unwrap()
    }

    /// Looks at what runs in every way: the sessions one by one, what they wait for, and files.
    fn look(&mut self, server: &Server) {
        // First: the others take a while, and the slow statements end.
        let screen =
            self.terminal.wait_for("the sessions", |screen| screen.contains("waggle_slow"));
        assert_eq!(shown(&screen), None, "the terminal");
        self.terminal.press(&["w", "r", "Enter"]);
        let screen = self.terminal.wait_for("a session", |screen| screen.contains("SESSION "));
        assert_eq!(shown(&screen), None, "the terminal: a session");
        self.terminal.press(&["w", "Escape"]);
        // A key that is read together with Escape is another one.
        self.terminal.wait_for("the lists", |screen| screen.contains("DIGESTS by load"));
        for name in ["json", "table"] {
            self.of(name).wait_for("a slow statement", |it| it.printed().contains("waggle_slow"));
        }
        let options = server.defaults_file();
        let locks = [
            "locks",
            "--no-redact",
            "--limit",
            "1000",
            "--defaults-file",
            options.to_str().unwrap(),
        ];
        for more in [&[][..], &["--json"]] {
            let locks = Waggle::start(&[&locks, more].concat()).end();
            assert!(locks.out.contains("<secret>"), "{}{}", locks.out, locks.err);
            assert_no_secret("locks", &locks);
        }
    }

    fn assert_no_secret(mut self, server: &Server, version: Version) {
        self.of("json").wait_for_lines(2);
        for name in ["json", "cut", "csv", "table", "ddl"] {
            self.of(name).wait_for("the account", |it| it.printed().contains(ACCOUNT));
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| say_on(server, &is_over));
            self.terminal.wait_for("digests", |screen| !screen.contains("DIGESTS by load: 0"));
            self.terminal.press(&["r", "Enter", "w"]);
            let screen = self.terminal.wait_for("a digest", |screen| screen.contains("DIGEST "));
            assert_eq!(shown(&screen), None, "{version} terminal: a digest");
            for name in ["json", "table", "ddl"] {
                self.of(name).wait_for("a mask", |it| it.printed().contains("<secret>"));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        self.terminal.press(&["Escape"]);
        self.terminal.quit();
        assert!(self.terminal.files("waggle").len() >= 2, "{version}: views were written");
        assert_no_file_holds(self.terminal.dir());
        for (name, waggle) in self.named {
            let ended = waggle.interrupt();
            if ["json", "cut"].contains(&name) {
                let slow_log = fs::read_to_string(ended.dir.path().join("home/slow.log")).unwrap();
                assert!(slow_log.contains(ACCOUNT), "{version}: the slow log has the statements");
            }
            if ["json", "table", "ddl"].contains(&name) {
                assert!(ended.out.contains("<secret>"), "{version} {name}: the secret is masked");
            }
            assert_no_secret(&format!("{version} {name}"), &ended);
        }
    }
}

fn no_secret_leaves_waggle(version: Version) {
    let server = Server::builder(version).max_connections(500).start().unwrap();
    make_speaker(&mut load::session(&server));
    let mut outputs = Outputs::start(&server);
    say_everything(&server, || outputs.look(&server));
    outputs.assert_no_secret(&server, version);
}

/// One server of each family: the texts are masked in the same way, whichever was captured.
#[test]
fn no_secret_leaves_waggle_by_any_output() {
    [Version::Mysql9, Version::Mariadb114].into_iter().for_each(no_secret_leaves_waggle);
}
