//! What is attached to the server and taken away again.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};
use waggle_account::{Books, Grouping};
use waggle_probes::capture::{Amount, Tap};
use waggle_probes::servers::discover::servers;
use waggle_probes::servers::recognise::{Builds, Recognised};

use crate::arm::Arm;
use crate::reference::Reference;

/// Finds a server.
pub(crate) fn recognised(pid: u32) -> Result<Recognised> {
    let found = servers(Path::new("/proc")).into_iter().find(|found| found.pid == pid);
    let found = found.with_context(|| format!("process {pid} is not a server"))?;
    Ok(Builds::default().with_waits().recognise(&found)?)
}

/// An arm that cannot be used here, and why.
pub(crate) struct Refused {
    pub(crate) arm: Arm,
    pub(crate) why: String,
}

/// Attaches and detaches every arm once. Gives those that can be tried, and those that cannot.
pub(crate) fn tried_once(target: &Recognised, wanted: &[Arm]) -> (Vec<Arm>, Vec<Refused>) {
    let (mut usable, mut refused) = (Vec::new(), Vec::new());
    for arm in wanted {
        let attached = Subject::load(target, *arm).and_then(|mut subject| {
            subject.attach()?;
            subject.detach();
            Ok(())
        });
        match attached {
            Ok(()) => usable.push(*arm),
            Err(error) => refused.push(Refused { arm: *arm, why: format!("{error:#}") }),
        }
    }
    (usable, refused)
}

/// One arm, loaded as far as that is possible before it is attached.
pub(crate) struct Subject<'a> {
    target: &'a Recognised,
    programs: Programs,
    /// It counts every statement, as `waggle watch` does.
    books: Rc<RefCell<Books>>,
}

enum Programs {
    Tap(Box<Tap>),
    Pair(Reference),
}

impl Subject<'_> {
    /// Loads it.
    pub(crate) fn load(target: &Recognised, arm: Arm) -> Result<Subject<'_>> {
        let books = Rc::new(RefCell::new(Books::open(&target.server, Grouping::Digest, 0)));
        let programs = match arm.tap() {
            Some(options) => Programs::Tap(Box::new(Tap::new(options)?)),
            None => Programs::Pair(Reference::load(target.layout.flavour, books.clone())?),
        };
        Ok(Subject { target, programs, books })
    }

    /// Attaches it.
    pub(crate) fn attach(&mut self) -> Result<()> {
        let Recognised { instance, layout, .. } = self.target;
        match &mut self.programs {
            Programs::Tap(tap) => Ok(tap.attach(instance, layout).map(drop)?),
            Programs::Pair(pair) => pair.attach(instance.pid),
        }
    }

    /// Detaches it: nothing of it stays in the kernel's path.
    pub(crate) fn detach(&mut self) {
        match &mut self.programs {
            Programs::Tap(tap) => drop(tap.detach(self.target.instance.pid)),
            Programs::Pair(pair) => pair.detach(),
        }
    }

    /// Reads what it has written, digests and counts it, and returns the number of statements.
    pub(crate) fn drain(&mut self) -> Result<u64> {
        let tap = match &mut self.programs {
            Programs::Tap(tap) => tap,
            Programs::Pair(pair) => return pair.drain(),
        };
        let mut books = self.books.borrow_mut();
        let before = books.interval().statements;
        tap.drain(Amount::UpToNow, |statement| {
            books.count(statement);
        });
        Ok(books.interval().statements - before)
    }

    /// Statements that it has lost since it was attached.
    pub(crate) fn lost(&self) -> u64 {
        match &self.programs {
            Programs::Tap(tap) => tap.losses(self.target.instance.pid).statements(),
            Programs::Pair(pair) => pair.lost(),
        }
    }
}
