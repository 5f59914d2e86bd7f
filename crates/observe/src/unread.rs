//! What clients have sent and a server has not read, and connections that it has not accepted, from look to look.

use std::collections::HashMap;
use std::time::Duration;

use waggle_host::{Listener, NoQueues, Process, Queues, UnreadSocket, monotonic_ns};
use waggle_model::{Age, Reading, Unread};

/// It is looked at most as often, also where intervals are shorter.
const LOOK_EVERY: Duration = Duration::from_millis(900);
/// How often it is looked where the server listens, as soon as two lists one after the other are equal: it opens its
/// sockets one by one when it starts, and no other while it runs.
const LISTENERS_EVERY: Duration = Duration::from_secs(30);
/// What fails is asked again after one look, after two, four, and so on, and at last after as many: what refuses once
/// mostly refuses on, and asking costs.
const FAILED_LOOKS_MAX: u32 = 60;
/// What lies unread as long, without more coming, waits. Less is a request that is about to be read.
const WAITS_FROM: Duration = Duration::from_millis(100);
/// Of a unix socket the kernel does not say since when. As many looks, one after the other, must see the same bytes
/// unread: at two of them another request of the same length may just have come. Since when it waits is told of none:
/// it need not be the same request at all of them.
const LOOKS: u32 = 3;

/// Looks at the sockets of one server.
pub struct UnreadBook {
    pid: u32,
    listed: Option<Listed>,
    /// What lay unread at the look before, by the inode of the socket.
    seen: HashMap<u64, Lying>,
    /// Looks one after the other that were answered.
    looks: u32,
    failures: Failures,
    last: Option<(u64, Reading<Unread>)>,
}

/// Where a server listens.
#[derive(Debug)]
struct Listed {
    /// When that was looked up, nanoseconds of `CLOCK_MONOTONIC`.
    at_ns: u64,
    listeners: Vec<Listener>,
    /// It was so at the list before, too.
    is_settled: bool,
}

/// Looks that failed one after the other.
#[derive(Debug, Default)]
struct Failures {
    wait: u32,
    to_skip: u32,
}

/// Bytes that nobody reads, and at how many looks they were seen.
#[derive(Clone, Copy, Debug)]
struct Lying {
    bytes: u32,
    looks: u32,
}

impl UnreadBook {
    /// Begins with a server.
    pub fn open(pid: u32) -> UnreadBook {
        UnreadBook {
            pid,
            listed: None,
            seen: HashMap::new(),
            looks: 0,
            failures: Failures::default(),
            last: None,
        }
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
        let unread = match (&self.last, self.failures.skip()) {
            (Some((_, failed)), true) => failed.clone(),
            _ => self.ask(now_ns),
        };
        self.last = Some((now_ns, unread.clone()));
        unread
    }

    fn ask(&mut self, now_ns: u64) -> Reading<Unread> {
        match self.queues(now_ns) {
            Reading::Value(queues) => {
                self.failures = Failures::default();
                self.unread(&queues)
            }
            Reading::Absent(why) => {
                self.failures.add();
                (self.looks, self.seen) = (0, HashMap::new());
                Reading::Absent(why)
            }
        }
    }

    fn queues(&mut self, now_ns: u64) -> Reading<Queues> {
        let process = Process::of(self.pid);
        let listed = match self.listed.take() {
            Some(listed) if listed.holds(now_ns) => listed,
            before => match process.listeners() {
                Reading::Value(listeners) => Listed::of(listeners, before.as_ref(), now_ns),
                Reading::Absent(why) => return Reading::Absent(why),
            },
        };
        if listed.listeners.is_empty() {
            return Reading::absent("the server listens nowhere, as while it starts");
        }
        let queues = process.queues(&listed.listeners);
        if queues != Err(NoQueues::NotFound) {
            self.listed = Some(listed);
        }
        queues.map_or_else(|why| Reading::absent(why.to_string()), Reading::Value)
    }

    fn unread(&mut self, queues: &Queues) -> Reading<Unread> {
        let before = std::mem::take(&mut self.seen);
        self.looks = self.looks.saturating_add(1);
        let (mut requests, mut may_wait, mut ages) = (0, false, Vec::new());
        for socket in &queues.unread {
            let lying = Lying::go_on(socket, before.get(&socket.inode));
            self.seen.insert(socket.inode, lying);
            match socket.quiet_for {
                Some(quiet_for) if quiet_for >= WAITS_FROM => ages.push(at_least(quiet_for)),
                None if lying.looks >= LOOKS => requests += 1,
                // It lies there since before the first look.
                None if lying.looks == self.looks => may_wait = true,
                _ => {}
            }
        }
        if may_wait {
            return Reading::absent(format!(
                "by unix socket a request waits where {LOOKS} looks see it; this is number {}",
                self.looks
            ));
        }
        requests += ages.len();
        Reading::Value(Unread { requests, oldest: Age::oldest(ages), to_accept: queues.to_accept })
    }
}

impl Listed {
    fn of(listeners: Vec<Listener>, before: Option<&Listed>, at_ns: u64) -> Listed {
        let is_settled = before.is_some_and(|before| before.listeners == listeners);
        Listed { at_ns, listeners, is_settled }
    }

