//! The reference: a breakpoint at the start and one at the return of `dispatch_command`.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Context, Result, anyhow};
use libbpf_rs::{
    Link, MapCore, MapFlags, Object, ObjectBuilder, ProgramMut, RingBuffer, RingBufferBuilder,
    UprobeOpts,
};
use waggle_account::Books;
use waggle_model::{Command, Flavour, Identity, Statement, Text};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/reference.bpf.o"));
/// The names of the two programs in `mod.bpf.c`.
const PROGRAMS: [&str; 2] = ["on_dispatch", "on_dispatched"];
/// Where in a record of `mod.bpf.c` the command, the length of the text and the text begin.
const COMMAND_AT: usize = 16;
const LENGTH_AT: usize = 20;
const TEXT_AT: usize = 24;
/// The breakpoints do not look for the session.
const NOBODY: Identity = Identity { user: None, host: None, database: None };

/// The two programs, loaded, and the reader of what they write.
pub(crate) struct Reference {
    object: Object,
    ring: RingBuffer<'static>,
    links: Vec<Link>,
    symbol: &'static str,
    books: Rc<RefCell<Books>>,
}

impl Reference {
    /// Loads the programs for servers of a family; nothing is attached yet.
    pub(crate) fn load(flavour: Flavour, books: Rc<RefCell<Books>>) -> Result<Reference> {
        // Libbpf wants the bytes aligned, which a fresh allocation is.
        let aligned = OBJECT.to_vec();
        let mut open = ObjectBuilder::default().open_memory(&aligned)?;
        let is_mariadb = flavour == Flavour::Mariadb;
        for mut map in open.maps_mut() {
            if map.name().to_string_lossy().ends_with(".rodata") {
                let constants = map.initial_value_mut().context("the object has no constants")?;
                // `text_in_arguments` is the only one.
                constants[..4].copy_from_slice(&u32::from(is_mariadb).to_ne_bytes());
            }
        }
        let object = open.load().context("the reference programs")?;
        let mut builder = RingBufferBuilder::new();
        let map = object.maps().find(|map| map.name() == "ring").context("no ring")?;
        let counted = books.clone();
        builder.add(&map, move |record| {
            count(&mut counted.borrow_mut(), record);
            0
        })?;
        let ring = builder.build()?;
        let symbol = if is_mariadb {
            "_Z16dispatch_command19enum_server_commandP3THDPcjb"
        } else {
            "_Z16dispatch_commandP3THDPK8COM_DATA19enum_server_command"
        };
        Ok(Reference { object, ring, links: Vec::new(), symbol, books })
    }

    /// Sets both breakpoints in one server.
    pub(crate) fn attach(&mut self, pid: u32) -> Result<()> {
        for (name, retprobe) in PROGRAMS.into_iter().zip([false, true]) {
            let options = UprobeOpts {
                func_name: Some(self.symbol.to_owned()),
                retprobe,
                ..Default::default()
            };
            let pid = i32::try_from(pid)?;
            let link = self
                .program(name)?
                .attach_uprobe_with_opts(pid, format!("/proc/{pid}/exe"), 0, options)
                .with_context(|| format!("uprobe on {}", self.symbol))?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Takes both breakpoints away.
    pub(crate) fn detach(&mut self) {
        self.links.clear();
    }

    /// Counts what was written and returns the number of statements.
    pub(crate) fn drain(&mut self) -> Result<u64> {
        let before = self.books.borrow().interval().statements;
        self.ring.consume().context("the ring of the reference")?;
        Ok(self.books.borrow().interval().statements - before)
    }

    /// Records that did not fit.
    pub(crate) fn lost(&self) -> u64 {
        let bss = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let bytes = bss.and_then(|map| map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()?);
        bytes.and_then(|bytes| number(&bytes, 0)).unwrap_or(0)
    }

    fn program(&self, name: &str) -> Result<ProgramMut<'_>> {
        let found = self.object.progs_mut().find(|program| program.name() == name);
        found.ok_or_else(|| anyhow!("the object has no program {name}"))
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Counts what a record tells of a statement.
fn count(books: &mut Books, record: &[u8]) {
    let (Some(start_ns), Some(end_ns)) = (number(record, 0), number(record, 8)) else { return };
    let Some(command) = half(record, COMMAND_AT) else { return };
    let length = half(record, LENGTH_AT).unwrap_or(0) as usize;
    let bytes = record.get(TEXT_AT..TEXT_AT + length).unwrap_or_default();
    books.count(&Statement {
        command: Some(Command(command as u8)),
        latency_ns: Some(end_ns.saturating_sub(start_ns)),
        text: (!bytes.is_empty()).then_some(Text { bytes, length: bytes.len() as u64 }),
        ..Statement::unread(end_ns, &NOBODY)
    });
}
