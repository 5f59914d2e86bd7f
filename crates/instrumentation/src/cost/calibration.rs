//! The cost of an event beyond reading the timer, as measured on a private server.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Span;
use crate::class::kind_of;

/// Events rarer than this per statement cost less than can be measured.
pub const EVENTS_MIN: f64 = 0.2;
/// The minimum share of a kind's events that is left after subtracting the classes measured alone.
/// Below it the rest is no price, because it is the difference of two counts made one after the
/// other.
const LEFT_MIN: f64 = 0.1;
/// How much the rest of a price differs between loads, as a share of itself, beyond the error known
/// from the calibration (decision 11).
const ELSEWHERE: f64 = 0.2;
/// At how many sessions prices are measured.
pub const SESSIONS: [u32; 2] = [2, 32];

/// Where an event is kept besides the sums, which always exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// Nowhere.
    Sums,
    /// As the current one, and in the history of its thread.
    History,
    /// In the history of all threads, too.
    HistoryLong,
}

impl Storage {
    /// From little to much.
    pub const ALL: [Storage; 3] = [Storage::Sums, Storage::History, Storage::HistoryLong];
}

/// Whether such events cost about the same under every load on one host. Two kinds do not (decision
/// 11). The sums of `wait/synch` belong to the mutex or lock, so the price depends on how many
/// processors share it. The long history is megabytes of memory written in a circle, so the price
/// depends on what others leave in the caches and where that memory lies.
pub fn is_steady(class: &str, kept: Storage) -> bool {
    kept != Storage::HistoryLong && !class.starts_with("wait/synch")
}

/// What was measured of one class, or of one kind with all of its classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Sessions that were busy.
    pub sessions: u32,
    /// A class such as `wait/synch/mutex`, or a kind such as `wait`.
    pub class: String,
    /// Where events were kept.
    pub kept: Storage,
    /// Events per statement.
    pub events_per_statement: f64,
    /// Those of them that were timed.
    pub timed_per_statement: f64,
    /// Processor time of the server per statement without it, ns.
    pub without_ns: f64,
    /// Processor time of the server per statement that came on top, ns.
    pub added_ns: Span,
    /// Both readings of the timer, ns per timed event; `None` for a kind that is never timed, and where the
    /// server does not know.
    pub timer_ns: Option<f64>,
    /// `added_ns` per event without the timer, ns; it can be negative. `None` if there were no
    /// events, or some were timed and the cost of that is not known.
    pub rest_ns: Option<Span>,
}

impl Measured {
    /// Nanoseconds per event that are not the timer's: `(added - timed × timer) / events`.
    pub fn rest(added_ns: Span, events: f64, timed: f64, timer_ns: Option<f64>) -> Option<Span> {
        let of_timer = if timed > 0.0 { timed * timer_ns? } else { 0.0 };
        let left = added_ns.less(Span::exact(of_timer));
        (events > 0.0).then(|| left.times(1.0 / events))
    }

    /// Nanoseconds per event in all.
    fn price(&self) -> Option<Span> {
        (self.events_per_statement > 0.0)
            .then(|| self.added_ns.times(1.0 / self.events_per_statement))
    }

    /// Whether the price is known closely enough to predict with.
    fn is_close(&self) -> bool {
        self.price().is_some_and(Span::is_close)
    }
}

/// What was measured on one host with one build of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// When.
    pub at: Timestamp,
    /// On what.
    pub host: Host,
    /// `VERSION()` of the private server.
    pub version: String,
    /// The build id of its program; `None` where that has none.
    pub build: Option<String>,
    /// Rounds, each with a block of windows of every price or with several.
    pub rounds: usize,
    /// Every price.
    pub measured: Vec<Measured>,
}

/// What prices depend on besides the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Model of the processor.
    pub model: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Processors that are online.
    pub processors: usize,
}

