//! Where the time of statements went, as JSON, CSV and the slow log have it.

use serde::{Serialize, Serializer};
use waggle_model::{Parts, Spent, Statement, TimeClass, Usage};

/// A number for each class, in the order of the classes.
#[derive(Debug)]
pub(super) struct ByClass<T>(Vec<(&'static str, T)>);

impl<T: Serialize> Serialize for ByClass<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<T> ByClass<T> {
    fn of(parts: &Parts, number: impl Fn(u64) -> T) -> ByClass<T> {
        ByClass(TimeClass::ALL.map(|class| (class.key(), number(parts.get(class)))).into())
    }

    /// Microseconds of one statement.
    pub(super) fn of_statement(parts: &Parts) -> ByClass<f64> {
        ByClass::of(parts, |ns| ns as f64 / 1e3)
    }
}

/// Parts in whole microseconds, which sum to the whole microseconds of all.
fn whole_us(parts: &Parts) -> Parts {
    parts.scaled_to(parts.total() / 1000)
}

/// What the JSON has of an interval and of each digest.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SpentJson {
    /// The sum of all is that of the latencies.
    #[cfg_attr(test, schemars(with = "Option<std::collections::BTreeMap<String, u64>>"))]
    time_us: Option<ByClass<u64>>,
    queue_before_start_us: Option<u64>,
    after_reply_us: Option<u64>,
    read_bytes: Option<u64>,
    written_bytes: Option<u64>,
    major_faults: Option<u64>,
    minor_faults: Option<u64>,
    voluntary_switches: Option<u64>,
    involuntary_switches: Option<u64>,
    /// The sum of all is `active_sessions`.
    #[cfg_attr(test, schemars(with = "Option<std::collections::BTreeMap<String, f64>>"))]
    pub(super) active_sessions_by: Option<ByClass<f64>>,
}

impl SpentJson {
    /// Of an interval of this length, inside which the statements ran for `active_ns`. `is_measured`: those that
    /// end tell where their time went.
    pub(super) fn new(
        spent: &Spent,
        active_ns: u64,
        length_ns: u64,
        is_measured: bool,
    ) -> SpentJson {
        let usage = spent.usage.get();
        let used = |of: fn(&Usage) -> u64| usage.map(of);
        let sessions = |ns: u64| ns as f64 / length_ns.max(1) as f64;
        let not_told_ns = spent.not_told_ns(active_ns, is_measured);
        let by = spent.load(is_measured).zip(not_told_ns).map(|(load, not_told_ns)| {
            let mut by = ByClass::of(load, sessions);
            by.0.push(("not_told", sessions(not_told_ns)));
            by
        });
        SpentJson {
            time_us: spent.parts.get().map(|parts| ByClass::of(&whole_us(parts), |us| us)),
            queue_before_start_us: used(|it| it.queue_before_start_ns / 1000),
            after_reply_us: spent.after_reply.get().map(|ns| ns / 1000),
            read_bytes: used(|it| it.read_bytes),
            written_bytes: used(|it| it.written_bytes),
            major_faults: used(|it| it.major_faults),
            minor_faults: used(|it| it.minor_faults),
            voluntary_switches: used(|it| it.voluntary_switches),
            involuntary_switches: used(|it| it.involuntary_switches),
            active_sessions_by: by.filter(|_| length_ns > 0),
        }
    }
}

/// The columns of the CSV, in their order.
pub(super) fn columns() -> Vec<String> {
    let times = TimeClass::ALL.map(|class| format!("time_{}_us", class.key()));
    let others = [
        "queue_before_start_us",
        "after_reply_us",
        "read_bytes",
        "written_bytes",
        "major_faults",
        "minor_faults",
        "voluntary_switches",
        "involuntary_switches",
    ];
    times.into_iter().chain(others.map(str::to_owned)).collect()
}

/// What stands in these columns.
pub(super) fn cells(spent: &Spent) -> Vec<Option<u64>> {
    let parts = spent.parts.get().map(whole_us);
    let usage = spent.usage.get();
    let used = |of: fn(&Usage) -> u64| usage.map(of);
    let times = TimeClass::ALL.map(|class| parts.map(|parts| parts.get(class)));
    let others = [
        used(|it| it.queue_before_start_ns / 1000),
        spent.after_reply.get().map(|ns| ns / 1000),
        used(|it| it.read_bytes),
        used(|it| it.written_bytes),
        used(|it| it.major_faults),
        used(|it| it.minor_faults),
        used(|it| it.voluntary_switches),
        used(|it| it.involuntary_switches),
    ];
    times.into_iter().chain(others).collect()
}

/// The attributes of a statement in the slow log. Its time on a processor is there where its parts were measured; of
/// the other classes those that are not 0.
pub(super) fn attributes(statement: &Statement<'_>) -> Vec<(String, String)> {
    let mut attributes = Vec::new();
    for class in TimeClass::ALL {
        let Some(ns) = statement.parts_of_latency().map(|parts| parts.get(class)) else { break };
        if ns > 0 || class == TimeClass::Cpu {
            attributes.push((attribute(class), seconds(ns)));
        }
    }
    if let Some(usage) = &statement.usage {
        let number = |name: &str, value: u64| (name.to_owned(), value.to_string());
        attributes.extend([
            ("Queue_before_start_time".to_owned(), seconds(usage.queue_before_start_ns)),
            number("Read_bytes", usage.read_bytes),
            number("Written_bytes", usage.written_bytes),
            number("Major_faults", usage.major_faults),
            number("Minor_faults", usage.minor_faults),
            number("Voluntary_switches", usage.voluntary_switches),
            number("Involuntary_switches", usage.involuntary_switches),
        ]);
    }
    attributes
}

/// `Row_lock_time`: pt-query-digest takes what ends with `_time` for seconds.
fn attribute(class: TimeClass) -> String {
    let key = class.key();
    let (first, rest) = key.split_at(key.len().min(1));
    format!("{}{rest}_time", first.to_ascii_uppercase())
}

/// Seconds as the slow log writes them.
pub(super) fn seconds(ns: u64) -> String {
    format!("{:.6}", ns as f64 / 1e9)
}

#[cfg(test)]
pub(super) mod tests {
    use waggle_model::{DigestKey, DigestName, DigestsMax, Identity, Interval, Sample};

    use super::*;

    pub(crate) const KEY: DigestKey = DigestKey { text: 1, schema: 0 };

    /// An interval of a second with a statement whose parts end in fractions of a microsecond, and one that runs.
    pub(crate) fn interval() -> Interval {
        let mut parts = Parts::default();
        TimeClass::ALL.into_iter().for_each(|class| parts.add(class, 100_000_999));
        let nobody = Identity::default();
        let statement = Statement {
            latency_ns: Some(parts.total()),
            parts: Some(parts),
            usage: Some(Usage { read_bytes: 16_384, ..Usage::default() }),
            ..Statement::unread(2_000_000_000, &nobody)
        };
        let mut interval = Interval::begin(1_000_000_000);
        let name = || DigestName { text: "COMMIT".into(), schema: None, cut: false };
        let keep = |one: &Statement<'_>| Sample::of(one, None);
        interval.count(&statement, KEY, DigestsMax(1), name, keep);
        interval.book_time(Some(1_500_000_000), 2_000_000_000, KEY, DigestsMax(1), name);
        interval.book_after_reply(Some(KEY), 7_000);
        interval.end_ns = 2_000_000_000;
        interval
    }

    #[test]
    fn classes_sum_to_the_latency_and_to_the_load_to_the_last_digit() {
        let interval = interval();
        let json = SpentJson::new(&interval.spent, interval.active_ns, 1_000_000_000, true);
        let times = json.time_us.unwrap().0;
        assert_eq!(times.len(), TimeClass::ALL.len());
        assert_eq!(times.iter().map(|(_, us)| us).sum::<u64>(), interval.latency_ns.sum() / 1000);
        let load = json.active_sessions_by.unwrap().0;
        let sum: f64 = load.iter().map(|(_, sessions)| sessions).sum();
        assert!((sum - interval.active_sessions().unwrap()).abs() < 1e-9, "{load:?}");
        assert_eq!(load.last(), Some(&("not_told", 0.5)));
        assert_eq!((json.after_reply_us, json.read_bytes), (Some(7), Some(16_384)));
        let cells = cells(&interval.spent);
        assert_eq!(cells.len(), columns().len());
        let times = cells.iter().take(TimeClass::ALL.len()).map(|it| it.unwrap());
        assert_eq!(times.sum::<u64>(), interval.latency_ns.sum() / 1000);
    }

    #[test]
    fn what_was_not_measured_is_null_and_an_empty_cell() {
        let json = SpentJson::new(&Spent::default(), 500, 1_000, false);
        let json = serde_json::to_value(json).unwrap();
        assert!(json.as_object().unwrap().values().all(serde_json::Value::is_null), "{json}");
        assert!(cells(&Spent::default()).iter().all(Option::is_none));
    }

    #[test]
    fn every_class_is_explained_in_the_reference() {
        let page = include_str!("../../../../docs/reference/watch-numbers.md");
        for class in TimeClass::ALL {
            assert!(page.contains(&format!("| `{}` |", class.key())), "{class:?}");
        }
    }
}
