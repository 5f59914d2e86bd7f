//! The arms: what is attached to the server while a window is measured.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use waggle_account::{Books, Grouping};
use waggle_probes::capture::{Amount, Tap, TapOptions};
use waggle_probes::servers::discover::servers;
use waggle_probes::servers::recognise::{Builds, Recognised};
use waggle_probes::tap::Hook;

use crate::reference::Reference;

/// What is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Arm {
    /// Nothing: how far two windows without any difference differ.
    Nothing,
    /// waggle on one rung of the ladder.
    Tap(Hook),
    /// waggle, with where the time of each statement went.
    Waits,
    /// waggle, with texts of at most this many KiB.
    Texts(u32),
    /// A breakpoint at the start and one at the return of `dispatch_command`.
    Reference,
}

impl Arm {
    /// Every arm, in the order of the tables.
    pub(crate) const ALL: [Arm; 10] = [
        Arm::Nothing,
        Arm::Tap(Hook::Send),
        Arm::Tap(Hook::Fentry),
        Arm::Tap(Hook::Syscall),
        Arm::Tap(Hook::Uprobe),
        Arm::Waits,
        Arm::Texts(4),
        Arm::Texts(16),
        Arm::Texts(64),
        Arm::Reference,
    ];

    /// The name in tables and files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Arm::Nothing => "A/A",
            Arm::Tap(Hook::Send) => "waggle send",
            Arm::Tap(Hook::Fentry) => "waggle fentry",
            Arm::Tap(Hook::Syscall) => "waggle syscall",
            Arm::Tap(Hook::Uprobe) => "waggle uprobe",
            Arm::Waits => "waggle with waits",
            Arm::Texts(4) => "texts of 4 KiB",
            Arm::Texts(16) => "texts of 16 KiB",
            Arm::Texts(_) => "texts of 64 KiB",
            Arm::Reference => "uprobe pair",
        }
    }

    /// Whether it prices a limit of texts.
    pub(crate) fn is_of_texts(self) -> bool {
        matches!(self, Arm::Texts(_))
    }

    /// Whether waits are priced by it: beside the tap without them.
    pub(crate) fn is_of_waits(self) -> bool {
        matches!(self, Arm::Waits | Arm::Tap(Hook::Send))
    }
}

impl FromStr for Arm {
    type Err = String;

