//! A cost of known size per statement.

use anyhow::{Context, Result};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/injection.bpf.o"));

/// The program, attached. It is gone when it is dropped.
pub(crate) struct Injection {
    object: Object,
    _link: Link,
    process: u32,
}

impl Injection {
    /// Loads and attaches it, without a cost.
    pub(crate) fn attach(process: u32) -> Result<Injection> {
        // Libbpf wants the bytes aligned, which a fresh allocation is.
        let aligned = OBJECT.to_vec();
        let object = ObjectBuilder::default().open_memory(&aligned)?.load();
        let object = object.context("the program that injects a cost cannot be loaded")?;
        let program = object.progs_mut().find(|program| program.name() == "on_send");
        let link = program.context("the object has no program")?.attach();
        let link = link.context("the tracepoint sock_send_length, which kernels have since 6.3")?;
        let injection = Injection { object, _link: link, process };
        injection.set(0)?;
        Ok(injection)
    }

    /// Makes every statement busy for so long, ns.
    pub(crate) fn set(&self, busy_ns: u32) -> Result<()> {
        let maps = &mut self.object.maps();
        let bss = maps.find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let bss = bss.context("the object has no variables")?;
        let key = 0_u32.to_ne_bytes();
        let mut value = bss.lookup(&key, MapFlags::ANY)?.context("the variables cannot be read")?;
        // `injected` is the only variable of `mod.bpf.c`.
        value[..4].copy_from_slice(&self.process.to_ne_bytes());
        value[4..8].copy_from_slice(&busy_ns.to_ne_bytes());
        bss.update(&key, &value, MapFlags::ANY).context("the variables cannot be set")
    }
}
