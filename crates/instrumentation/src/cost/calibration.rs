//! What an event costs beyond the readings of the timer, as it was measured on a private server.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Span;
use crate::class::kind_of;

/// A price whose interval reaches beyond `1/1.5` and `1.5` times the price is not used to predict.
pub const PREDICTABLE: f64 = 1.5;
/// What happens less often per statement costs less than what can be measured.
pub const EVENTS_MIN: f64 = 0.2;
/// At how many sessions prices are measured.
pub const SESSIONS: [u32; 2] = [1, 32];

/// Where an event is kept beside the sums, which are always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Nowhere.
    Sums,
    /// As the current one, and in the history of its thread.
    History,
    /// In the history of all threads, too.
    HistoryLong,
}

impl Kept {
    /// From little to much.
    pub const ALL: [Kept; 3] = [Kept::Sums, Kept::History, Kept::HistoryLong];
}

/// What was measured of one class, or of one kind with all of its classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Sessions that were busy.
    pub sessions: u32,
    /// A class such as `wait/synch/mutex`, or a kind such as `wait`.
    pub class: String,
    /// Where events were kept.
    pub kept: Kept,
    /// Events per statement.
    pub events_per_statement: f64,
    /// Those of them that were timed.
    pub timed_per_statement: f64,
    /// Processor time of the server per statement that came on top, ns.
    pub added_ns: Span,
    /// Both readings of the timer, ns per timed event; 0 for a kind that is never timed.
    pub timer_ns: f64,
    /// What is left of `added_ns` per event, ns; `None` where there were no events.
    pub rest_ns: Option<Span>,
}

impl Measured {
    /// Nanoseconds per event that are not the timer's: `(added - timed × timer) / events`.
    pub fn rest(added_ns: Span, events: f64, timed: f64, timer_ns: f64) -> Option<Span> {
        let left = added_ns.less(Span::exact(timed * timer_ns));
        (events > 0.0).then(|| left.times(1.0 / events))
    }

    /// Nanoseconds per event in all.
    fn price(&self) -> Option<Span> {
        (self.events_per_statement > 0.0)
            .then(|| self.added_ns.times(1.0 / self.events_per_statement))
    }

    /// Whether the price is known closely enough to predict with.
    fn is_close(&self) -> bool {
        self.price().is_some_and(|price| price.is_within(PREDICTABLE))
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
    /// Blocks of windows for each price.
    pub rounds: usize,
    /// Every price.
    pub measured: Vec<Measured>,
}

/// What prices depend on beside the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Model of the processor.
    pub model: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Processors that are online.
    pub processors: usize,
}

/// From where the rest of a price is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The class itself was measured.
    Class,
    /// The class was too rare, or too cheap, to be measured by itself: what all classes of its kind cost together,
    /// less those that were.
    Kind,
}

/// The rest of a price.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rest {
    /// Nanoseconds per event.
    pub ns: Span,
    /// From where.
    pub source: Source,
    /// Whether what it rests on was measured closely enough to predict with.
    pub is_predictable: bool,
}

impl Calibration {
    /// The rest of the price of a class whose events are kept so, while so many sessions are busy.
    /// Between the two numbers of sessions that were measured it lies on a line over the logarithm of
    /// their number, beyond them it stays. `None` where nothing of it was measured.
    pub fn rest(&self, class: &str, kept: Kept, sessions: f64) -> Option<Rest> {
        let [few, many] = SESSIONS;
        let (at_few, at_many) = (self.rest_at(class, kept, few)?, self.rest_at(class, kept, many)?);
        Some(Rest {
            ns: at_few.ns.towards(at_many.ns, way_to_many(sessions)),
            source: if at_few.source == at_many.source { at_few.source } else { Source::Kind },
            is_predictable: at_few.is_predictable && at_many.is_predictable,
        })
    }

    /// Events of a class per statement of the load of the calibration, which is point selects, and those
    /// that are timed, with all of the class on and timed; between the two numbers of sessions as
    /// [`Self::rest`]. `None` where they were too rare to be measured.
    pub fn events_per_statement(&self, class: &str, sessions: f64) -> Option<[f64; 2]> {
        let with = |sessions: u32| {
            let measured = self.one(class, Kept::Sums, sessions)?;
            Some([measured.events_per_statement, measured.timed_per_statement])
        };
        let [few, many] = SESSIONS;
        let ([few, few_timed], [many, many_timed]) = (with(few)?, with(many)?);
        let between = |few: f64, many: f64| few + (many - few) * way_to_many(sessions);
        Some([between(few, many), between(few_timed, many_timed)])
    }

    fn rest_at(&self, class: &str, kept: Kept, sessions: u32) -> Option<Rest> {
        let kind = kind_of(class);
        if class == kind {
            let one = self.one(kind, kept, sessions)?;
            let (ns, is_predictable) = (one.rest_ns?, one.is_close());
            return Some(Rest { ns, source: Source::Class, is_predictable });
        }
        let own = self.one(class, Kept::Sums, sessions).filter(|own| own.is_close());
        let (source, own) = match own {
            Some(own) => (Source::Class, own.clone()),
            None => (Source::Kind, self.others(kind, sessions)?),
        };
        let extra = match kept {
            Kept::Sums => Span::ZERO,
            // Whoever keeps events pays the same for each event of a kind.
            _ => {
                let rest = |kept| self.one(kind, kept, sessions)?.rest_ns;
                rest(kept)?.less(rest(Kept::Sums)?)
            }
        };
        let is_predictable = own.price()?.plus(extra).is_within(PREDICTABLE);
        Some(Rest { ns: own.rest_ns?.plus(extra), source, is_predictable })
    }

