//! Conversations of a server over a unix socket, changed: greeting, login, and the answers to statements.
//!
//! Each input is a conversation of its own connection. The server says all of it at once and never waits for us: what
//! is fuzzed is what is read, not when it comes. Endless and slow answers are in `driver_tests`.

use std::cell::RefCell;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::path::PathBuf;
use std::sync::Once;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use tempfile::TempDir;
use waggle_fuzz_frame::{Counts, Fuzzer, Random, edge, mutate, put, run};

use super::*;
use crate::Secret;

/// Statements that are answered after the login.
const ANSWERS: usize = 4;
/// Bytes of a conversation at most: the buffer of a socket takes it.
const LONGEST: usize = 64 * 1024;
const VALUES: &[&[u8]] = &[
    b"7",
    b"8.0.12",
    b"11.4.5-MariaDB",
    b"3306",
    b"root@localhost",
    b"1",
    b"one-thread-per-connection",
    b"",
    b"\xff\xfe",
    b"18446744073709551616",
    b"-1",
    b"x",
];
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\xfb",
    b"\xfc\xff\xff",
    b"\xfd\xff\xff\xff",
    b"\xfe",
    b"\xff",
    b"\xfe\0\0\x02\0",
    b"\xfe\0\0\x0a\0",
    b"\xff\x15\x04#28000no",
    b"\x01\x03",
    b"\x01\x04",
    b"\xfemysql_native_password\x0001234567890123456789\0",
    b"\xfemysql_clear_password\0",
    b"\xfbfile",
    b"\x01\0\0\x01",
    b"\x05\0\0\x05\xfe\0\0\x02\0",
    b"\xff\xff\xff\x01",
];

struct Conversations {
    _directory: TempDir,
    options: Options,
    says: SyncSender<Vec<u8>>,
    bytes: Vec<u8>,
}

thread_local! {
    /// Where this thread panicked last.
    static PANICKED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Notes where a conversation panics, and says nothing: the driver may, on a thread of its own.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            let place = panic.location().map(|at| at.file().to_owned()).unwrap_or_default();
            let is_ours = place.starts_with("crates");
            PANICKED.set(place);
            if is_ours {
                before(panic);
            }
        }));
    });
}

impl Conversations {
    fn new() -> Conversations {
        note_panics();
        let directory = TempDir::new().unwrap();
        let socket = directory.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let (says, said) = sync_channel::<Vec<u8>>(0);
        thread::spawn(move || {
            let mut open = None;
            for bytes in said {
                drop(open.take());
                let (mut stream, _) = listener.accept().unwrap();
                // The client may have left.
                let _ = stream.write_all(&bytes).and_then(|()| stream.shutdown(Shutdown::Write));
                open = Some(stream);
            }
        });
        let options = options(socket);
        Conversations { _directory: directory, options, says, bytes: Vec::new() }
    }

    fn packet(&mut self, number: u8, payload: &[u8]) {
        let length = (payload.len() as u32).to_le_bytes();
        self.bytes.extend([length[0], length[1], length[2], number]);
        self.bytes.extend(payload);
    }

    fn greet(&mut self, random: &mut Random) {
        let version = *random.pick(&["8.0.12", "5.7.22", "9.7.4", "5.5.5-11.4.5-MariaDB", "x"]);
        let plugin =
            *random.pick(&["mysql_native_password", "caching_sha2_password", "client_ed25519"]);
        let mut greeting = vec![10];
        greeting.extend([version.as_bytes(), b"\0\x07\0\0\x0001234567\0"].concat());
        // As in `driver_tests`.
        greeting.extend([0x00, 0x82, 45, 2, 0, 0x08, 0x00, 21]);
        greeting.extend([0; 10]);
        greeting.extend([b"890123456789\0", plugin.as_bytes(), b"\0"].concat());
        if random.below(10) == 0 {
            put(&mut greeting, random.below(60), 2, edge(random));
        }
        self.packet(0, &greeting);
    }

    fn log_in(&mut self, random: &mut Random) {
        let ok = [0, 0, 0, 2, 0, 0, 0];
        let switch = b"\xfemysql_native_password\x0001234567890123456789\0";
        match random.below(6) {
            0 => {
                self.packet(2, switch);
                self.packet(4, &ok);
            }
            1 => {
                self.packet(2, b"\x01\x03");
                self.packet(3, &ok);
            }
            2 => {
                self.packet(2, b"\x01\x04");
                self.packet(4, &ok);
            }
            3 => self.packet(2, b"\xff\x15\x04#28000Access denied"),
            _ => self.packet(2, &ok),
        }
    }

