//! A page of the guide, its commands and what it shows of their outputs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use waggle_testkit::Server;

/// The option file that the pages name.
const OPTION_FILE: &str = "/etc/mysql/waggle.cnf";
/// How long the commands of the pages hold what they set, and how long those of the test do.
const HELD: (&str, &str) = ("--for 10m", "--for 1s");
/// A line that stands for any lines.
const LEFT_OUT: &str = "…";
/// What is said where the server cannot tell what reading a timer costs, as on some hosts, and how the
/// lines of an arithmetic begin that is lacking then.
const NO_PRICE: &str = "the server does not know what reading ";
const OF_A_PRICE: [&str; 4] = ["  timer ", "  price ", "  statement ", "  server "];
const BEGIN: &str = "```console";
const END: &str = "```";

pub(super) struct Page {
    path: PathBuf,
    lines: Vec<String>,
    /// The option files that it names, and those of the servers that they stand for.
    option_files: Vec<(&'static str, PathBuf)>,
}

/// A command of a page, and where its output stands.
struct Shown {
    command: String,
    from: usize,
    to: usize,
}

impl Page {
    pub(super) fn read(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name);
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(str::to_owned).collect();
        Self { path, lines, option_files: Vec::new() }
    }

    /// A server that it names by another option file than most.
    pub(super) fn naming(mut self, option_file: &'static str, server: &Server) -> Self {
        self.option_files.push((option_file, server.defaults_file()));
        self
    }

    /// Runs its commands, in their order.
    pub(super) fn check(self, server: &Server) {
        let mut page = self.naming(OPTION_FILE, server);
        page.run_all();
        page.write();
    }

    fn run_all(&mut self) {
        let state = TempDir::new().unwrap();
        let shown = self.shown();
        assert!(!shown.is_empty(), "{}: no command", self.path.display());
        let mut now = Vec::new();
        for one in &shown {
            let printed = run(&one.command, &self.option_files, &state);
            now.push(self.compared(one, lines_of(printed)));
        }
        for (shown, lines) in shown.iter().zip(now).rev() {
            self.lines.splice(shown.from..shown.to, lines);
        }
    }

    /// Compares what a command has printed that the caller ran, the last that the page has of it.
    pub(super) fn check_one(mut self, command: &str, printed: String) {
        let shown = self.shown().into_iter().rfind(|shown| shown.command == command);
        let shown = shown.unwrap_or_else(|| panic!("{}: no `{command}`", self.path.display()));
        let lines = self.compared(&shown, lines_of(printed));
        self.lines.splice(shown.from..shown.to, lines);
        self.write();
    }

    fn write(&self) {
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&self.path, self.lines.join("\n") + "\n").unwrap();
        }
    }

    /// The lines that the page is to show.
    fn compared(&self, shown: &Shown, printed: Vec<String>) -> Vec<String> {
        let expected = &self.lines[shown.from..shown.to];
        match matched(&expected_here(expected, &printed), &printed) {
            Some(lines) => lines,
            None if std::env::var_os("UPDATE").is_some() => printed,
            None => panic!(
                "{}: `{}` prints\n{}\nand the page shows\n{}\nAfter a change that is meant: \
                 UPDATE=1 cargo test -p waggle --test guide",
                self.path.display(),
                shown.command,
                printed.join("\n"),
                expected.join("\n")
            ),
        }
    }

    /// The commands for root in its blocks. What a block shows before its first one is of none.
    fn shown(&self) -> Vec<Shown> {
        let (mut shown, mut is_inside) = (Vec::<Shown>::new(), false);
        for (at, line) in self.lines.iter().enumerate() {
            match (is_inside, line.strip_prefix("# ")) {
                (true, Some(command)) => {
                    shown.push(Shown { command: command.to_owned(), from: at + 1, to: at + 1 });
                }
                (true, None) if line == END => is_inside = false,
                (true, None) => {
                    let last = shown.last_mut().filter(|last| last.to == at);
                    last.into_iter().for_each(|last| last.to = at + 1);
                }
                (false, _) => is_inside = line == BEGIN,
            }
        }
        shown
    }
}

/// What a command prints on both of its streams.
fn run(command: &str, option_files: &[(&str, PathBuf)], state: &TempDir) -> String {
    let mut words = command
        .strip_prefix("waggle")
        .unwrap_or_else(|| panic!("`{command}` is no command of waggle"))
        .replace(HELD.0, HELD.1);
    for (named, file) in option_files {
        words = words.replace(named, &file.display().to_string());
    }
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("exec '{}'{words} 2>&1", env!("CARGO_BIN_EXE_waggle")));
    let output = shell.env("WAGGLE_STATE_DIR", state.path()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().replace("for 1 s;", "for 600 s;")
}

fn lines_of(printed: String) -> Vec<String> {
    printed.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// The lines that can be expected on this host.
fn expected_here(expected: &[String], printed: &[String]) -> Vec<String> {
    let has_prices = !printed.iter().any(|line| line.contains(NO_PRICE));
    let is_of_a_price = |line: &str| OF_A_PRICE.iter().any(|begin| line.starts_with(begin));
    let can_be = |line: &String| has_prices || !is_of_a_price(line);
    let here = expected.iter().map(|line| if can_be(line) { line.as_str() } else { LEFT_OUT });
    here.map(str::to_owned).collect()
}

/// The lines of the page as they are printed now; `None` where something else is printed.
fn matched(expected: &[String], printed: &[String]) -> Option<Vec<String>> {
    let Some((first, rest)) = expected.split_first() else {
        return printed.is_empty().then(Vec::new);
    };
    let after = |lines: Vec<String>, first: &str| {
        let mut all = vec![first.to_owned()];
        all.extend(lines);
        Some(all)
    };
    if first == LEFT_OUT {
        let lines = (0..=printed.len()).find_map(|skip| matched(rest, &printed[skip..]))?;
        return after(lines, LEFT_OUT);
    }
    let (now, others) = printed.split_first()?;
    if shape(first) != shape(now) {
        return None;
    }
    after(matched(rest, others)?, now)
}

/// A line without what differs from run to run: each number is a 0, each gap a blank, the UUID of a server
/// one of nobody, a place in a file the file alone. A dash in the place of a number is one, too: on some hosts the server cannot tell what
/// reading a timer costs.
fn shape(line: &str) -> String {
    let is_number = |word: &str| {
        word == "-" || word.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
    };
    let words = line.split_whitespace().map(|word| match word {
        word if is_number(word) => "0",
        word if is_uuid(word) => "UUID",
        word => word.split_once("+0x").map_or(word, |(file, _)| file),
    });
    let words: Vec<&str> = words.collect();
    let (mut shape, mut was_digit) = (String::new(), false);
    let line = words.join(" ");
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        // A number may be above or below 0.
        let begins = matches!(letter, '+' | '-') && !shape.ends_with(char::is_alphanumeric);
        if begins && letters.peek().is_some_and(char::is_ascii_digit) {
            continue;
        }
        // 1,234,567 is one number.
        let is_digit = letter.is_ascii_digit() || letter == ',' && was_digit;
        match is_digit {
            true if was_digit => {}
            true => shape.push('0'),
            false => shape.push(letter),
        }
        was_digit = is_digit;
    }
    shape
}

fn is_uuid(word: &str) -> bool {
    let is_hexadecimal = |part: &str| part.chars().all(|letter| letter.is_ascii_hexdigit());
    word.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && word.split('-').all(is_hexadecimal)
}