    fn one(&self, class: &str, kept: Kept, sessions: u32) -> Option<&Measured> {
        let is_it =
            |one: &&Measured| one.class == class && one.kept == kept && one.sessions == sessions;
        self.measured.iter().find(is_it)
    }

    /// What is left of a kind for those of its classes that were not measured closely by themselves: so the sum
    /// over all classes is what was measured of the kind.
    fn others(&self, kind: &str, sessions: u32) -> Option<Measured> {
        let mut left = self.one(kind, Kept::Sums, sessions)?.clone();
        let is_own = |one: &&Measured| {
            one.class != kind
                && kind_of(&one.class) == kind
                && one.kept == Kept::Sums
                && one.sessions == sessions
                && one.is_close()
        };
        for own in self.measured.iter().filter(is_own) {
            left.events_per_statement -= own.events_per_statement;
            left.timed_per_statement -= own.timed_per_statement;
            left.added_ns = left.added_ns.less(own.added_ns);
        }
        if left.events_per_statement < EVENTS_MIN {
            return self.one(kind, Kept::Sums, sessions).cloned();
        }
        let Measured { added_ns, events_per_statement, timed_per_statement, timer_ns, .. } = left;
        left.rest_ns =
            Measured::rest(added_ns, events_per_statement, timed_per_statement, timer_ns);
        Some(left)
    }
}

/// How far so many sessions are on the way from few to many, by the logarithm: 0 to 1.
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

    fn measured(sessions: u32, class: &str, kept: Kept, events: f64, added_ns: Span) -> Measured {
        let rest_ns = Measured::rest(added_ns, events, events, 30.0);
        Measured {
            sessions,
            class: class.to_owned(),
            kept,
            events_per_statement: events,
            timed_per_statement: events,
            added_ns,
            timer_ns: 30.0,
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
        let rest = Measured::rest(span(900.0, 1000.0, 1100.0), 10.0, 4.0, 30.0);
        assert_eq!(rest, Some(span(78.0, 88.0, 98.0)));
        assert_eq!(Measured::rest(Span::ZERO, 0.0, 0.0, 30.0), None);
    }

    #[test]
    fn between_one_session_and_many_the_price_follows_the_logarithm() {
        let mutex = "wait/synch/mutex";
        let calibration = calibration(vec![
            measured(1, mutex, Kept::Sums, 10.0, span(450.0, 500.0, 550.0)),
            measured(32, mutex, Kept::Sums, 10.0, span(950.0, 1000.0, 1050.0)),
        ]);
        let rest = |sessions| calibration.rest(mutex, Kept::Sums, sessions).unwrap().ns.value;
        assert_eq!((rest(0.0), rest(1.0)), (20.0, 20.0));
        assert_eq!((rest(32.0), rest(500.0)), (70.0, 70.0));
        // log2 of 2 is a fifth of log2 of 32.
        assert!((rest(2.0) - 30.0).abs() < 1e-9);
    }

    #[test]
    fn events_per_statement_lie_on_the_same_line() {
        let mutex = "wait/synch/mutex";
        let calibration = calibration(vec![
            measured(1, mutex, Kept::Sums, 10.0, Span::ZERO),
            measured(1, mutex, Kept::History, 99.0, Span::ZERO),
            measured(32, mutex, Kept::Sums, 20.0, Span::ZERO),
            measured(1, "stage", Kept::Sums, 1.0, Span::ZERO),
        ]);
        let [events, timed] = calibration.events_per_statement(mutex, 2.0).unwrap();
        assert!((events - 12.0).abs() < 1e-9 && events == timed, "{events} {timed}");
        // It was too rare with 32 sessions.
        assert_eq!(calibration.events_per_statement("stage", 1.0), None);
    }

    #[test]
    fn a_class_that_was_too_rare_is_priced_like_its_kind_and_what_is_kept_costs_extra() {
        let both = |sessions| {
            [
                measured(sessions, "wait/io/file", Kept::Sums, 0.1, span(-90.0, 10.0, 110.0)),
                measured(sessions, "wait", Kept::Sums, 20.0, span(1900.0, 2000.0, 2100.0)),
                measured(sessions, "wait", Kept::History, 20.0, span(2900.0, 3000.0, 3100.0)),
            ]
        };
        let calibration = calibration(SESSIONS.into_iter().flat_map(both).collect());
        let rest = calibration.rest("wait/io/file", Kept::Sums, 1.0).unwrap();
        assert_eq!((rest.source, rest.is_predictable, rest.ns.value), (Source::Kind, true, 70.0));
        let kept = calibration.rest("wait/io/file", Kept::History, 1.0).unwrap();
        assert_eq!(kept.ns.value, 120.0);
        assert_eq!(calibration.rest("wait/io/file", Kept::HistoryLong, 1.0), None);
        assert_eq!(calibration.rest("stage", Kept::Sums, 1.0), None);
    }

    #[test]
    fn a_price_that_is_known_badly_is_not_predictable() {
        let wide = |sessions| measured(sessions, "idle", Kept::Sums, 1.0, span(-20.0, 80.0, 180.0));
        let calibration = calibration(SESSIONS.into_iter().map(wide).collect());
        assert!(!calibration.rest("idle", Kept::Sums, 1.0).unwrap().is_predictable);
    }
}
