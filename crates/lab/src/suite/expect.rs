//! What the events of a window have to show of a scenario.
//!
//! It follows from the profile of the scenario. A class that the profile has off must stand still. A class that it has on,
//! and that the load feeds, must grow. What depends on the version of the server, or on which part of a class is on, is
//! left open.

use std::collections::BTreeMap;

use waggle_instrumentation::activity::Events;
use waggle_instrumentation::class::class_of;
use waggle_instrumentation::pattern::fits;
use waggle_instrumentation::profile::{Base, ConsumerRule, InstrumentRule, Profile, Servers};

use crate::suite::default_profile;

/// The classes that are looked at. Errors are not: whether they happen is not up to the load.
pub(super) const CLASSES: [&str; 14] = [
    "idle",
    "memory",
    "stage",
    "statement",
    "transaction",
    "wait/io/file",
    "wait/io/socket",
    "wait/io/table",
    "wait/lock/metadata",
    "wait/lock/table",
    "wait/synch/cond",
    "wait/synch/mutex",
    "wait/synch/rwlock",
    "wait/synch/sxlock",
];
/// Always counted, whatever is set (`update_row_values`, `table_setup_instruments.cc`).
const ALWAYS: &str = "memory/performance_schema/";
/// The consumer without which nothing is collected.
const ALL: &str = "global_instrumentation";
/// Events that our own statements between two readings, in one turn, can make of a class that grows: more is asked for
/// where nobody counts the transactions.
const OWN: u64 = 20;
/// Events that threads of the server can have begun when their class was still on, beside two of
/// every session, in one turn.
const BACKGROUND: u64 = 100;

/// What a class of instruments has to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    /// The class, as `waggle_instrumentation::class` names it.
    pub class: String,
    /// What its events have to do.
    pub must: Must,
}

/// What events have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Must {
    /// Become more.
    Grow,
    /// Become no more, but for what had begun before.
    StandStill,
}

impl Expect {
    /// What a profile makes of every class, under a load that makes events of the instruments `feeds`.
    pub(super) fn of(profile: &Profile, feeds: &[String]) -> Vec<Expect> {
        let default = match profile.base {
            Base::Default => default_profile(),
            Base::Current | Base::Off => None,
        };
        let layers: Vec<&Profile> = default.iter().chain([profile]).collect();
        let begin = match profile.base {
            Base::Current => Setting::Open,
            Base::Off | Base::Default => Setting::Off,
        };
        let collects = collecting(&layers, begin);
        let is_off = |class: &str| {
            let left = setting(&layers, begin, |rule| of_class(rule, class));
            collects == Setting::Off || left == Setting::Off
        };
        let is_on = |feed: &str| {
            let left = setting(&layers, begin, |rule| of_one(rule, feed));
            collects == Setting::On && left == Setting::On
        };
        let expect = |class: &str, must| Expect { class: class.to_owned(), must };
        let still = CLASSES.into_iter().filter(|class| is_off(class));
        let mut expects: Vec<Expect> = still.map(|class| expect(class, Must::StandStill)).collect();
        for feed in feeds.iter().filter(|feed| is_on(feed)) {
            let grow = expect(class_of(feed), Must::Grow);
            if !expects.contains(&grow) {
                expects.push(grow);
            }
        }
        expects
    }

    /// Why this number of events cannot be.
    fn disproof(&self, events: u64, under: Under) -> Option<String> {
        let class = &self.class;
        let turns = u64::from(under.turns);
        let most = turns * (2 * u64::from(under.threads) + BACKGROUND);
        // Each transaction makes one at least: what threads of the server itself make is not enough.
        let least = under.transactions.unwrap_or(turns * OWN + 1);
        match self.must {
            Must::Grow if events < least => {
                Some(format!("{class} is on and counted {events} events under load"))
            }
            Must::StandStill if events > most => {
                Some(format!("{class} is off and counted {events} events"))
            }
            Must::Grow | Must::StandStill => None,
        }
    }
}

/// Under what events were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Under {
    /// Sessions.
    pub threads: u32,
    /// Transactions that ended; `None` where nobody counts them.
    pub transactions: Option<u64>,
    /// How often the events were read before and after.
    pub turns: u32,
}

/// The first of `expects` that these events break.
pub(super) fn disproof(expects: &[Expect], events: &Events, under: Under) -> Option<String> {
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, events) in events.iter().filter(|(name, _)| !name.starts_with(ALWAYS)) {
        *counted.entry(class_of(name)).or_default() += events;
    }
    expects.iter().find_map(|expect| {
        let events = counted.get(expect.class.as_str()).copied().unwrap_or(0);
        expect.disproof(events, under)
    })
}

