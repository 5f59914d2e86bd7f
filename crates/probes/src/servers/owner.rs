//! Who runs a server. Everybody can start a process that looks like one: those of some users come first,
//! and the others share what is left.

use std::fmt;

use waggle_host::{Process, user_id, user_name};

/// The user of the servers that the packages of all distributions install.
const USUAL_USER: &str = "mysql";

/// The user of a process, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// Root, the user `mysql`, or the user who runs waggle.
    Trusted,
    /// Any other.
    Other(u32),
    /// Any other, in a container.
    Contained {
        /// The user, as this host counts.
        uid: u32,
        /// Its pid namespace. Only who has all rights on this host can make one without a user namespace of its own: so
        /// nobody gets another share by making containers.
        container: u64,
    },
}

impl Owner {
    /// Whether its servers come first.
    pub fn is_trusted(self) -> bool {
        self == Owner::Trusted
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Trusted => out.write_str("root, mysql or the user of waggle"),
            Owner::Other(uid) => match user_name(*uid) {
                Some(name) => write!(out, "user {name} (uid {uid})"),
                None => write!(out, "uid {uid}"),
            },
            // What the user is called in there is not what it is called here.
            Owner::Contained { uid, container } => {
                write!(out, "uid {uid} of a container (pid namespace {container})")
            }
        }
    }
}

/// The users whose servers come first.
#[derive(Clone, Debug)]
pub struct Owners {
    trusted: Vec<u32>,
}

impl Owners {
    /// Those of this host.
    pub fn of_host() -> Owners {
        let ours = rustix::process::geteuid().as_raw();
        Owners { trusted: [0, ours].into_iter().chain(user_id(USUAL_USER)).collect() }
    }

    /// Who runs a process. It has three user ids, and may change between them: the least trusted counts.
    pub fn owner(&self, pid: u32) -> Owner {
        let process = Process::of(pid);
        // It has ended, or may not be looked at.
        let Some(ids) = process.user_ids().value().copied() else { return Owner::Other(u32::MAX) };
        match self.of_ids(ids) {
            Owner::Other(uid) => match process.container() {
                Some(container) => Owner::Contained { uid, container },
                None => Owner::Other(uid),
            },
            trusted => trusted,
        }
    }

    fn of_ids(&self, ids: [u32; 3]) -> Owner {
        let other = ids.into_iter().find(|id| !self.trusted.contains(id));
        other.map_or(Owner::Trusted, Owner::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_trusted_of_three_ids_counts() {
        let owners = Owners { trusted: vec![0, 112] };
        assert_eq!(owners.of_ids([0, 0, 0]), Owner::Trusted);
        assert_eq!(owners.of_ids([0, 112, 0]), Owner::Trusted);
        // A program of root that a user starts (setuid).
        assert_eq!(owners.of_ids([1000, 0, 0]), Owner::Other(1000));
        assert_eq!(owners.of_ids([0, 65534, 0]), Owner::Other(65534));
    }

    #[test]
    fn a_process_of_ours_is_trusted_and_one_that_is_gone_is_not() {
        let owners = Owners::of_host();
        assert!(owners.owner(std::process::id()).is_trusted());
        assert!(!owners.owner(u32::MAX).is_trusted());
    }
}
