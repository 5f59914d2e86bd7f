//! The arms: what is priced.

use std::fmt;

use waggle_probes::capture::TapOptions;
use waggle_probes::tap::Hook;

/// What is priced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arm {
    /// waggle on one rung of the ladder.
    Rung(Hook),
    /// waggle as it is by default.
    Default,
    /// waggle with texts of at most this many KiB.
    Texts(u32),
    /// A breakpoint at the start and one at the return of `dispatch_command`.
    Pair,
}

impl Arm {
    /// Those of a usual run.
    pub(crate) const USUAL: [Arm; 5] = [
        Arm::Rung(Hook::Send),
        Arm::Rung(Hook::Fentry),
        Arm::Rung(Hook::Syscall),
        Arm::Rung(Hook::Uprobe),
        Arm::Pair,
    ];

    /// Those that price limits of texts.
    pub(crate) const OF_TEXTS: [Arm; 3] = [Arm::Texts(4), Arm::Texts(16), Arm::Texts(64)];

    /// The name in tables and files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Arm::Rung(Hook::Send) => "waggle send",
            Arm::Rung(Hook::Fentry) => "waggle fentry",
            Arm::Rung(Hook::Syscall) => "waggle syscall",
            Arm::Rung(Hook::Uprobe) => "waggle uprobe",
            Arm::Default => "waggle",
            Arm::Texts(4) => "texts of 4 KiB",
            Arm::Texts(16) => "texts of 16 KiB",
            Arm::Texts(_) => "texts of 64 KiB",
            Arm::Pair => "uprobe pair",
        }
    }

    /// What `waggle prove` is told, so that a coin prices it; `None` where there is a breakpoint, which no coin can take
    /// away.
    pub(crate) fn words(self) -> Option<Vec<String>> {
        let words = match self {
            Arm::Rung(Hook::Uprobe) | Arm::Pair => return None,
            Arm::Rung(hook) => vec!["--hook".to_owned(), hook.to_string()],
            Arm::Default => Vec::new(),
            Arm::Texts(kib) => {
                vec!["--no-waits".to_owned(), "--text-limit".to_owned(), (kib << 10).to_string()]
            }
        };
        Some(words)
    }

    /// Whether it is tried in windows: a breakpoint, for its price, and what waggle takes on a kernel of today, for the
    /// throughput.
    pub(crate) fn is_in_windows(self) -> bool {
        matches!(self, Arm::Rung(Hook::Send | Hook::Uprobe) | Arm::Pair)
    }

    /// The tap of waggle; `None` for what others do.
    pub(crate) fn tap(self) -> Option<TapOptions> {
        let usual = TapOptions::default();
        match self {
            Arm::Rung(hook) => Some(TapOptions { hook: Some(hook), ..usual }),
            Arm::Default => Some(TapOptions { waits: true, ..usual }),
            Arm::Texts(kib) => Some(TapOptions { text_limit: kib << 10, ..usual }),
            Arm::Pair => None,
        }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arm_is_priced_by_a_coin_or_in_windows() {
        for arm in Arm::USUAL.into_iter().chain(Arm::OF_TEXTS).chain([Arm::Default]) {
            assert!(arm.words().is_some() || arm.is_in_windows(), "{arm}");
        }
    }
}