/// Where the rest of a price comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The class itself was measured.
    Class,
    /// The class was too rare or too cheap to be measured alone. The rest is that of its kind less
    /// the classes that were. If the class did not occur at all, the interval is as wide as the
    /// prices of its kind.
    Others,
    /// The same, but nearly all of the kind is such classes: the cost of all of its classes
    /// together.
    Kind,
}

/// The rest of a price.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rest {
    /// Nanoseconds per event.
    pub ns: Span,
    /// From where; of two sources, at few sessions and at many, that of many.
    pub source: Source,
}

/// The rest of a price at one of the measured numbers of sessions, and what it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct RestAt {
    /// Nanoseconds per event.
    pub ns: Span,
    /// From where.
    pub source: Source,
    /// What was measured there. For a class that was not measured: what it shares with others.
    pub measured: Measured,
    /// The extra cost of an event of the kind for keeping it, ns; 0 if it was measured that way.
    pub extra_ns: Span,
}

impl Calibration {
    /// The rest of the price of a class whose events are `kept` like this, while `sessions` are
    /// busy. Between the two measured numbers of sessions it is interpolated over the logarithm of
    /// their number; beyond them it is constant. `None` if nothing was measured.
    pub fn rest(&self, class: &str, kept: Storage, sessions: f64) -> Option<Rest> {
        let [few, many] = SESSIONS;
        let (at_few, at_many) = (self.rest_at(class, kept, few)?, self.rest_at(class, kept, many)?);
        let ns = at_few.ns.towards(at_many.ns, way_to_many(sessions));
        Some(Rest { ns, source: at_many.source })
    }

    /// Events of a class per statement of the calibration load (point selects), and those that are
    /// timed, with the whole class on and timed. Interpolated like [`Self::rest`]. `None` if they
    /// were too rare to be measured.
    pub fn events_per_statement(&self, class: &str, sessions: f64) -> Option<[f64; 2]> {
        let with = |sessions: u32| {
            let measured = self.one(class, Storage::Sums, sessions)?;
            Some([measured.events_per_statement, measured.timed_per_statement])
        };
        let [few, many] = SESSIONS;
        let ([few, few_timed], [many, many_timed]) = (with(few)?, with(many)?);
        let between = |few: f64, many: f64| few + (many - few) * way_to_many(sessions);
        Some([between(few, many), between(few_timed, many_timed)])
    }

    /// Both readings of the timer of a class as the private server knew them, ns; `None` where it did not.
    pub fn timer_ns(&self, class: &str) -> Option<f64> {
        self.one(kind_of(class), Storage::Sums, SESSIONS[0])?.timer_ns
    }

    /// Processor time of the server per statement of the calibration load with nothing on, ns.
    /// Interpolated like [`Self::rest`]. `None` if nothing was measured.
    pub fn statement_ns(&self, sessions: f64) -> Option<f64> {
        let with = |sessions: u32| {
            let measured = self.measured.iter().filter(|one| one.sessions == sessions);
            let mut all: Vec<f64> = measured.map(|one| one.without_ns).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied()
        };
        let [few, many] = SESSIONS;
        let (few, many) = (with(few)?, with(many)?);
        Some(few + (many - few) * way_to_many(sessions))
    }

    /// The same with one of [`SESSIONS`].
    pub fn rest_at(&self, class: &str, kept: Storage, sessions: u32) -> Option<RestAt> {
        let kind = kind_of(class);
        let of_kind = |kept| self.one(kind, kept, sessions);
        let own = self.one(class, Storage::Sums, sessions).filter(|own| own.is_close());
        let (source, measured) = match own {
            _ if class == kind => (Source::Class, of_kind(kept)?.clone()),
            Some(own) => (Source::Class, own.clone()),
            None => self.others(kind, sessions)?,
        };
        // Keeping an event costs the same for each event of a kind.
        let extra_ns = match class == kind || kept == Storage::Sums {
            true => Span::ZERO,
            false => of_kind(kept)?.rest_ns?.less(of_kind(Storage::Sums)?.rest_ns?),
        };
        let mut rest_ns = measured.rest_ns?;
        if source != Source::Class && self.one(class, Storage::Sums, sessions).is_none() {
            rest_ns = self.as_wide_as_its_kind(kind, sessions, rest_ns);
        }
        let ns = rest_ns.plus(extra_ns);
        let ns = if is_steady(class, kept) { elsewhere(ns) } else { unsteady(ns) };
        Some(RestAt { ns, source, measured, extra_ns })
    }

