//! The cost of timing an event.

use std::collections::BTreeMap;

use waggle_model::Reading;

use crate::status::Timer;

/// An event is timed by two readings: where it begins and where it ends ("The `performance_timers`
/// table" of the MySQL manual: "the total overhead is twice the `TIMER_OVERHEAD` value").
const READINGS: f64 = 2.0;

/// The timer of each kind of event where the server has no `setup_timers` ("Performance Schema Event
/// Timing" of the manual of MySQL 8.0 and later).
const TIMERS: [(&str, &str); 5] = [
    ("idle", "MICROSECOND"),
    ("wait", "CYCLE"),
    ("stage", "NANOSECOND"),
    ("statement", "NANOSECOND"),
    ("transaction", "NANOSECOND"),
];

/// The timer that a kind of event uses, and what one event costs by it.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerPrice {
    /// Its name.
    pub timer: String,
    /// Cycles of one reading, as the server measured them when it started, the least of 20.
    pub overhead_cycles: u64,
    /// Cycles of the processor per second.
    pub cycles_per_s: u64,
}

impl TimerPrice {
    /// Nanoseconds of both readings.
    pub fn ns_per_event(&self) -> f64 {
        READINGS * self.overhead_cycles as f64 * 1e9 / self.cycles_per_s as f64
    }
}

/// What timing an event of this kind costs. `timers` are the rows of `performance_timers`, `chosen`
/// those of `setup_timers`, where there are any. `None` for a kind that is never timed, such as
/// `memory`.
pub fn price_of(
    kind: &str,
    timers: &[Timer],
    chosen: &BTreeMap<String, String>,
) -> Option<Reading<TimerPrice>> {
    let by_default = TIMERS.iter().find(|(of, _)| *of == kind)?.1;
    let name = chosen.get(kind).map_or(by_default, String::as_str);
    let named = |name: &str| timers.iter().find(|timer| timer.name == name);
    // No reading is free: where the server measured 0 it measured nothing.
    let overhead = named(name).and_then(|timer| timer.overhead_cycles).filter(|cycles| *cycles > 0);
    let cycles = named("CYCLE").and_then(|timer| timer.frequency);
    Some(match (overhead, cycles) {
        (Some(overhead_cycles), Some(cycles_per_s)) => {
            Reading::Value(TimerPrice { timer: name.to_owned(), overhead_cycles, cycles_per_s })
        }
        (None, _) => Reading::absent(format!("the server does not know what reading {name} costs")),
        (_, None) => Reading::absent("the server does not know the frequency of the timer CYCLE"),
    })
}

/// Whether a kind of event uses the timer that it has by default.
pub(super) fn is_default(kind: &str, chosen: &BTreeMap<String, String>) -> bool {
    let by_default = TIMERS.iter().find(|(of, _)| *of == kind);
    by_default.is_none_or(|(_, timer)| chosen.get(kind).is_none_or(|name| name == timer))
}

/// Whether a server knows what reading each of its timers costs.
pub fn are_known(timers: &[Timer], chosen: &BTreeMap<String, String>) -> bool {
    let prices = TIMERS.iter().filter_map(|(kind, _)| price_of(kind, timers, chosen));
    prices.into_iter().all(|price| price.value().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(name: &str, frequency: Option<u64>, overhead_cycles: Option<u64>) -> Timer {
        Timer { name: name.to_owned(), frequency, resolution: Some(1), overhead_cycles }
    }

    #[test]
    fn twice_the_overhead_in_cycles_becomes_nanoseconds() {
        let timers = [
            timer("CYCLE", Some(2_500_000_000), Some(50)),
            timer("NANOSECOND", Some(1_000_000_000), Some(110)),
        ];
        let none = BTreeMap::new();
        let of = |kind| price_of(kind, &timers, &none).unwrap();
        assert_eq!(of("wait").value().unwrap().ns_per_event(), 40.0);
        assert_eq!(of("statement").value().unwrap().ns_per_event(), 88.0);
        assert_eq!(price_of("memory", &timers, &none), None);
        // Where it can be chosen, what is chosen counts.
        let chosen = BTreeMap::from([("statement".to_owned(), "CYCLE".to_owned())]);
        let chosen = price_of("statement", &timers, &chosen).unwrap();
        assert_eq!(chosen.value().unwrap().timer, "CYCLE");
    }

    #[test]
    fn all_are_known_or_not() {
        let of = |overhead| {
            let all = ["CYCLE", "NANOSECOND", "MICROSECOND"];
            all.map(|name| timer(name, Some(1), Some(if name == "CYCLE" { overhead } else { 9 })))
        };
        assert!(are_known(&of(9), &BTreeMap::new()) && !are_known(&of(0), &BTreeMap::new()));
    }

    #[test]
    fn an_overhead_or_a_frequency_that_is_not_known_is_absent() {
        let none = BTreeMap::new();
        let no_overhead = [timer("CYCLE", Some(1), None)];
        let zero_overhead = [timer("CYCLE", Some(1), Some(0))];
        let no_frequency = [timer("CYCLE", None, Some(50))];
        for timers in [no_overhead, zero_overhead, no_frequency] {
            assert!(price_of("wait", &timers, &none).unwrap().why().is_some());
        }
    }
}
