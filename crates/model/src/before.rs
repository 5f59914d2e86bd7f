//! What clients wait for before any statement of theirs has begun: no latency has it.

use crate::{Age, Reading};

/// Logins under way at one moment: clients that have connected and are not in yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logins {
    /// How many.
    pub under_way: usize,
    /// For how long the oldest is under way; `None` where there is none.
    pub oldest: Option<Age>,
}

/// What lies in the sockets of a server at one moment and nobody there has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Connections whose client has sent something that waits.
    pub requests: usize,
    /// For how long the oldest waits; `None` where none does, or since when is not known: of those by unix socket.
    pub oldest: Option<Age>,
    /// Connections that are made and not accepted.
    pub to_accept: usize,
}

impl Logins {
    /// In words; `None` where there is nothing to tell.
    pub fn in_words(of: &Reading<Logins>) -> Option<String> {
        match of.value() {
            None => Some("logins under way not known".to_owned()),
            Some(Logins { under_way: 0, .. }) => None,
            Some(Logins { under_way, oldest }) => Some(format!(
                "{} under way{}",
                count(*under_way, "login"),
                oldest_in_words(*oldest)
            )),
        }
    }
}

impl Unread {
    /// In words; nothing where there is nothing to tell.
    pub fn in_words(of: &Reading<Unread>) -> Vec<String> {
        let Some(unread) = of.value() else {
            return vec!["unread requests not known".to_owned()];
        };
        let waits = |many: usize| if many == 1 { "waits" } else { "wait" };
        let Unread { requests, oldest, to_accept } = *unread;
        let requests = (requests > 0).then(|| {
            let oldest = oldest_in_words(oldest);
            format!("{} {} unread{oldest}", count(requests, "request"), waits(requests))
        });
        let to_accept = (to_accept > 0).then(|| {
            format!("{} {} to be accepted", count(to_accept, "connection"), waits(to_accept))
        });
        requests.into_iter().chain(to_accept).collect()
    }
}

fn count(many: usize, what: &str) -> String {
    let plural = if many == 1 { "" } else { "s" };
    format!("{many} {what}{plural}")
}

fn oldest_in_words(oldest: Option<Age>) -> String {
    oldest.map_or_else(String::new, |age| format!(", the oldest for {age}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_told_and_what_is_not_known_too() {
        let logins = |under_way, s: u64| {
            let oldest = Some(Age { ns: s * 1_000_000_000, is_at_least: false });
            Logins::in_words(&Reading::Value(Logins { under_way, oldest }))
        };
        assert_eq!(logins(30, 12).unwrap(), "30 logins under way, the oldest for 12 s");
        assert_eq!(logins(1, 2).unwrap(), "1 login under way, the oldest for 2.0 s");
        assert_eq!(Logins::in_words(&Reading::Value(Logins::default())), None);
        assert!(Logins::in_words(&Reading::absent("no")).unwrap().contains("not known"));
        let oldest = Some(Age { ns: 4_800_000_000, is_at_least: true });
        let unread = Unread { requests: 20, oldest, to_accept: 5 };
        let words = [
            "20 requests wait unread, the oldest for 4.8 s at least",
            "5 connections wait to be accepted",
        ];
        assert_eq!(Unread::in_words(&Reading::Value(unread)), words);
        let one = Unread { requests: 1, to_accept: 1, oldest: None };
        let words = ["1 request waits unread", "1 connection waits to be accepted"];
        assert_eq!(Unread::in_words(&Reading::Value(one)), words);
        assert!(Unread::in_words(&Reading::Value(Unread::default())).is_empty());
        assert!(Unread::in_words(&Reading::absent("no"))[0].contains("not known"));
    }
}