    /// A result with these numbers of columns and rows, or an error, or no result.
    fn answer(&mut self, columns: usize, rows: usize, random: &mut Random) {
        match random.below(12) {
            0 => return self.packet(1, b"\xff\x7a\x04#42S02no such table"),
            1 => return self.packet(1, &[0, 1, 0, 2, 0, 0, 0]),
            _ => {}
        }
        let mut number = 1;
        let mut next = || {
            let now: u8 = number;
            number = number.wrapping_add(1);
            now
        };
        self.packet(next(), &[columns as u8]);
        for _ in 0..columns {
            let mut column = Vec::new();
            for text in ["def", "", "t", "t", "c", "c"] {
                column.push(text.len() as u8);
                column.extend(text.as_bytes());
            }
            column.extend([
                12,
                45,
                0,
                255,
                0,
                0,
                0,
                *random.pick(&[253, 8, 252, 0]),
                0,
                0,
                0,
                0,
                0,
            ]);
            self.packet(next(), &column);
        }
        self.packet(next(), &[0xfe, 0, 0, 2, 0]);
        for _ in 0..rows {
            let mut row = Vec::new();
            for at in 0..columns {
                let value = if at < 6 && random.below(30) != 0 {
                    identity_value(at)
                } else {
                    *random.pick(VALUES)
                };
                match random.below(12) {
                    0 => row.push(0xfb),
                    _ => {
                        row.push(value.len() as u8);
                        row.extend(value);
                    }
                }
            }
            self.packet(next(), &row);
        }
        let status = if random.below(20) == 0 { 10 } else { 2 };
        self.packet(next(), &[0xfe, 0, 0, status, 0]);
    }

    /// What waggle asks of a server.
    fn talk(&self) -> Result<(), ConnectionError> {
        let mut connection = Connection::open_to_own_server(&self.options)?;
        connection.server_identity().server_version();
        let _ = connection.digest_length()?;
        let rows = connection.rows("SELECT 1");
        if let Reading::Value(rows) = absent_or(&connection, "a table", rows)? {
            let _ = rows.iter().map(|row| text(row, 0)).collect::<Vec<_>>();
        }
        connection.global_status("Questions")?;
        connection.say("mark")
    }
}

fn options(socket: PathBuf) -> Options {
    Options {
        socket: Some(socket),
        user: Some("ann".to_owned()),
        password: Some(Secret::new(b"secret".to_vec())),
        ..Options::default()
    }
}

/// What [`identity::ask`] is answered.
fn identity_value(column: usize) -> &'static [u8] {
    [&b"7"[..], b"8.0.12", b"3306", b"root@localhost", b"1", b"one-thread-per-connection"][column]
}

impl Fuzzer for Conversations {
    const SUBJECT: &'static str = "packets";
    /// The buffers of the driver, of 4 MiB each, and an answer.
    const MEMORY_MAX: u64 = 64 << 20;

    fn make(&mut self, _: u64, random: &mut Random) -> usize {
        self.bytes.clear();
        self.greet(random);
        self.log_in(random);
        self.answer(6, 1, random);
        for _ in 0..ANSWERS {
            let (columns, rows) = (1 + random.below(3), random.below(4));
            self.answer(columns, rows, random);
        }
        if random.below(4) != 0 {
            for _ in 0..random.below(5) {
                mutate(&mut self.bytes, random, PIECES, &[], LONGEST);
            }
        }
        self.bytes.len()
    }

    fn check(&mut self, counts: &mut Counts) {
        self.says.send(self.bytes.clone()).unwrap();
        match catch_unwind(AssertUnwindSafe(|| self.talk())) {
            Ok(Ok(())) => counts.met("understood"),
            Ok(Err(ConnectionError::LoginRefused { .. })) => counts.met("logins_refused"),
            Ok(Err(ConnectionError::Statement { .. })) => counts.met("statements_refused"),
            Ok(Err(error)) => {
                counts.met("not_understood");
                assert!(!error.to_string().contains("secret"), "{error}");
            }
            // The driver panicked: in the product its thread ends, and with it the connection.
            Err(_) if !PANICKED.take().starts_with("crates") => counts.met("not_borne"),
            Err(panic) => resume_unwind(panic),
        }
    }
}

#[test]
fn no_conversation_makes_anything_of_ours_panic_hang_or_grow() {
    let Some((inputs, counts)) = run(Conversations::new) else { return };
    for (what, at_least) in [
        ("understood", 30),
        ("logins_refused", 30),
        ("statements_refused", 30),
        ("not_understood", 5),
    ] {
        assert!(counts.of(what) * at_least > inputs, "{what}: {counts:?}");
    }
}
