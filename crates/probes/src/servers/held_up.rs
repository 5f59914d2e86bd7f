//! Whose memory or files held up who looked at them. They are looked at more and more rarely, and all users other than
//! those who come first may hold up waggle for a share of the time only.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::process::Child;
use std::time::{Duration, Instant};

use waggle_host::{Process, Waited};

use super::allowance::Allowance;
use super::child::has_ended;
use super::owner::{Owner, Owners};

/// How long a look may take. It takes some ten microseconds, and longer where memory was moved to a disk; what
/// trusted users run is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
const TRUSTED_PATIENCE: Duration = Duration::from_secs(2);
/// How long who looks may have no processor, or be stopped, until another one takes its place.
const WITHHELD_MAX: Duration = Duration::from_secs(10);
/// The share of the time that other users may hold us up, and what of it can be saved up.
const SHARE: f64 = 0.01;
const SAVED_MAX_S: f64 = 1.0;
/// The first pause after a look that took too long; each next one is twice as long, up to 2^12 times. It is the first one
/// again when the process has answered for as long as it was left alone.
const PAUSE: Duration = Duration::from_secs(1);
const DOUBLED_MAX: u32 = 12;
/// Of how many it is kept.
const KEPT_MAX: usize = 4096;
/// Readers that other users may have left behind.
const LEFT_MAX: usize = 8;

/// How long one look is waited for.
pub(super) struct Patience {
    waited: Waited,
    first: Duration,
    /// The process, and whether its user is trusted: that is only asked when it matters.
    pid: Option<u32>,
    is_trusted: OnceCell<bool>,
}

/// Why a look is waited for no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Who looks is held up.
    HeldUp,
    /// Who looks does not get to run: that is not the fault of the process that it looks at.
    Withheld,
}

impl Patience {
    /// With this process, at which `reader` looks.
    pub(super) fn with(pid: u32, reader: u32) -> Patience {
        Patience { pid: Some(pid), ..Patience::lasting(PATIENCE, reader) }
    }

    /// For so long.
    pub(super) fn lasting(first: Duration, reader: u32) -> Patience {
        let waited = Waited::begin_for(reader);
        Patience { waited, first, pid: None, is_trusted: OnceCell::new() }
    }

    /// Looks whether it is over.
    pub(super) fn look(&mut self) -> Option<Over> {
        self.waited.look();
        let is_trusted = |pid| *self.is_trusted.get_or_init(|| owner_of(pid).is_trusted());
        let all = match self.pid {
            Some(pid) if self.waited() >= self.first && is_trusted(pid) => TRUSTED_PATIENCE,
            _ => self.first,
        };
        if self.waited() >= all {
            return Some(Over::HeldUp);
        }
        (self.waited.withheld() >= WITHHELD_MAX).then_some(Over::Withheld)
    }

    /// What of it counts.
    pub(super) fn waited(&self) -> Duration {
        self.waited.counted()
    }
}

fn owner_of(pid: u32) -> Owner {
    Owners::of_host().owner(pid)
}

/// Who is looked at. One process of a user can stand for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Who {
    /// One life of a process of a trusted user.
    Process(u32, Option<u64>),
    /// All processes of another user.
    User(Owner),
}

impl Who {
    fn of(pid: u32) -> Who {
        match owner_of(pid) {
            Owner::Trusted => Who::Process(pid, Process::of(pid).start_ticks().value().copied()),
            other => Who::User(other),
        }
    }

    fn is_other(self) -> bool {
        matches!(self, Who::User(_))
    }
}

/// How often somebody held us up, and until when they are not looked at.
#[derive(Clone, Copy, Debug)]
struct Times {
    count: u32,
    pause: Duration,
    until: Instant,
}

/// Those who held us up.
#[derive(Debug)]
pub(super) struct HeldUp {
    times: HashMap<Who, Times>,
    others: Allowance,
    /// Readers that do not end, though they were killed: the kernel waits for an answer to what was asked already. Who has
    /// one is not looked at.
    left: Vec<(Who, Child)>,
}

impl Default for HeldUp {
    fn default() -> Self {
        let others = Allowance::new(SHARE, SAVED_MAX_S);
        HeldUp { times: HashMap::new(), others, left: Vec::new() }
    }
}

impl HeldUp {
    /// Whether this process is not to be looked at now.
    pub(super) fn is_put_off(&mut self, pid: u32) -> bool {
        // Mostly nobody has ever held us up.
        let is_any = !self.times.is_empty() || !self.left.is_empty();
        is_any && self.puts_off(Who::of(pid), Instant::now())
    }

    /// This process has held us up, and a reader was killed for it.
    pub(super) fn note(&mut self, pid: u32, waited: Duration, killed: Child) {
        let who = Who::of(pid);
        self.left.push((who, killed));
        self.add(who, waited, Instant::now());
    }

    /// A reader was killed that looked at this process, and that is not the fault of the process. While it has not ended, the
    /// process is not looked at.
    pub(super) fn leave(&mut self, pid: u32, killed: Child) {
        self.left.push((Who::of(pid), killed));
    }

    /// This process has answered after such a time.
    pub(super) fn note_answer(&mut self, pid: u32, waited: Duration) {
        // Mostly it is at once, and nobody has ever held us up.
        if !waited.is_zero() || !self.times.is_empty() {
            self.forgive(Who::of(pid), waited, Instant::now());
        }
    }

    fn forgive(&mut self, who: Who, waited: Duration, now: Instant) {
        if who.is_other() {
            self.others.spend(waited);
        }
        if self.times.get(&who).is_some_and(|times| now >= times.until + times.pause) {
            self.times.remove(&who);
        }
    }