    /// For a class that did not occur while its kind was measured: it may be as cheap as the
    /// cheapest class of the kind and as dear as the dearest. Nothing else is known.
    fn as_wide_as_its_kind(&self, kind: &str, sessions: u32, of_others: Span) -> Span {
        let rests = self.classes_of(kind, sessions).filter_map(|class| class.rest_ns);
        rests.fold(of_others, |all, one| Span {
            low: all.low.min(one.low),
            high: all.high.max(one.high),
            ..all
        })
    }

    /// The classes of a kind that were measured closely by themselves.
    fn classes_of(&self, kind: &str, sessions: u32) -> impl Iterator<Item = &Measured> {
        self.measured.iter().filter(move |one| {
            one.class != kind
                && kind_of(&one.class) == kind
                && one.kept == Storage::Sums
                && one.sessions == sessions
                && one.is_close()
        })
    }

    fn one(&self, class: &str, kept: Storage, sessions: u32) -> Option<&Measured> {
        let is_it =
            |one: &&Measured| one.class == class && one.kept == kept && one.sessions == sessions;
        self.measured.iter().find(is_it)
    }

    /// The cost of a kind without its classes that were measured closely alone, so that the sum
    /// over its classes is what was measured for the kind. The whole kind if little is left.
    fn others(&self, kind: &str, sessions: u32) -> Option<(Source, Measured)> {
        let whole = self.one(kind, Storage::Sums, sessions)?;
        let mut left = whole.clone();
        for own in self.classes_of(kind, sessions) {
            left.events_per_statement -= own.events_per_statement;
            left.timed_per_statement -= own.timed_per_statement;
            left.added_ns = left.added_ns.less(own.added_ns);
        }
        if left.events_per_statement < LEFT_MIN * whole.events_per_statement {
            return Some((Source::Kind, whole.clone()));
        }
        let Measured { added_ns, events_per_statement, timed_per_statement, timer_ns, .. } = left;
        left.rest_ns =
            Measured::rest(added_ns, events_per_statement, timed_per_statement, timer_ns);
        Some((Source::Others, left))
    }
}

/// What the rest of a price may be under another load: a fifth less or more.
fn elsewhere(Span { low, value, high }: Span) -> Span {
    let further = ELSEWHERE * value.abs();
    Span { low: low - further, value, high: high + further }
}

/// What the rest of a price that is not steady may be elsewhere: nothing, so that only the timer is left, or as much
/// more.
fn unsteady(ns: Span) -> Span {
    Span { low: ns.low.min(0.0), high: ns.high.max(2.0 * ns.value), ..ns }
}

