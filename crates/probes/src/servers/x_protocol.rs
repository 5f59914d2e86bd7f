//! Where a server of MySQL listens for the X protocol: variables of its process that are set while it starts.
//!
//! MySQL 8 and later have the plugin in the program, and export its variables
//! (`plugin/x/src/variables/system_variables.h`; `plugin/x/src/xpl_system_variables.h` in early 8.0).

use serde::{Deserialize, Serialize};

use super::elf::{Elf, SymbolKind};
use super::{Batch, Instance, Place, ProcessMemory};

/// `unsigned int`, by the name of later builds and of early ones.
const PORT: [&str; 2] =
    ["_ZN3xpl23Plugin_system_variables6m_portE", "_ZN3xpl23Plugin_system_variables4portE"];
/// `char *`, likewise.
const SOCKET: [&str; 2] =
    ["_ZN3xpl23Plugin_system_variables8m_socketE", "_ZN3xpl23Plugin_system_variables6socketE"];
/// Longest path of a unix socket (unix(7)), bytes.
const SOCKET_MAX: u32 = 107;

/// The addresses of the variables; none where a build has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct XProtocol {
    port: Option<u64>,
    socket: Option<u64>,
}

/// Where clients of the X protocol are accepted, if any are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XEndpoint {
    /// The TCP port; 0: none.
    pub port: u16,
    /// The path of the unix socket; empty: none.
    pub socket: Vec<u8>,
}

impl XProtocol {
    /// As the file states them.
    pub fn of_file(elf: &Elf) -> XProtocol {
        let variable = |names: [&str; 2]| {
            let found = names.into_iter().find_map(|name| elf.symbol(name))?;
            (found.kind == SymbolKind::Object).then_some(found.address)
        };
        XProtocol { port: variable(PORT), socket: variable(SOCKET) }
    }

    /// The same in a process.
    pub(super) fn in_process(self, instance: &Instance) -> XProtocol {
        let there = |address: u64| instance.load_bias.wrapping_add(address);
        XProtocol { port: self.port.map(there), socket: self.socket.map(there) }
    }

    /// What they hold now: a server that starts has not read its options yet.
    pub fn read(&self, pid: u32) -> XEndpoint {
        let mut memory = ProcessMemory::of(pid);
        let mut number = |address: Option<u64>, length: usize| {
            let bytes = memory.read_one(Place::new(address?, length as u64)).ok()??;
            let mut number = [0; 8];
            number.get_mut(..length)?.copy_from_slice(&bytes);
            Some(u64::from_le_bytes(number))
        };
        let port = number(self.port, 4).and_then(|port| port.try_into().ok()).unwrap_or(0);
        let socket = number(self.socket, 8).filter(|address| *address != 0);
        let socket = socket.and_then(|address| {
            let mut batch = Batch::default();
            for place in Place::zero_ended(address, SOCKET_MAX) {
                batch.add(place);
            }
            memory.read(&mut batch).ok()?;
            batch.zero_ended(0).map(<[u8]>::to_vec)
        });
        XEndpoint { port, socket: socket.unwrap_or_default() }
    }
}
