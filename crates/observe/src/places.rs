//! Who may have how many of the places in the kernel's list of watched servers.
//!
//! Every program of another layout runs at every send of the host, so other users have few of these, too.

use waggle_probes::servers::CurrentThdAt;
use waggle_probes::servers::layout::Layout;
use waggle_probes::servers::owner::Owner;

/// Servers of one user other than root, mysql and the one who runs waggle, and of all such users: a quarter and
/// three quarters of the places.
const SERVERS_OF_ONE: usize = 64;
const SERVERS_OF_OTHERS: usize = 192;
/// The same of builds with a layout of their own.
const BUILDS_OF_ONE: usize = 8;
const BUILDS_OF_OTHERS: usize = 24;

/// A server that has a place, or asks for one.
pub(crate) struct Place<'a> {
    pub(crate) owner: Owner,
    pub(crate) layout: &'a Layout,
    pub(crate) current_thd: CurrentThdAt,
}

impl Place<'_> {
    /// Whether one program in the kernel may serve both.
    fn is_like(&self, other: &Place<'_>) -> bool {
        self.current_thd == other.current_thd && self.layout.fields == other.layout.fields
    }
}

/// Why a server gets no place; `None` if it may have one. `taken` are the places of the others.
pub(crate) fn refusal<'a>(
    taken: impl Iterator<Item = Place<'a>>,
    asked: &Place<'_>,
) -> Option<String> {
    if asked.owner.is_trusted() {
        return None;
    }
    let others: Vec<Place<'_>> = taken.filter(|place| !place.owner.is_trusted()).collect();
    let of_user: Vec<&Place<'_>> = others.iter().filter(|it| it.owner == asked.owner).collect();
    let owner = asked.owner;
    let why = if of_user.len() >= SERVERS_OF_ONE {
        format!("{SERVERS_OF_ONE} servers of {owner} are watched already, the most of one user")
    } else if others.len() >= SERVERS_OF_OTHERS {
        format!("{SERVERS_OF_OTHERS} servers of other users are watched already, the most of all")
    } else if others.iter().any(|place| place.is_like(asked)) {
        return None;
    } else if builds(of_user.into_iter()) >= BUILDS_OF_ONE {
        format!(
            "{BUILDS_OF_ONE} different builds of {owner} are watched already, the most of one user"
        )
    } else if builds(others.iter()) >= BUILDS_OF_OTHERS {
        format!(
            "{BUILDS_OF_OTHERS} different builds of other users are watched already, the most of all"
        )
    } else {
        return None;
    };
    Some(format!(
        "{why} beside root, mysql and the one who runs waggle; choose this server with --pid"
    ))
}

/// How many different ones there are.
fn builds<'a, 'b: 'a>(places: impl Iterator<Item = &'a Place<'b>>) -> usize {
    let mut different: Vec<&Place<'_>> = Vec::new();
    for place in places {
        if !different.iter().any(|other| other.is_like(place)) {
            different.push(place);
        }
    }
    different.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use waggle_model::{BuildKey, Clock, Flavour, Reading};
    use waggle_probes::servers::layout::{ContextStrings, DiagnosticsCodes, Field, Place as At};

    use super::*;

    const CURRENT: CurrentThdAt = CurrentThdAt::ThreadLocal { offset: -8 };

    fn layout(offset: u32) -> Layout {
        let place = Reading::Value(At { offset, how: String::new() });
        Layout {
            build: BuildKey("any".into()),
            flavour: Flavour::Mariadb,
            version: "11".into(),
            current_thd: Reading::absent("any"),
            fields: BTreeMap::from([(Field::Command, place)]),
            clock: Clock::Monotonic,
            lock_time: Reading::absent("any"),
            context_strings: ContextStrings::ZeroEnded,
            diagnostics: DiagnosticsCodes::of(Flavour::Mariadb),
        }
    }

    /// How many of 300 servers get a place; each user has that many builds.
    fn admitted(users: u32, builds: u32) -> (Vec<(Owner, u32)>, String) {
        let layouts: Vec<Layout> = (0..builds).map(layout).collect();
        let mut taken: Vec<(Owner, u32)> = Vec::new();
        let mut last = String::new();
        for number in 0..300 {
            let (owner, build) = (Owner::Other(1000 + number % users), number / users % builds);
            let place = |(owner, build): &(Owner, u32)| Place {
                owner: *owner,
                layout: &layouts[*build as usize],
                current_thd: CURRENT,
            };
            match refusal(taken.iter().map(place), &place(&(owner, build))) {
                None => taken.push((owner, build)),
                Some(why) => last = why,
            }
        }
        (taken, last)
    }

    #[test]
    fn one_user_and_all_together_leave_places() {
        let (one, why) = admitted(1, 1);
        assert_eq!(one.len(), SERVERS_OF_ONE);
        assert!(why.contains("uid 1000") && why.contains("--pid"), "{why}");
        let (all, why) = admitted(10, 1);
        assert_eq!(all.len(), SERVERS_OF_OTHERS);
        assert!(why.contains("other users"), "{why}");
    }

    #[test]
    fn a_container_has_places_of_its_own() {
        let layout = layout(8);
        let place = |container| Place {
            owner: Owner::Contained { uid: 999, container },
            layout: &layout,
            current_thd: CURRENT,
        };
        let full = || (0..SERVERS_OF_ONE).map(|_| place(1));
        assert!(refusal(full(), &place(1)).unwrap().contains("uid 999 of a container"));
        assert_eq!(refusal(full(), &place(2)), None);
        let many = (0..SERVERS_OF_OTHERS as u64).map(place);
        assert!(refusal(many, &place(1)).unwrap().contains("other users"));
    }

    #[test]
    fn who_brings_many_builds_gets_few_programs_into_the_kernel() {
        let builds = |taken: &[(Owner, u32)]| {
            taken.iter().map(|(_, build)| *build).collect::<std::collections::BTreeSet<_>>().len()
        };
        let (one, why) = admitted(1, 300);
        assert_eq!(builds(&one), BUILDS_OF_ONE);
        assert!(why.contains("different builds"), "{why}");
        let (all, _) = admitted(30, 10);
        assert!(builds(&all) <= BUILDS_OF_OTHERS);
    }

    #[test]
    fn a_trusted_server_always_gets_a_place() {
        let layout = layout(8);
        let place = |owner| Place { owner, layout: &layout, current_thd: CURRENT };
        let taken = (0..256).map(|uid| place(Owner::Other(uid)));
        assert_eq!(refusal(taken, &place(Owner::Trusted)), None);
    }
}
