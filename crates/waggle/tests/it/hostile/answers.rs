//! Servers that answer with what no server says.

use std::fs;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;

use rustix::process::Signal;
use tempfile::TempDir;
use waggle_host::Process;
use waggle_testkit::fake::Peer;
use waggle_testkit::{Server, Version, wait_for, wait_until};

use super::{assert_told, option_file, run};
use crate::load;
use crate::watching::{Ended, Waggle};

type Harm = fn(&mut Peer<UnixStream>) -> io::Result<()>;

/// A server in this process, for as long as that lives. Each of its clients has a thread.
struct Hostile {
    dir: TempDir,
}

impl Hostile {
    /// One that meets every client so.
    fn meeting(
        meet: impl Fn(&mut Peer<UnixStream>) -> io::Result<()> + Clone + Send + 'static,
    ) -> Self {
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let meet = meet.clone();
                // Who has had enough goes.
                thread::spawn(move || meet(&mut Peer::new(client)));
            }
        });
        Hostile { dir }
    }

    /// One that lets anybody in, says what it is, and answers all else by harm.
    fn answering(
        version: &'static str,
        harm: impl Fn(&mut Peer<UnixStream>) -> io::Result<()> + Clone + Send + 'static,
    ) -> Self {
        Hostile::meeting(move |peer| {
            peer.admit()?;
            loop {
                let statement = peer.statement()?;
                if statement.contains("CONNECTION_ID()") && statement.contains("VERSION()") {
                    let identity =
                        ["7", version, "3306", "root@localhost", "1", "one-thread-per-connection"];
                    peer.answer(&identity.map(|text| Some(text.as_bytes())))?;
                } else if statement.is_empty() || statement.starts_with("SET") {
                    peer.send_ok()?;
                } else {
                    harm(peer)?;
                }
            }
        })
    }

    fn option_file(&self) -> PathBuf {
        let socket = self.dir.path().join("s");
        option_file(
            self.dir.path(),
            "c.cnf",
            &format!("socket={}\nconnect-timeout=1", socket.display()),
        )
    }

    fn run(&self, words: &[&str]) -> Ended {
        run(words, &self.option_file())
    }
}

const MYSQL: &str = "8.0.12";
const MARIADB: &str = "10.11.6-MariaDB";

/// Commands that ask much, each but for a moment.
const ASKING: [&[&str]; 10] = [
    &["locks", "--deadlock"],
    &["locks", "--json"],
    &["pfs", "status", "--interval", "10ms", "--verbose"],
    &["pfs", "cost", "--interval", "10ms"],
    &["pfs", "plan", "everything", "--interval", "10ms"],
    &["pfs", "apply", "minimal", "--for", "10ms"],
    &["pfs", "persist", "io"],
    &["innodb", "status", "--verbose"],
    &["innodb", "enable", "all", "--for", "10ms"],
    &["ddl", "tail", "--source", "pfs", "--for", "100ms"],
];

#[test]
fn values_that_no_server_has_end_no_command_in_a_panic() {
    let long = [b'x'; 250];
    let values: [Option<&[u8]>; 9] = [
        None,
        Some(b""),
        Some(b"18446744073709551615"),
        Some(b"9223372036854775807"),
        Some(b"-9223372036854775808"),
        Some(b"1e999"),
        Some(b"\xff\x1b[2J\n'"),
        Some(b"YES"),
        Some(&long),
    ];
    thread::scope(|scope| {
        for value in values {
            scope.spawn(move || {
                for version in [MYSQL, MARIADB] {
                    // More columns than anybody asks for, two, or one.
                    [60, 2, 1]
                        .into_iter()
                        .for_each(|columns| assert_borne(version, value, columns));
                }
            });
        }
    });
}

/// That every command bears a server that answers everything with three rows of `columns` columns, each with this value.
fn assert_borne(version: &'static str, value: Option<&[u8]>, columns: u8) {
    let about = format!("{version}, {columns} columns of {value:?}");
    let value = value.map(<[u8]>::to_vec);
    let hostile = Hostile::answering(version, move |peer| {
        peer.begin_rows(columns)?;
        for _ in 0..3 {
            peer.send_row(&vec![value.as_deref(); columns.into()])?;
        }
        peer.send_end()
    });
    for words in ASKING {
        let Ended { code, err, .. } = hostile.run(words);
        assert!(!err.contains("panicked"), "{about}: {words:?}: {err}");
        let is_documented = code.is_some_and(|code| [0, 1, 3, 4].contains(&code));
        assert!(is_documented, "{about}: {words:?}: {code:?}: {err}");
    }
}

#[test]
fn packets_that_no_server_sends_are_an_error() {
    let harms: [Harm; 6] = [
        |peer| peer.send(b""),
        // A number of columns, and the length of a value, of 16 EiB.
        |peer| peer.send(&[0xfe; 9]),
        |peer| {
            peer.begin_rows(1)?;
            peer.send(&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255])
        },
        |peer| peer.send(&[1]).and_then(|()| peer.send(b"")),
        // It asks for a file of ours.
        |peer| peer.send(b"\xfb/etc/passwd"),
        |_| Err(io::ErrorKind::BrokenPipe.into()),
    ];
    for (number, harm) in harms.into_iter().enumerate() {
        let hostile = Hostile::answering(MYSQL, harm);
        for words in [&["locks"][..], &["pfs", "status", "--interval", "10ms"]] {
            assert_told(&hostile.run(words), &format!("{number} {words:?}"), 4, &["waggle: "]);
        }
    }
}

