//! What libbpf says when the kernel refuses a program. waggle keeps it for its own message, so that
//! it does not land on standard error.

use std::cell::RefCell;

use libbpf_rs::{PrintLevel, set_print};

/// Characters that are kept of the log of one refusal: its end names the instruction and the reason.
const KEPT: usize = 2000;
/// Lines of the log that say why, before libbpf's own closing lines.
const LINES_SHOWN: usize = 2;

thread_local! {
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Listens to libbpf from now on.
pub(crate) fn listen() {
    set_print(Some((PrintLevel::Warn, keep)));
}

fn keep(_level: PrintLevel, message: String) {
    SAID.with_borrow_mut(|said| {
        said.push_str(&message);
        let surplus = said.len().saturating_sub(KEPT);
        let cut = (surplus..=said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(0);
        said.drain(..cut);
    });
}

/// Why the verifier refused the last program, where it said so; forgets it.
pub(crate) fn last() -> Option<String> {
    let said = SAID.take();
    let log = &said[..said.find("-- END PROG LOAD LOG --")?];
    let lines: Vec<&str> = log
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("processed "))
        .collect();
    Some(lines[lines.len().saturating_sub(LINES_SHOWN)..].join("; "))
}