/// The position of this number of sessions between few and many, on a logarithmic scale: 0 to 1.
fn way_to_many(sessions: f64) -> f64 {
    let [few, many] = SESSIONS.map(f64::from);
    (sessions.clamp(few, many) / few).ln() / (many / few).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(low: f64, value: f64, high: f64) -> Span {
        Span { low, value, high }
    }

    fn measured(
        sessions: u32,
        class: &str,
        kept: Storage,
        events: f64,
        added_ns: Span,
    ) -> Measured {
        let rest_ns = Measured::rest(added_ns, events, events, Some(30.0));
        Measured {
            sessions,
            class: class.to_owned(),
            kept,
            events_per_statement: events,
            timed_per_statement: events,
            without_ns: 100.0 * f64::from(sessions),
            added_ns,
            timer_ns: Some(30.0),
            rest_ns,
        }
    }

    fn calibration(measured: Vec<Measured>) -> Calibration {
        Calibration {
            at: Timestamp::UNIX_EPOCH,
            host: Host { model: "x".to_owned(), kernel: "6".to_owned(), processors: 2 },
            version: "9.7.4".to_owned(),
            build: None,
            rounds: 1,
            measured,
        }
    }

    #[test]
    fn the_rest_is_what_the_timer_does_not_explain() {
        // 10 events, 4 of them timed at 30 ns: 120 of 1,000 ns are the timer's.
        let added = span(900.0, 1000.0, 1100.0);
        let rest = |events, timed, timer| Measured::rest(added, events, timed, timer);
        assert_eq!(rest(10.0, 4.0, Some(30.0)), Some(span(78.0, 88.0, 98.0)));
        assert_eq!(rest(0.0, 0.0, Some(30.0)), None);
        // What is not known of the timer would be counted twice where the server comes to know it.
        assert_eq!(rest(10.0, 4.0, None), None);
        assert_eq!(rest(10.0, 0.0, None), Some(span(90.0, 100.0, 110.0)));
    }

    #[test]
    fn shared_mutexes_and_the_long_history_are_not_steady() {
        assert!(
            is_steady("wait/io/file", Storage::History) && is_steady("statement", Storage::Sums)
        );
        assert!(!is_steady("wait/synch/mutex", Storage::Sums));
        assert!(!is_steady("stage", Storage::HistoryLong));
        assert_eq!(elsewhere(span(60.0, 70.0, 80.0)), span(46.0, 70.0, 94.0));
        assert_eq!(elsewhere(span(-9.0, -5.0, 7.0)), span(-10.0, -5.0, 8.0));
        assert_eq!(unsteady(span(60.0, 70.0, 80.0)), span(0.0, 70.0, 140.0));
        assert_eq!(unsteady(span(-9.0, -1.0, 7.0)), span(-9.0, -1.0, 7.0));
    }

    #[test]
    fn between_two_sessions_and_many_the_price_follows_the_logarithm() {
        let mutex = "wait/synch/mutex";
        let calibration = calibration(vec![
            measured(2, mutex, Storage::Sums, 10.0, span(450.0, 500.0, 550.0)),
            measured(32, mutex, Storage::Sums, 10.0, span(950.0, 1000.0, 1050.0)),
        ]);
        let rest = |sessions| calibration.rest(mutex, Storage::Sums, sessions).unwrap().ns.value;
        assert_eq!((rest(0.0), rest(2.0)), (20.0, 20.0));
        assert_eq!((rest(32.0), rest(500.0)), (70.0, 70.0));
        // 8 is four times 2, and 32 four times 8.
        assert!((rest(8.0) - 45.0).abs() < 1e-9);
    }

    #[test]
    fn events_per_statement_lie_on_the_same_line() {
        let mutex = "wait/synch/mutex";
        let calibration = calibration(vec![
            measured(2, mutex, Storage::Sums, 10.0, Span::ZERO),
            measured(2, mutex, Storage::History, 99.0, Span::ZERO),
            measured(32, mutex, Storage::Sums, 20.0, Span::ZERO),
            measured(2, "stage", Storage::Sums, 1.0, Span::ZERO),
        ]);
        let [events, timed] = calibration.events_per_statement(mutex, 8.0).unwrap();
        assert!((events - 15.0).abs() < 1e-9 && events == timed, "{events} {timed}");
        // It was too rare with 32 sessions.
        assert_eq!(calibration.events_per_statement("stage", 2.0), None);
    }

    #[test]
    fn the_time_of_a_statement_lies_on_the_same_line() {
        let of = |sessions, ns| Measured {
            without_ns: ns,
            ..measured(sessions, "stage", Storage::Sums, 1.0, Span::ZERO)
        };
        let all = calibration(vec![of(2, 20.0), of(2, 10.0), of(2, 900.0), of(32, 70.0)]);
        assert_eq!(all.statement_ns(2.0), Some(20.0));
        assert!((all.statement_ns(8.0).unwrap() - 45.0).abs() < 1e-9);
        assert_eq!(calibration(vec![of(2, 20.0)]).statement_ns(2.0), None);
    }

    /// The same with 2 sessions and with 32.
    fn alike(of: impl Fn(u32) -> Vec<Measured>) -> Calibration {
        calibration(SESSIONS.into_iter().flat_map(of).collect())
    }

    #[test]
    fn a_class_that_was_too_rare_is_priced_like_its_kind_and_what_is_kept_costs_extra() {
        let calibration = alike(|sessions| {
            vec![
                measured(sessions, "wait/io/file", Storage::Sums, 0.1, span(-90.0, 10.0, 110.0)),
                measured(sessions, "wait", Storage::Sums, 20.0, span(1900.0, 2000.0, 2100.0)),
                measured(sessions, "wait", Storage::History, 20.0, span(2900.0, 3000.0, 3100.0)),
            ]
        });
        let rest = calibration.rest("wait/io/file", Storage::Sums, 1.0).unwrap();
        assert_eq!((rest.source, rest.ns.value), (Source::Others, 70.0));
        let kept = calibration.rest_at("wait/io/file", Storage::History, 2).unwrap();
        assert_eq!((kept.ns.value, kept.extra_ns.value), (120.0, 50.0));
        assert_eq!(calibration.rest("wait/io/file", Storage::HistoryLong, 1.0), None);
        assert_eq!(calibration.rest("stage", Storage::Sums, 1.0), None);
    }

    #[test]
    fn a_class_that_did_not_occur_may_cost_what_any_of_its_kind_does() {
        let calibration = alike(|sessions| {
            let close = |ns: f64| span(0.9 * ns, ns, 1.1 * ns);
            vec![
                measured(sessions, "wait", Storage::Sums, 30.0, span(1900.0, 2000.0, 2100.0)),
                measured(sessions, "wait/synch/mutex", Storage::Sums, 20.0, close(800.0)),
                measured(sessions, "wait/lock/table", Storage::Sums, 1.0, close(500.0)),
                measured(sessions, "wait/io/socket", Storage::Sums, 2.0, span(10.0, 100.0, 190.0)),
            ]
        });
        let rest = |class| calibration.rest(class, Storage::Sums, 1.0).unwrap().ns;
        // (2,000 - 800 - 500) / 9 - 30 for both; mutexes are 36 - 30 at least, table locks 550 - 30 at most; both ends
        // are a fifth of the price further out.
        let (seen, unseen) = (rest("wait/io/socket"), rest("wait/io/file"));
        assert_eq!(seen.value, unseen.value);
        let further = 0.2 * (700.0 / 9.0 - 30.0);
        assert!(
            (unseen.low - (6.0 - further)).abs() < 1e-9
                && (unseen.high - (520.0 + further)).abs() < 1e-9,
            "{unseen:?}"
        );
        assert!(seen.low > unseen.low && seen.high < unseen.high, "{seen:?}");
    }

    #[test]
    fn classes_that_were_not_measured_closely_share_what_is_left_of_their_kind() {
        let of_mutexes = |events: f64, ns: f64| {
            let calibration = alike(|sessions| {
                let close = span(0.9 * ns, ns, 1.1 * ns);
                vec![
                    measured(sessions, "wait", Storage::Sums, 20.0, span(1900.0, 2000.0, 2100.0)),
                    measured(sessions, "wait/synch/mutex", Storage::Sums, events, close),
                ]
            });
            let own = calibration.rest("wait/synch/mutex", Storage::Sums, 1.0).unwrap();
            assert_eq!(own.source, Source::Class);
            let rest = calibration.rest("wait/io/file", Storage::Sums, 1.0).unwrap();
            (rest.source, rest.ns.value)
        };
        // (2,000 - 800 - 10 × 30) / 10: all 20 events cost the 2,000 that were measured.
        assert_eq!(of_mutexes(10.0, 800.0), (Source::Others, 90.0));
        // One event of 20 is left, which may be none: that of the kind is 2,000 / 20 - 30.
        assert_eq!(of_mutexes(19.0, 800.0), (Source::Kind, 70.0));
    }
}
