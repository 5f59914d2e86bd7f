//! From a process that was found to a server that can be watched.

use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;
use waggle_model::{BuildKey, Server};

use super::discover::Found;
use super::elf::{Elf, ElfError};
use super::layout::Layout;
use super::{Instance, InstanceError};

/// A server with all that is needed to watch it.
#[derive(Clone, Debug)]
pub struct Recognised {
    /// Who it is.
    pub server: Server,
    /// Its build.
    pub layout: Arc<Layout>,
    /// Its process.
    pub instance: Instance,
}

/// Why a server cannot be watched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecogniseError {
    /// Its executable cannot be read or is none that we know.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// Its process cannot be read.
    #[error(transparent)]
    Instance(#[from] InstanceError),
}

/// The builds that were met, each read once.
#[derive(Debug, Default)]
pub struct Builds {
    layouts: HashMap<BuildKey, Arc<Layout>>,
}

impl Builds {
    /// Recognises a server: reads its build, if it is new, and resolves it in this process.
    ///
    /// # Errors
    ///
    /// Where the executable or the process cannot be read, with the remedy.
    pub fn recognise(&mut self, found: &Found) -> Result<Recognised, RecogniseError> {
        let elf = Elf::open(&found.executable_file())?;
        let layout = match self.layouts.get(elf.build()) {
            Some(known) => known.clone(),
            None => {
                let derived = Arc::new(Layout::derive(&elf)?);
                self.layouts.insert(elf.build().clone(), derived.clone());
                derived
            }
        };
        let instance = Instance::resolve(found.pid, found.start_ticks, &elf, &layout)?;
        let executable = found.executable.value().cloned();
        let server = Server {
            pid: found.pid,
            start_ticks: found.start_ticks,
            flavour: layout.flavour,
            version: layout.version.clone(),
            build: layout.build.clone(),
            executable: executable.unwrap_or_else(|| found.executable_file()),
        };
        Ok(Recognised { server, layout, instance })
    }
}
