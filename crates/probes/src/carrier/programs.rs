//! Programs that stand beside those of the tap: they serve the same servers.

use std::collections::{HashMap, HashSet};

use libbpf_rs::{Link, Object};

use super::CarrierError;

/// The programs of one probe: those of a layout are loaded for its first server, and unloaded after its last.
#[derive(Default)]
pub(crate) struct Programs {
    /// By the number of the programs of the tap.
    loaded: HashMap<u32, Loaded>,
}

struct Loaded {
    _object: Object,
    _links: Vec<Link>,
    pids: HashSet<u32>,
}

impl Programs {
    /// Serves a server by the programs of this number. `load` gives them to the kernel where they are not there yet.
    pub(crate) fn serve(
        &mut self,
        pid: u32,
        number: u32,
        load: impl FnOnce() -> Result<(Object, Vec<Link>), CarrierError>,
    ) -> Result<(), CarrierError> {
        self.leave(pid);
        if let Some(loaded) = self.loaded.get_mut(&number) {
            loaded.pids.insert(pid);
            return Ok(());
        }
        let (_object, _links) = load()?;
        self.loaded.insert(number, Loaded { _object, _links, pids: HashSet::from([pid]) });
        Ok(())
    }

    /// Serves it no more.
    pub(crate) fn leave(&mut self, pid: u32) {
        self.loaded.retain(|_, loaded| {
            loaded.pids.remove(&pid);
            !loaded.pids.is_empty()
        });
    }
}