    fn puts_off(&mut self, who: Who, now: Instant) -> bool {
        self.left.retain_mut(|(_, process)| !has_ended(process));
        let has_left = self.left.iter().any(|(other, _)| *other == who);
        let is_early = self.times.get(&who).is_some_and(|times| now < times.until);
        has_left || is_early || who.is_other() && !self.may_others(now)
    }

    fn may_others(&mut self, now: Instant) -> bool {
        let left = self.left.iter().filter(|(who, _)| who.is_other()).count();
        self.others.is_left(now) && left < LEFT_MAX
    }

    fn add(&mut self, who: Who, waited: Duration, now: Instant) {
        if self.times.len() >= KEPT_MAX {
            self.times.retain(|_, times| times.until > now);
        }
        if self.times.len() >= KEPT_MAX {
            self.times.clear();
        }
        let new = Times { count: 0, pause: Duration::ZERO, until: now };
        let times = self.times.entry(who).or_insert(new);
        times.pause = PAUSE * (1 << times.count.min(DOUBLED_MAX));
        times.until = now + times.pause;
        times.count += 1;
        if who.is_other() {
            self.others.spend(waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn who_holds_us_up_is_looked_at_more_and_more_rarely() {
        let (mut held_up, begun) = (HeldUp::default(), Instant::now());
        let [bad, good] = [7, 8].map(|pid| Who::Process(pid, Some(1)));
        let mut looks = 0;
        for second in 0..1000 {
            let now = begun + S * second;
            assert!(!held_up.puts_off(good, now), "it costs itself");
            if !held_up.puts_off(bad, now) {
                looks += 1;
                held_up.add(bad, 2 * S, now);
            }
        }
        assert_eq!(looks, 10, "at 0, 1, 3, 7 and so on up to 511");
    }

    #[test]
    fn other_users_hold_us_up_for_a_share_of_the_time_however_many_they_are() {
        let (mut held_up, begun) = (HeldUp::default(), Instant::now());
        let mut held = Duration::ZERO;
        for uid in 0..4000 {
            let (who, now) = (Who::User(Owner::Other(uid)), begun + S * uid / 10);
            if !held_up.puts_off(who, now) {
                held += PATIENCE;
                held_up.add(who, PATIENCE, now);
            }
        }
        let most = SAVED_MAX_S + SHARE * 400.0 + PATIENCE.as_secs_f64();
        assert!(held.as_secs_f64() <= most, "{held:?} of 400 s");
        assert!(!held_up.puts_off(Who::Process(7, Some(1)), begun + 400 * S), "a trusted one");
    }

    #[test]
    fn who_has_left_a_reader_behind_is_not_looked_at_and_others_leave_few() {
        let (mut held_up, now) = (HeldUp::default(), Instant::now());
        let sleeps = || process::Command::new("sleep").arg("600").spawn().unwrap();
        let trusted = [7, 8].map(|pid| Who::Process(pid, Some(1)));
        held_up.left.push((trusted[0], sleeps()));
        assert_eq!(trusted.map(|who| held_up.puts_off(who, now)), [true, false]);
        let user = |uid| Who::User(Owner::Other(uid));
        for uid in 0..LEFT_MAX as u32 {
            assert!(!held_up.puts_off(user(1000), now));
            held_up.left.push((user(uid), sleeps()));
        }
        assert!(held_up.puts_off(user(1000), now) && !held_up.puts_off(trusted[1], now));
        for (_, process) in &mut held_up.left {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        assert!(
            ![trusted[0], user(0), user(1000)]
                .map(|who| held_up.puts_off(who, now))
                .contains(&true)
        );
    }

    #[test]
    fn who_has_answered_for_as_long_as_it_was_left_alone_is_forgiven() {
        let (mut held_up, begun) = (HeldUp::default(), Instant::now());
        let who = Who::Process(7, Some(1));
        let hold_up = |second: u32, held_up: &mut HeldUp| {
            let now = begun + S * second;
            assert!(!held_up.puts_off(who, now), "at {second} s");
            held_up.add(who, 2 * S, now);
            held_up.times[&who].pause
        };
        let pauses = [0, 1, 3].map(|second| hold_up(second, &mut held_up));
        assert_eq!(pauses, [S, 2 * S, 4 * S]);
        held_up.forgive(who, S, begun + S * 10);
        assert_eq!(hold_up(10, &mut held_up), 8 * S, "it answers for 3 s only");
        held_up.forgive(who, S, begun + S * 26);
        assert_eq!(hold_up(26, &mut held_up), S, "it answers for 8 s");
    }

    #[test]
    fn what_other_users_answer_late_is_of_their_share() {
        let (mut held_up, now) = (HeldUp::default(), Instant::now());
        let [slow, ours] = [Who::User(Owner::Other(7)), Who::Process(7, Some(1))];
        held_up.forgive(ours, 2 * S, now);
        assert!(!held_up.puts_off(slow, now));
        held_up.forgive(slow, 2 * S, now);
        assert!(held_up.puts_off(slow, now) && !held_up.puts_off(ours, now));
    }

    #[test]
    fn one_of_ours_is_waited_for_longer() {
        // Who looks is asleep, as one that is held up.
        let mut sleeper = process::Command::new("sleep").arg("600").spawn().unwrap();
        let over_after = |pid: u32| {
            let (mut patience, begun) = (Patience::with(pid, sleeper.id()), Instant::now());
            while patience.look().is_none() {
                assert!(begun.elapsed() < 120 * S, "{pid}");
                std::thread::sleep(S / 100);
            }
            (patience.look(), patience.waited() >= TRUSTED_PATIENCE)
        };
        assert_eq!(over_after(u32::MAX), (Some(Over::HeldUp), false));
        assert_eq!(over_after(process::id()), (Some(Over::HeldUp), true));
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