    fn from_str(word: &str) -> std::result::Result<Self, String> {
        match word {
            "aa" => Ok(Arm::Nothing),
            "pair" => Ok(Arm::Reference),
            "waits" => Ok(Arm::Waits),
            hook => hook.parse().map(Arm::Tap).map_err(|_| {
                format!(
                    "`{word}` is no arm; choose aa, send, fentry, syscall, uprobe, waits or pair"
                )
            }),
        }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// An arm that cannot be used here, and why.
pub(crate) struct Refused {
    pub(crate) arm: Arm,
    pub(crate) why: String,
}

/// Every arm of one server, loaded as far as that is possible before it is attached.
pub(crate) struct Arms {
    target: Recognised,
    taps: Vec<(Arm, Tap)>,
    reference: Option<Reference>,
    /// One interval for the whole run, which every arm counts in as `waggle watch` does: so the
    /// price of an arm is that of the whole.
    books: Rc<RefCell<Books>>,
    usable: Vec<Arm>,
    refused: Vec<Refused>,
}

impl Arms {
    /// Finds the server, tries every one of the wanted arms once and keeps those that work.
    ///
    /// # Errors
    ///
    /// Where the server itself cannot be looked into.
    pub(crate) fn of(pid: u32, wanted: &[Arm]) -> Result<Arms> {
        let found = servers(Path::new("/proc")).into_iter().find(|found| found.pid == pid);
        let found = found.with_context(|| format!("process {pid} is not a server"))?;
        let target = Builds::default().with_waits().recognise(&found)?;
        let books = Rc::new(RefCell::new(Books::open(&target.server, Grouping::Digest, 0)));
        let mut arms = Arms {
            target,
            taps: Vec::new(),
            reference: None,
            books,
            usable: Vec::new(),
            refused: Vec::new(),
        };
        for arm in Arm::ALL.into_iter().filter(|arm| wanted.contains(arm)) {
            match arms.load(arm) {
                Ok(()) => arms.usable.push(arm),
                Err(error) => arms.refused.push(Refused { arm, why: format!("{error:#}") }),
            }
        }
        Ok(arms)
    }

    fn load(&mut self, arm: Arm) -> Result<()> {
        match arm {
            Arm::Nothing => return Ok(()),
            Arm::Tap(hook) => {
                let options = TapOptions { hook: Some(hook), ..TapOptions::default() };
                self.taps.push((arm, Tap::new(options)?));
            }
            Arm::Waits => {
                let options = TapOptions { waits: true, ..TapOptions::default() };
                self.taps.push((arm, Tap::new(options)?));
            }
            Arm::Texts(kib) => {
                let options = TapOptions { text_limit: kib << 10, ..TapOptions::default() };
                self.taps.push((arm, Tap::new(options)?));
            }
            Arm::Reference => {
                let flavour = self.target.layout.flavour;
                self.reference = Some(Reference::load(flavour, self.books.clone())?);
            }
        }
        self.attach(arm)?;
        self.detach(arm);
        Ok(())
    }

    /// The arms that work here.
    pub(crate) fn usable(&self) -> Vec<Arm> {
        self.usable.clone()
    }

    /// The arms that do not, and why.
    pub(crate) fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// The build id of the server.
    pub(crate) fn build(&self) -> String {
        self.target.server.build.to_string()
    }

    /// The process id of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.target.instance.pid
    }

    fn tap(&mut self, arm: Arm) -> Option<&mut Tap> {
        self.taps.iter_mut().find(|(kept, _)| *kept == arm).map(|(_, tap)| tap)
    }

    /// Attaches an arm.
    pub(crate) fn attach(&mut self, arm: Arm) -> Result<()> {
        let pid = self.pid();
        let (instance, layout) = (self.target.instance.clone(), self.target.layout.clone());
        if arm == Arm::Reference {
            return self.reference.as_mut().map_or(Ok(()), |reference| reference.attach(pid));
        }
        if let Some(tap) = self.tap(arm) {
            tap.attach(&instance, &layout)?;
        }
        Ok(())
    }

    /// Detaches an arm: nothing of it stays in the kernel's path.
    pub(crate) fn detach(&mut self, arm: Arm) {
        let pid = self.pid();
        match (arm, &mut self.reference) {
            (Arm::Reference, Some(reference)) => reference.detach(),
            _ => {
                if let Some(tap) = self.tap(arm) {
                    tap.detach(pid);
                }
            }
        }
    }

    /// Reads what an arm has written, digests and counts it, and returns the number of statements.
    pub(crate) fn drain(&mut self, arm: Arm) -> Result<u64> {
        if let (Arm::Reference, Some(reference)) = (arm, &mut self.reference) {
            return reference.drain();
        }
        let books = self.books.clone();
        let mut books = books.borrow_mut();
        let before = books.interval().statements;
        if let Some(tap) = self.tap(arm) {
            tap.drain(Amount::UpToNow, |statement| {
                books.count(statement);
            });
        }
        Ok(books.interval().statements - before)
    }

    /// Statements that an arm has lost since it was attached.
    pub(crate) fn lost(&mut self, arm: Arm) -> u64 {
        if let (Arm::Reference, Some(reference)) = (arm, &self.reference) {
            return reference.lost();
        }
        let pid = self.pid();
        self.tap(arm).map_or(0, |tap| tap.losses(pid).statements())
    }

    /// How often the programs of an arm ran and how long, while the kernel's statistics are on.
    pub(crate) fn run_time(&mut self, arm: Arm) -> (u64, Duration) {
        if let (Arm::Reference, Some(reference)) = (arm, &self.reference) {
            return reference.run_time();
        }
        self.tap(arm).map_or((0, Duration::ZERO), |tap| {
            let [replies, switches] = [tap.run_time(), tap.waits_run_time()];
            (replies.runs + switches.runs, replies.time + switches.time)
        })
    }
}
