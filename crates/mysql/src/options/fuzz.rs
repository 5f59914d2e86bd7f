//! Option files that include each other, and login path files, both changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use waggle_fuzz_frame::{Counts, Fuzzer, Random, mutate, run};

use super::*;
use crate::connection::Endpoint;

/// The files of an input. Those that include each other name these.
const FILES: [&str; 4] = ["my.cnf", ".my.cnf", "d/a.cnf", "d/b.cnf"];
const LOGIN_FILE: &str = ".mylogin.cnf";
/// The login path that is asked for.
const LOGIN_PATH: &str = "remote";
/// Bytes of a usual file at most, and of the few long ones.
const USUAL: usize = 3000;
const LONG: usize = 256 * 1024;
const LONG_EVERY: usize = 2000;

/// The lines of an option file. `@` stands for the directory of the files.
const LINES: &[&str] = &[
    "[client]",
    "[mysqld]",
    "[waggle]",
    "[client-mariadb]",
    "[remote]",
    "user=ann",
    "user = \"a b # c\" # note",
    "password='it\\'s'",
    "password=\\s\\\\\\d\\n",
    "password",
    "host=db.example",
    "port=3306",
    "port=65536",
    "socket=/run/mysqld/mysqld.sock",
    "protocol=TCP",
    "ssl-mode=VERIFY_CA",
    "loose_ssl-ca=ca.pem",
    "skip_ssl",
    "ssl=0",
    "ssl-verify-server-cert",
    "server-user=mysql",
    "get-server-public-key=ON",
    "max_allowed_packet=16M",
    "# comment",
    "; comment",
    "!include @/d/a.cnf",
    "!include @/d/b.cnf",
];
/// Lines after which nothing is read, and so rare: a circle, a file that is not there, one without an end.
const ENDS: &[&str] =
    &["!include @/my.cnf", "!includedir @/d", "!includedir /nonexistent", "!include /dev/zero"];
const PIECES: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"[",
    b"]",
    b"=",
    b"#",
    b";",
    b"'",
    b"\"",
    b"\\",
    b"!",
    b"!include ",
    b"\0",
    b"\xff",
    b"[client]\n",
    b"password=",
];

struct Files {
    directory: TempDir,
    sources: Sources,
    lines: Vec<Vec<u8>>,
    ends: Vec<Vec<u8>>,
    text: Vec<u8>,
    /// Whether bytes were changed: then the password may stand in another option.
    is_changed: bool,
}

impl Files {
    fn new() -> Files {
        // In memory: a disk would take most of the time.
        let directory = TempDir::new_in("/dev/shm").unwrap();
        fs::create_dir(directory.path().join("d")).unwrap();
        for name in FILES {
            write(&directory.path().join(name), b"");
        }
        let place = directory.path().display().to_string();
        let placed = |line: &&str| (line.replace('@', &place) + "\n").into_bytes();
        let [lines, ends] = [LINES, ENDS].map(|lines| lines.iter().map(placed).collect());
        Files {
            directory,
            sources: Sources::default(),
            lines,
            ends,
            text: Vec::new(),
            is_changed: false,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn make_text(&mut self, random: &mut Random) {
        self.text.clear();
        if random.below(20) != 0 {
            self.text.extend(b"[client]\n");
        }
        for _ in 0..random.below(12) {
            let from = if random.below(100) == 0 { &self.ends } else { &self.lines };
            self.text.extend(random.pick(from));
        }
        if random.below(3) == 0 {
            self.is_changed = true;
            for _ in 0..random.below(5) {
                mutate(&mut self.text, random, PIECES, &[], USUAL);
            }
        }
        if random.below(LONG_EVERY) == 0 {
            let piece = random.pick(PIECES);
            self.text = self.text.iter().copied().chain(piece.repeat(LONG / piece.len())).collect();
        }
    }

    /// A login path file: the text, enciphered line by line, or with changed bytes.
    fn login_file(&mut self, random: &mut Random) -> Vec<u8> {
        let text = String::from_utf8_lossy(&self.text);
        let lines: Vec<&str> = text.split_inclusive('\n').take(20).collect();
        let mut file = login_path::tests::encipher(&lines);
        if random.below(3) == 0 {
            self.is_changed = true;
            for _ in 0..random.below(4) {
                mutate(&mut file, random, &[], &[], USUAL);
            }
        }
        file
    }
}

fn write(path: &Path, text: &[u8]) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

impl Fuzzer for Files {
    const SUBJECT: &'static str = "options";
    /// Files that include each other ten levels deep, each with the text of the longest.
    const MEMORY_MAX: u64 = 64 << 20;

    fn make(&mut self, _: u64, random: &mut Random) -> usize {
        let mut length = 0;
        self.is_changed = false;
        // What the input before wrote must not be left.
        for name in FILES {
            self.make_text(random);
            length += self.text.len();
            fs::write(self.path(name), &self.text).unwrap();
        }
        let with_login_path = random.below(4) == 0;
        let login_file = self.path(LOGIN_FILE);
        // There may be none. It is also where the clients look if nothing is named.
        let _ = fs::remove_file(&login_file);
        if with_login_path {
            let ciphered = self.login_file(random);
            write(&login_file, &ciphered);
        }
        let home = self.directory.path().to_owned();
        self.sources = Sources {
            defaults_file: (random.below(3) == 0).then(|| self.path("my.cnf")),
            defaults_extra_file: (random.below(3) == 0).then(|| self.path("d/a.cnf")),
            login_path: random.coin().then(|| LOGIN_PATH.to_owned()),
            environment: Environment {
                home: (random.below(10) != 0).then_some(home),
                mysql_home: None,
                login_file: with_login_path.then_some(login_file),
                user: None,
                global_files: vec![self.path("my.cnf")],
            },
        };
        length
    }

    fn check(&mut self, counts: &mut Counts) {
        let is_hidden = |told: String| self.is_changed || !told.contains("it's");
        match Options::read(&self.sources) {
            Ok(options) => {
                counts.met("read");
                counts.add_to("passwords", u64::from(options.password.is_some()));
                counts.add_to("files", options.read_from.len() as u64);
                let _ = Endpoint::choose(&options);
                assert!(is_hidden(format!("{options:?}")), "a password is never shown");
            }
            Err(OptionsError::TooDeep { .. }) => counts.met("too_deep"),
            Err(error) => {
                counts.met("refused");
                assert!(is_hidden(error.to_string()), "{error}");
            }
        }
    }
}

#[test]
fn no_file_makes_anything_panic_hang_or_grow() {
    let Some((inputs, counts)) = run(Files::new) else { return };
    for (what, at_least) in
        [("read", 20), ("passwords", 100), ("files", 10), ("too_deep", 100), ("refused", 20)]
    {
        assert!(counts.of(what) * at_least > inputs, "{what}: {counts:?}");
    }
}