/// Why a counter of InnoDB cannot have changed by so much, under a load that moves it; `None` where it
/// can. That it is on or off was read back before: one that is on has to grow, one that is off to stand
/// still.
pub fn counter_disproof(name: &str, enabled: bool, change: u64, under: Under) -> Option<String> {
    let must = if enabled { Must::Grow } else { Must::StandStill };
    Expect { class: format!("the counter {name}"), must }.disproof(change, under)
}

/// What rules make of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    On,
    Off,
    /// It depends on the server, or only a part is on.
    Open,
}

/// How much of something a pattern names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Share {
    None,
    Part,
    Whole,
}

impl Setting {
    fn of(on: bool) -> Setting {
        if on { Setting::On } else { Setting::Off }
    }

    /// After a rule that sets a share of it to `to`.
    fn then(self, to: Setting, share: Share, servers: &Servers) -> Setting {
        match share {
            Share::None => self,
            Share::Whole if *servers == Servers::default() => to,
            Share::Part | Share::Whole if self == to => self,
            Share::Part | Share::Whole => Setting::Open,
        }
    }
}

/// What the rules on instruments make of something, by the share of it that each names.
fn setting(
    layers: &[&Profile],
    begin: Setting,
    share: impl Fn(&InstrumentRule) -> Share,
) -> Setting {
    let rules = layers.iter().flat_map(|layer| &layer.instruments);
    rules.fold(begin, |now, rule| match rule.enabled {
        Some(on) => now.then(Setting::of(on), share(rule), &rule.on),
        None => now,
    })
}

/// Whether anything is collected at all. A consumer that is on brings those above it along
/// (`waggle_instrumentation::plan`).
fn collecting(layers: &[&Profile], begin: Setting) -> Setting {
    let share = |rule: &ConsumerRule| match rule.enabled {
        true if rule.names.is_empty() => Share::None,
        true => Share::Whole,
        false if rule.names.iter().any(|pattern| fits(ALL, pattern)) => Share::Whole,
        false => Share::None,
    };
    let rules = layers.iter().flat_map(|layer| &layer.consumers);
    rules.fold(begin, |now, rule| now.then(Setting::of(rule.enabled), share(rule), &rule.on))
}

/// The share of one instrument that a rule names.
fn of_one(rule: &InstrumentRule, name: &str) -> Share {
    let names = |patterns: &[String]| patterns.iter().any(|pattern| fits(name, pattern));
    if names(&rule.names) && !names(&rule.except) { Share::Whole } else { Share::None }
}

/// The share of a class that a rule names.
fn of_class(rule: &InstrumentRule, class: &str) -> Share {
    let most = |patterns: &[String]| {
        patterns.iter().map(|pattern| named(pattern, class)).max().unwrap_or(Share::None)
    };
    match (most(&rule.names), most(&rule.except)) {
        (Share::None, _) | (_, Share::Whole) => Share::None,
        (named, Share::None) => named,
        (_, Share::Part) => Share::Part,
    }
}

/// The share of a class that a pattern names.
fn named(pattern: &str, class: &str) -> Share {
    let inside = format!("{class}/");
    match pattern.split_once('%') {
        None if pattern == class => Share::Whole,
        None if pattern.starts_with(&inside) => Share::Part,
        None => Share::None,
        Some((head, "")) if inside.starts_with(head) => Share::Whole,
        Some((head, _)) if inside.starts_with(head) || head.starts_with(&inside) => Share::Part,
        Some(_) => Share::None,
    }
}

#[cfg(test)]
mod tests {
    use waggle_instrumentation::profile::builtin;

    use super::*;

    const FEEDS: [&str; 5] = [
        "statement/com/Execute",
        "stage/sql/starting",
        "transaction",
        "wait/io/table/sql/handler",
        "memory/sql/THD::main_mem_root",
    ];

    const UNDER: Under = Under { threads: 8, transactions: None, turns: 1 };

    fn expects(profile: &Profile) -> Vec<Expect> {
        Expect::of(profile, &FEEDS.map(str::to_owned))
    }

    fn of(profile: &str, must: Must) -> Vec<String> {
        let all = expects(&builtin(profile).unwrap().unwrap());
        all.into_iter().filter(|one| one.must == must).map(|one| one.class).collect()
    }

    #[test]
    fn what_a_profile_leaves_off_stands_still_and_what_it_turns_on_grows() {
        assert_eq!(of("off", Must::StandStill), CLASSES);
        assert!(of("off", Must::Grow).is_empty());
        let fed = ["statement", "stage", "transaction", "wait/io/table", "memory"];
        assert_eq!(of("everything", Must::Grow), fed);
        assert!(of("everything", Must::StandStill).is_empty());
        assert_eq!(of("basic", Must::Grow), ["statement", "wait/io/table"]);
        let still = of("basic", Must::StandStill);
        assert!(still.contains(&"wait/synch/mutex".to_owned()), "{still:?}");
        assert!(!still.contains(&"wait/io/file".to_owned()), "{still:?}");
        assert_eq!(of("all-events", Must::StandStill), ["memory"]);
    }