/// Results whose columns are more than any memory holds: announced, or really sent.
#[test]
fn columns_beyond_all_memory_cost_their_connection() {
    let harms: [Harm; 2] = [
        // 2^40 of them.
        |peer| peer.send(&[0xfe, 0, 0, 0, 0, 0, 1, 0, 0]),
        |peer| {
            const LONG: usize = 8 << 20;
            peer.send(&[0xfd, 255, 255, 255])?;
            let column = [&[3][..], b"def", &[0xfd, 0, 0, (LONG >> 16) as u8], &vec![b'x'; LONG]];
            let rest = [&[0, 0, 0, 0, 12, 45, 0][..], &[255, 0, 0, 0, 253, 0, 0, 0, 0, 0]];
            let column = [column.concat(), rest.concat()].concat();
            loop {
                peer.send(&column)?;
            }
        },
    ];
    for harm in harms {
        let hostile = Hostile::answering(MYSQL, harm);
        for words in [&["locks"][..], &["pfs", "status", "--interval", "10ms"]] {
            assert_told(&hostile.run(words), &format!("{words:?}"), 4, &["none of its protocol"]);
        }
    }
}

/// The command of the child that is a connection.
const ASKS: &str = "ask-server";

/// What the kernel says in a file of a process, as `name: value` or a table of limits.
fn told(pid: u32, file: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn who_asks_a_server_has_no_rights_and_ends_with_waggle() {
    // It never answers.
    let hostile = Hostile::answering(MYSQL, |peer| peer.receive().map(drop));
    let file = hostile.option_file();
    let waggle = Waggle::start(&["locks", "--defaults-file", file.to_str().unwrap()]);
    let child = wait_for("a child that is logged in", || {
        let child = waggle.children(ASKS).first().copied()?;
        (told(child, "status", "NoNewPrivs:") == "1").then_some(child)
    });
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(told(child, "status", set), "0".repeat(16), "{set}");
    }
    let own = (4_200_000_000 + child).to_string();
    assert_eq!(told(child, "status", "Uid:"), [own.as_str(); 4].join(" "));
    assert_eq!(told(child, "status", "Gid:"), [own.as_str(); 4].join(" "));
    assert_eq!(told(child, "status", "Groups:"), "");
    let memory = (512 << 20).to_string();
    for (limit, most) in [
        ("Max address space", memory.as_str()),
        ("Max core file size", "0"),
        ("Max file size", "0"),
        ("Max open files", "0"),
        ("Max processes", "0"),
    ] {
        let both = told(child, "limits", limit);
        assert!(both.starts_with(&format!("{most} {most}")), "{limit}: {both}");
    }
    waggle.signal(Signal::KILL);
    wait_until("the end of the child", || {
        Process::of(child).state().value().is_none_or(|state| *state == 'Z')
    });
}

/// Rows of 1 MiB without end.
fn endless(peer: &mut Peer<UnixStream>) -> io::Result<()> {
    const LONG: usize = 1 << 20;
    peer.begin_rows(1)?;
    let row = [&[0xfd, 0, 0, (LONG >> 16) as u8][..], &vec![b'x'; LONG]].concat();
    loop {
        peer.send(&row)?;
    }
}

/// What a command may have beside the 256 MiB of an answer, and what its threads reserve, bytes.
const MEMORY: &str = "--as=1200000000";
const TOO_MUCH: &str = "answered with more than 256 MiB";

#[test]
fn rows_without_end_cost_their_connection_and_bounded_memory() {
    let hostile = Hostile::answering(MYSQL, endless);
    let file = hostile.option_file();
    let account = ["--defaults-file", file.to_str().unwrap()];
    for words in [&["locks"][..], &["pfs", "status"]] {
        let ended = Waggle::through(&["prlimit", MEMORY], &[words, &account].concat()).end();
        assert_told(&ended, &format!("{words:?}"), 4, &[TOO_MUCH]);
    }
    let server = Server::start(Version::Mysql80).unwrap();
    let pid = server.pid().to_string();
    let verify = ["verify", "--for", "100ms", "--pid", &pid];
    assert_told(&run(&verify, &file), "verify", 3, &[TOO_MUCH]);
    let mut session = load::session(&server);
    let mut watch = Waggle::watch(&server, &[&account[..], &["--interval", "100ms"]].concat());
    watch.wait_for("why it is not asked", |watch| {
        session.run("SELECT 'watched'").unwrap();
        watch.err().contains("no server digests")
    });
    let status = fs::read_to_string(format!("/proc/{}/status", watch.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 700 << 10, "{peak} KiB");
    assert_told(&watch.interrupt(), "watch", 0, &[]);
}

#[test]
fn a_server_that_never_greets_is_given_up() {
    // It says nothing, or a byte of a greeting now and then.
    let meets: [Harm; 2] = [
        |peer| peer.receive().map(drop),
        |peer| {
            peer.send_raw(&[70, 0, 0, 0])?;
            loop {
                peer.send_raw(&[10])?;
                thread::sleep(std::time::Duration::from_millis(100));
            }
        },
    ];
    for meet in meets {
        let hostile = Hostile::meeting(meet);
        for words in [&["locks"][..], &["pfs", "status"], &["innodb", "status"]] {
            assert_told(&hostile.run(words), &format!("{words:?}"), 4, &["took too long"]);
        }
    }
}
