//! What clients have sent and a server has not read, and connections that it has not accepted, from look to look.

use std::collections::HashMap;
use std::time::Duration;

use waggle_host::{Listener, Process, Queues, UnreadSocket, monotonic_ns};
use waggle_model::{Age, Reading, Unread};

/// It is looked at most as often, also where intervals are shorter.
const LOOK_EVERY: Duration = Duration::from_millis(900);
/// How often it is looked where the server listens. It opens no other socket while it runs, but opens them one by one
/// when it starts.
const LISTENERS_EVERY: Duration = Duration::from_secs(30);
/// What lies unread as long, without more coming, waits. Less is a request that is about to be read.
const WAITS_FROM: Duration = Duration::from_millis(100);
/// Of a unix socket the kernel does not say since when. As many looks, one after the other, must see the same bytes
/// unread: at two of them another request of the same length may just have come.
const LOOKS: u32 = 3;

/// Looks at the sockets of one server.
pub struct UnreadBook {
    pid: u32,
    /// Where it listens, and when that was looked up, nanoseconds of `CLOCK_MONOTONIC`.
    listeners: Option<(u64, Vec<Listener>)>,
    /// What lay unread at the look before, by the inode of the socket.
    seen: HashMap<u64, Lying>,
    last: Option<(u64, Reading<Unread>)>,
}

/// Bytes that nobody reads.
#[derive(Clone, Copy, Debug)]
struct Lying {
    bytes: u32,
    /// The first look that saw them, nanoseconds of `CLOCK_MONOTONIC`.
    since_ns: u64,
    looks: u32,
}

impl UnreadBook {
    /// Begins with a server.
    pub fn open(pid: u32) -> UnreadBook {
        UnreadBook { pid, listeners: None, seen: HashMap::new(), last: None }
    }

    /// What waits now; of the look before where that was just now.
    pub fn read(&mut self) -> Reading<Unread> {
        let now_ns = monotonic_ns();
        match &self.last {
            Some((at_ns, unread)) if !has_passed(LOOK_EVERY, *at_ns, now_ns) => unread.clone(),
            _ => self.look(now_ns),
        }
    }

    /// Looks, however long ago the look before was.
    pub fn look(&mut self, now_ns: u64) -> Reading<Unread> {
        let unread = self.queues(now_ns).map(|queues| self.unread(&queues, now_ns));
        self.last = Some((now_ns, unread.clone()));
        unread
    }

    fn queues(&mut self, now_ns: u64) -> Reading<Queues> {
        let process = Process::of(self.pid);
        let known = self.listeners.take();
        let known = known.filter(|(at_ns, _)| !has_passed(LISTENERS_EVERY, *at_ns, now_ns));
        let (at_ns, listeners) = match known {
            Some(known) => known,
            None => match process.listeners() {
                Reading::Value(listeners) => (now_ns, listeners),
                Reading::Absent(why) => return Reading::Absent(why),
            },
        };
        if listeners.is_empty() {
            return Reading::absent("the server listens nowhere, as while it starts");
        }
        let queues = process.queues(&listeners);
        if queues.value().is_some() {
            self.listeners = Some((at_ns, listeners));
        }
        queues
    }

    fn unread(&mut self, queues: &Queues, now_ns: u64) -> Unread {
        let before = std::mem::take(&mut self.seen);
        let mut ages = Vec::new();
        for socket in &queues.unread {
            let lying = Lying::go_on(socket, before.get(&socket.inode), now_ns);
            self.seen.insert(socket.inode, lying);
            ages.extend(lying.waits(socket, now_ns));
        }
        Unread { requests: ages.len(), oldest: Age::oldest(ages), to_accept: queues.to_accept }
    }
}

impl Lying {
    fn go_on(socket: &UnreadSocket, before: Option<&Lying>, now_ns: u64) -> Lying {
        match before {
            Some(before) if before.bytes == socket.bytes => {
                Lying { looks: before.looks + 1, ..*before }
            }
            _ => Lying { bytes: socket.bytes, since_ns: now_ns, looks: 1 },
        }
    }

    /// For how long they wait; `None` where that is not sure.
    fn waits(&self, socket: &UnreadSocket, now_ns: u64) -> Option<Age> {
        let ns = match socket.quiet_for {
            Some(quiet_for) => {
                (quiet_for >= WAITS_FROM).then(|| quiet_for.as_nanos().try_into().ok())??
            }
            None => (self.looks >= LOOKS).then(|| now_ns.saturating_sub(self.since_ns))?,
        };
        Some(Age { ns, is_at_least: true })
    }
}

fn has_passed(time: Duration, since_ns: u64, now_ns: u64) -> bool {
    u128::from(now_ns.saturating_sub(since_ns)) >= time.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn tcp(inode: u64, quiet_ms: u64) -> UnreadSocket {
        UnreadSocket { inode, bytes: 20, quiet_for: Some(Duration::from_millis(quiet_ms)) }
    }

    fn unix(inode: u64, bytes: u32) -> UnreadSocket {
        UnreadSocket { inode, bytes, quiet_for: None }
    }

    fn queues(unread: &[UnreadSocket]) -> Queues {
        Queues { unread: unread.to_vec(), to_accept: 5 }
    }

    #[test]
    fn by_tcp_a_request_waits_from_one_look_on_and_one_that_has_just_come_does_not() {
        let mut book = UnreadBook::open(1);
        let told = book.unread(&queues(&[tcp(1, 4_800), tcp(2, 2_000), tcp(3, 3)]), SECOND);
        let oldest = Some(Age { ns: 4_800_000_000, is_at_least: true });
        assert_eq!(told, Unread { requests: 2, oldest, to_accept: 5 });
    }

    #[test]
    fn by_unix_socket_three_looks_must_see_the_same_bytes() {
        let mut book = UnreadBook::open(1);
        let looks = [[unix(1, 20), unix(2, 20)], [unix(1, 20), unix(2, 21)]];
        for (at, nth) in [(1, 0), (2, 0), (3, 1)] {
            let told = book.unread(&queues(&looks[nth]), at * SECOND);
            let oldest = (at == 3).then_some(Age { ns: 2 * SECOND, is_at_least: true });
            assert_eq!(told, Unread { requests: (at == 3).into(), oldest, to_accept: 5 });
        }
        book.unread(&queues(&[]), 4 * SECOND);
        let told = book.unread(&queues(&looks[1]), 5 * SECOND);
        assert_eq!(told.requests, 0, "they were read in between");
    }

    #[test]
    fn what_cannot_be_asked_is_not_known_and_a_look_holds_for_a_while() {
        let mut gone = UnreadBook::open(u32::MAX);
        assert!(gone.read().why().is_some());
        let mut book = UnreadBook::open(u32::MAX);
        book.last = Some((monotonic_ns(), Reading::Value(Unread::default())));
        assert_eq!(book.read(), Reading::Value(Unread::default()));
        assert!(book.look(monotonic_ns()).why().is_some());
    }
}