    #[test]
    fn without_consumers_nothing_is_collected_whatever_instruments_are_on() {
        assert_eq!(of("pfson_conoff_inson", Must::StandStill), CLASSES);
        assert_eq!(of("pfson_conon_insoff", Must::StandStill), CLASSES);
        assert_eq!(of("pfson_conon_ins_sqlon", Must::Grow), ["statement"]);
    }

    #[test]
    fn what_depends_on_the_version_or_on_a_part_is_left_open() {
        // Transactions and memory are in the default since 8.0, and only some stages are.
        assert_eq!(of("default", Must::Grow), ["statement", "wait/io/table"]);
        let still = of("default", Must::StandStill);
        assert!(still.contains(&"wait/synch/mutex".to_owned()), "{still:?}");
        for open in ["transaction", "memory", "stage", "statement"] {
            assert!(!still.contains(&open.to_owned()), "{open}");
        }
        // Whatever was set before.
        assert!(of("metrics-on", Must::StandStill).is_empty());
        assert!(of("metrics-on", Must::Grow).is_empty());
    }

    #[test]
    fn a_pattern_names_a_class_a_part_of_it_or_nothing_of_it() {
        for (pattern, class, share) in [
            ("%", "statement", Share::Whole),
            ("wait/%", "wait/io/table", Share::Whole),
            ("wait/io/table/%", "wait/io/table", Share::Whole),
            ("transaction", "transaction", Share::Whole),
            ("wait/io/table/sql/%", "wait/io/table", Share::Part),
            ("wait/%/sql/%", "wait/io/table", Share::Part),
            ("statement/sql/select", "statement", Share::Part),
            ("wait/io/%", "wait/lock/table", Share::None),
            ("stage/%", "statement", Share::None),
            ("statement", "statements", Share::None),
        ] {
            assert_eq!(named(pattern, class), share, "{pattern} {class}");
        }
    }

    #[test]
    fn a_counter_that_is_on_has_to_grow_and_one_that_is_off_to_stand_still() {
        let says = |enabled, change| counter_disproof("trx_rw_commits", enabled, change, UNDER);
        assert_eq!((says(true, 893), says(false, 0)), (None, None));
        let silent = says(true, 0).unwrap();
        assert!(silent.contains("trx_rw_commits is on and counted 0"), "{silent}");
        let loud = says(false, 893).unwrap();
        assert!(loud.contains("trx_rw_commits is off and counted 893"), "{loud}");
    }

    #[test]
    fn a_window_is_disproven_by_events_of_what_is_off_and_by_silence_of_what_is_on() {
        let expects = expects(&builtin("basic").unwrap().unwrap());
        let events = |counts: &[(&str, u64)]| -> Events {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let says = |counts: &[(&str, u64)]| disproof(&expects, &events(counts), UNDER);
        let (statements, table) =
            (("statement/com/Execute", 5000), ("wait/io/table/sql/handler", 9));
        let table_at_work = ("wait/io/table/sql/handler", 9000);
        assert_eq!(says(&[statements, table_at_work]), None);
        let silent = says(&[statements, table]).unwrap();
        assert!(silent.contains("wait/io/table is on and counted 9"), "{silent}");
        let mutex = ("wait/synch/mutex/innodb/trx_sys_mutex", 5000);
        let loud = says(&[statements, table_at_work, mutex]).unwrap();
        assert!(loud.contains("wait/synch/mutex is off and counted 5000"), "{loud}");
        // What ended since it was switched off, and what is always counted.
        let left = ("wait/synch/mutex/innodb/trx_sys_mutex", 116);
        let own = ("memory/performance_schema/threads", 5000);
        assert_eq!(says(&[statements, table_at_work, left, own]), None);
    }

    #[test]
    fn every_turn_adds_what_our_own_statements_and_those_before_it_make() {
        let expect = |must| Expect { class: "statement".to_owned(), must };
        let says = |must, events, turns, transactions| {
            expect(must).disproof(events, Under { turns, transactions, ..UNDER }).is_some()
        };
        assert_eq!([116, 117].map(|events| says(Must::StandStill, events, 1, None)), [false, true]);
        assert_eq!([348, 349].map(|events| says(Must::StandStill, events, 3, None)), [false, true]);
        assert_eq!([20, 21].map(|events| says(Must::Grow, events, 1, None)), [true, false]);
        assert_eq!([60, 61].map(|events| says(Must::Grow, events, 3, None)), [true, false]);
        // Each transaction makes one; threads of the server may make as many as turns allow without it.
        assert_eq!([8, 9].map(|events| says(Must::Grow, events, 3, Some(9))), [true, false]);
        assert_eq!([499, 500].map(|events| says(Must::Grow, events, 1, Some(500))), [true, false]);
    }
}
