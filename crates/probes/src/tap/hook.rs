//! The hooks that the tap can use, cheapest first (the ladder).

use std::fmt;
use std::str::FromStr;

/// A rung of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hook {
    /// The tracepoint `sock:sock_send_length` (kernel 6.3 and later).
    Send,
    /// The return of `__sock_sendmsg`, or `sock_sendmsg` before that was split (up to kernel 6.4).
    Fentry,
    /// The end of the system calls that send.
    Syscall,
    /// A breakpoint on `log_slow_statement` of the server.
    Uprobe,
}

impl Hook {
    /// Every rung, in the order in which they are tried.
    pub const LADDER: [Hook; 4] = [Hook::Send, Hook::Fentry, Hook::Syscall, Hook::Uprobe];

    /// The word after `--hook`.
    pub fn name(self) -> &'static str {
        match self {
            Hook::Send => "send",
            Hook::Fentry => "fentry",
            Hook::Syscall => "syscall",
            Hook::Uprobe => "uprobe",
        }
    }

    /// What it attaches to, for people.
    pub fn place(self) -> &'static str {
        match self {
            Hook::Send => "tracepoint sock:sock_send_length",
            Hook::Fentry => "return of __sock_sendmsg",
            Hook::Syscall => "raw tracepoint sys_exit",
            Hook::Uprobe => "uprobe on log_slow_statement",
        }
    }

    /// The program of `mod.bpf.c`.
    pub(super) fn program(self) -> &'static str {
        match self {
            Hook::Send => "on_send",
            Hook::Fentry => "on_sendmsg",
            Hook::Syscall => "on_sys_exit",
            Hook::Uprobe => "on_end",
        }
    }

    /// Whether the size of the reply is known at this hook.
    pub fn knows_bytes(self) -> bool {
        self != Hook::Uprobe
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Hook {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Hook::LADDER.into_iter().find(|hook| hook.name() == word).ok_or_else(|| {
            format!("`{word}` is not a hook; choose send, fentry, syscall or uprobe")
        })
    }
}
