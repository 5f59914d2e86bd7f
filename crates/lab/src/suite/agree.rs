//! Whether what a source printed agrees with itself.
//!
//! Three things are looked at: that a printed change follows from the printed figures, that a printed
//! latency fits the sessions that were at work, and that two tables print the same of the same. What
//! rounding can explain is no contradiction.

use std::collections::BTreeMap;

use super::published::{Entry, Figure, Printed};

/// Sessions of a closed load without pauses are at work for at least this share of the time; the
/// rest is the client's own.
const AT_WORK_MIN: f64 = 0.9;
const MS_PER_S: f64 = 1000.0;
const PERCENT: f64 = 100.0;
/// Below what a number of a file can mean.
const NOTHING: f64 = 1e-9;

/// What contradicts something else in `all`, by figure, with the reason.
pub(super) fn contradictions(
    entry: &Entry,
    all: &[Entry],
    baseline: &str,
) -> BTreeMap<Figure, String> {
    let mut found = BTreeMap::new();
    let of_baseline = |other: &&Entry| {
        other.table == entry.table && other.is_of(&entry.workload, entry.threads, baseline)
    };
    if let Some(base) = all.iter().find(of_baseline) {
        for (figure, change) in &entry.changes {
            found.extend(wrong_change(entry, base, *figure, *change).map(|why| (*figure, why)));
        }
    }
    found.extend(wrong_latency(entry).map(|why| (Figure::Latency, why)));
    for other in all {
        let is_same = other.is_of(&entry.workload, entry.threads, &entry.scenario);
        if is_same && other.table != entry.table {
            found.extend(differences(entry, other));
        }
    }
    found
}

/// A change that does not follow from the figures, whatever they were before they were rounded.
fn wrong_change(entry: &Entry, base: &Entry, figure: Figure, printed: Printed) -> Option<String> {
    let (value, base) = (entry.figures.get(&figure)?, base.figures.get(&figure)?);
    // Nothing follows from a baseline that may be 0.
    let base = Some(base).filter(|base| base.low() > 0.0)?;
    let change = |value: f64, base: f64| PERCENT * (value / base - 1.0);
    let low = change(value.low(), base.high()) - NOTHING;
    let high = change(value.high(), base.low()) + NOTHING;
    let fits = printed.high() >= low && printed.low() <= high;
    (!fits).then(|| {
        let follows = change(value.value, base.value);
        format!(
            "the change is printed as {} %, and {} against {} is {follows:.2} %",
            printed.value, value.value, base.value
        )
    })
}

/// A latency that no number of sessions near the printed one can have: in a closed load without
/// pauses, sessions at work = throughput × latency (Little, "A proof for the queuing formula
/// L = λW", Operations Research 1961).
fn wrong_latency(entry: &Entry) -> Option<String> {
    let (tps, latency) = (entry.figures.get(&Figure::Tps)?, entry.figures.get(&Figure::Latency)?);
    let sessions = |tps: f64, latency: f64| tps * latency / MS_PER_S;
    let threads = f64::from(entry.threads);
    let most = sessions(tps.high(), latency.high());
    let fits = sessions(tps.low(), latency.low()) <= threads && most >= AT_WORK_MIN * threads;
    (!fits).then(|| {
        format!(
            "{} transactions per second of {} ms each keep {:.1} sessions at work, not {}",
            tps.value,
            latency.value,
            sessions(tps.value, latency.value),
            entry.threads
        )
    })
}

/// What another table prints otherwise.
fn differences(entry: &Entry, other: &Entry) -> Vec<(Figure, String)> {
    let mut found = Vec::new();
    for (own, others) in [(&entry.figures, &other.figures), (&entry.changes, &other.changes)] {
        for (figure, printed) in own {
            let Some(another) = others.get(figure).filter(|another| !printed.fits(**another))
            else {
                continue;
            };
            let why = format!(
                "the table {} has {}, and the table {} has {}",
                entry.table, printed.value, other.table, another.value
            );
            found.push((*figure, why));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(table: &str, scenario: &str, figures: &[(Figure, f64)], change: Option<f64>) -> Entry {
        let rounded = |value| Printed { value, half: 0.5 };
        Entry {
            table: table.to_owned(),
            workload: "w".to_owned(),
            threads: 8,
            scenario: scenario.to_owned(),
            figures: figures.iter().map(|(figure, value)| (*figure, rounded(*value))).collect(),
            changes: change
                .map(|value| (Figure::Qps, Printed { value, half: 0.005 }))
                .into_iter()
                .collect(),
        }
    }

    fn found(entry: &Entry, others: &[Entry]) -> Vec<Figure> {
        contradictions(entry, others, "off").into_keys().collect()
    }

    #[test]
    fn a_change_has_to_follow_from_figures_that_were_rounded() {
        let base = [entry("t", "off", &[(Figure::Qps, 3456.0)], None)];
        let on = |qps, change| entry("t", "on", &[(Figure::Qps, qps)], Some(change));
        // 3209 / 3456 is 7.147 % less; 7.16 % less may be so before rounding, 7.20 % may not.
        assert_eq!(found(&on(3209.0, -7.15), &base), []);
        assert_eq!(found(&on(3209.0, -7.16), &base), []);
        assert_eq!(found(&on(3209.0, -7.20), &base), [Figure::Qps]);
        assert_eq!(found(&on(3209.0, 7.15), &base), [Figure::Qps]);
        // Without a baseline nothing can be said.
        assert_eq!(found(&on(3209.0, -7.20), &[]), []);
    }

    #[test]
    fn a_latency_has_to_fit_the_sessions_that_were_at_work() {
        let with = |tps, latency| {
            let mut entry = entry("t", "on", &[(Figure::Tps, tps)], None);
            entry.figures.insert(Figure::Latency, Printed { value: latency, half: 0.005 });
            entry
        };
        assert_eq!(found(&with(1000.0, 7.99), &[]), []);
        assert_eq!(found(&with(1000.0, 7.25), &[]), []);
        assert_eq!(found(&with(1000.0, 8.1), &[]), [Figure::Latency]);
        assert_eq!(found(&with(1000.0, 7.0), &[]), [Figure::Latency]);
    }

    #[test]
    fn two_tables_have_to_say_the_same_of_the_same() {
        let detail = entry("detail", "on", &[(Figure::Qps, 31434.0)], Some(-21.3));
        let same = entry("summary", "on", &[(Figure::Qps, 31434.0)], Some(-21.3));
        let value = entry("summary", "on", &[(Figure::Qps, 32327.0)], Some(-21.3));
        let change = entry("summary", "on", &[(Figure::Qps, 31434.0)], Some(-19.06));
        assert_eq!(found(&detail, &[detail.clone(), same]), []);
        assert_eq!(found(&detail, &[value]), [Figure::Qps]);
        assert_eq!(found(&detail, &[change]), [Figure::Qps]);
    }
}