    fn holds(&self, now_ns: u64) -> bool {
        self.is_settled && !has_passed(LISTENERS_EVERY, self.at_ns, now_ns)
    }
}

impl Failures {
    fn add(&mut self) {
        self.wait = (2 * self.wait).clamp(1, FAILED_LOOKS_MAX);
        self.to_skip = self.wait - 1;
    }

    /// Whether this look is left out.
    fn skip(&mut self) -> bool {
        let left = self.to_skip.checked_sub(1);
        self.to_skip = left.unwrap_or(0);
        left.is_some()
    }
}

impl Lying {
    fn go_on(socket: &UnreadSocket, before: Option<&Lying>) -> Lying {
        let before = before.filter(|before| before.bytes == socket.bytes);
        let looks = before.map_or(0, |before| before.looks).saturating_add(1);
        Lying { bytes: socket.bytes, looks }
    }
}

fn at_least(time: Duration) -> Age {
    Age { ns: time.as_nanos().try_into().unwrap_or(u64::MAX), is_at_least: true }
}

fn has_passed(time: Duration, since_ns: u64, now_ns: u64) -> bool {
    u128::from(now_ns.saturating_sub(since_ns)) >= time.as_nanos()
}

#[cfg(test)]
mod tests {
    use waggle_host::Endpoint;

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
        let told = book.unread(&queues(&[tcp(1, 4_800), tcp(2, 2_000), tcp(3, 3)]));
        let oldest = Some(Age { ns: 4_800_000_000, is_at_least: true });
        assert_eq!(told, Reading::Value(Unread { requests: 2, oldest, to_accept: 5 }));
    }

    #[test]
    fn by_unix_socket_three_looks_must_see_the_same_bytes_and_before_the_number_is_not_known() {
        let mut book = UnreadBook::open(1);
        let mut requests = |unread: &[UnreadSocket]| {
            let told = book.unread(&queues(unread)).into_value()?;
            assert_eq!(told.oldest, None, "it need not be the same request");
            Some(told.requests)
        };
        assert_eq!(requests(&[unix(1, 20), unix(2, 20)]), None);
        assert_eq!(requests(&[unix(1, 20), unix(2, 21)]), None);
        assert_eq!(requests(&[unix(1, 20), unix(2, 21)]), Some(1));
        assert_eq!(requests(&[unix(1, 20), unix(2, 21)]), Some(2));
        assert_eq!(requests(&[]), Some(0));
        assert_eq!(requests(&[unix(1, 20)]), Some(0), "it was read in between");
    }

    #[test]
    fn what_comes_by_unix_socket_after_the_first_look_does_not_wait_yet() {
        let mut book = UnreadBook::open(1);
        book.unread(&queues(&[]));
        for requests in [0, 0, 1] {
            let told = book.unread(&queues(&[unix(1, 20)])).into_value().unwrap();
            assert_eq!(told.requests, requests);
        }
    }

    #[test]
    fn a_look_that_fails_clears_what_was_seen() {
        let mut book = UnreadBook::open(u32::MAX);
        for _ in 0..2 {
            book.unread(&queues(&[unix(1, 20)]));
        }
        assert!(book.look(SECOND).why().is_some());
        let why = book.unread(&queues(&[unix(1, 20)])).why().map(str::to_owned);
        assert!(why.unwrap().contains("this is number 1"));
    }

    #[test]
    fn what_fails_is_asked_again_more_and_more_rarely() {
        let mut failures = Failures::default();
        let asked = (0..200).filter(|_| {
            let asks = !failures.skip();
            if asks {
                failures.add();
            }
            asks
        });
        assert_eq!(asked.collect::<Vec<_>>(), [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        let mut book = UnreadBook::open(u32::MAX);
        let whys = (0..3).map(|at| book.look(at * SECOND).why().map(str::to_owned));
        let whys: Vec<Option<String>> = whys.collect();
        assert!(whys[0].is_some() && whys.iter().all(|why| *why == whys[0]), "{whys:?}");
        assert_eq!(book.failures.to_skip, 0, "the third was left out");
    }

    #[test]
    fn where_a_server_listens_is_listed_until_two_lists_are_equal_and_then_rarely() {
        let one = |inode| Listener { endpoint: Endpoint::Unix("/s".into()), inode };
        let first = Listed::of(vec![one(1)], None, 0);
        assert!(!first.holds(0));
        let more = Listed::of(vec![one(1), one(2)], Some(&first), SECOND);
        assert!(!more.holds(SECOND));
        let settled = Listed::of(more.listeners.clone(), Some(&more), 2 * SECOND);
        assert!(settled.holds(31 * SECOND) && !settled.holds(32 * SECOND));
        let again = Listed::of(more.listeners.clone(), Some(&settled), 32 * SECOND);
        assert!(again.holds(33 * SECOND));
    }

    #[test]
    fn the_list_goes_where_a_listener_was_not_found() {
        let mut book = UnreadBook::open(std::process::id());
        let open = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!((0..2).all(|at| book.look(at * SECOND).value().is_some()));
        let listed = book.listed.as_mut().unwrap();
        assert!(listed.is_settled);
        listed.listeners.iter_mut().for_each(|one| one.inode = 0);
        assert!(book.look(2 * SECOND).why().unwrap().contains("was found"));
        assert!(book.listed.is_none());
        drop(open);
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
