//! Which arm explains why ours is not what was published. The rule is mechanical, and [`RULE`] says it.

use waggle_instrumentation::profile::{Base, ConsumerRule, InstrumentRule, MetricRule, Profile};

use crate::analysis::{Analysis, Interval, analyse_against};
use crate::metric::Metric;
use crate::report::effect::Effect;
use crate::report::{Report, words};
use crate::suite::{Scenario, default_profile};
use crate::window::Cell;

/// When an arm explains a difference.
pub(super) const RULE: &str = "Explanation. \"None needed\": the published mean lies in our interval. \"Cannot tell\": so does zero. \
                               Else there is a difference, what would have to be added to ours to be at the published mean. \
                               An arm explains it where it was run under the same workload in the same order, differs \
                               from the scenario in exactly one factor (options of the start, \
                               instruments, consumers, counters of InnoDB or a variable), the 95 % \
                               interval of the arm against the scenario holds the difference, and the \
                               arm costs, gains or changes against it, also among all comparisons of that \
                               metric (Holm); and where the same holds under every other workload of which the \
                               difference needs an explanation, and under one at least: by one workload alone it would be as \
                               well one by chance, so that in a suite with one workload nothing is explained. \
                               Arms that follow each other in a fixed order explain \
                               nothing. All else is \"not explained\".";

/// Where ours is the same as what was published; and where it would be the same as nothing, too, since its
/// interval is wide.
pub(super) fn of_the_same(ours: &Interval, published_is_zero: bool) -> &'static str {
    match ours.holds(0.0) && !published_is_zero {
        true => "cannot tell",
        false => "none needed",
    }
}

/// Where no arm does.
pub(super) const NOT_EXPLAINED: &str = "not explained";

/// What is to be explained: what would have to be added to ours to be at what was published.
pub(super) struct Difference<'a> {
    /// Under which workload.
    pub(super) workload: &'a str,
    /// Of the workload, those that it is of; all in one order.
    pub(super) cells: Vec<&'a Cell>,
    /// In % or in the unit of the metric.
    pub(super) size: f64,
}

/// The arms beside a scenario that differ from it in one factor.
pub(super) struct Arms<'a> {
    report: Report<'a>,
    scenario: &'a Scenario,
    /// Each with the factor.
    others: Vec<(&'a Scenario, String)>,
    /// Every arm against the scenario.
    analysis: Analysis,
}

impl<'a> Arms<'a> {
    pub(super) fn of(report: Report<'a>, scenario: &'a Scenario) -> Arms<'a> {
        let suite = report.suite;
        let apart = |other: &'a Scenario| match factors(scenario, other).as_slice() {
            [factor] if other.name != suite.baseline => Some((other, factor.clone())),
            _ => None,
        };
        let others: Vec<(&Scenario, String)> = suite.scenarios.iter().filter_map(apart).collect();
        let analysis = match others.is_empty() {
            true => Analysis::default(),
            false => analyse_against(suite, &scenario.name, report.windows),
        };
        Arms { report, scenario, others, analysis }
    }

    /// The scenario that they are beside.
    pub(super) fn scenario(&self) -> &'a Scenario {
        self.scenario
    }

    /// The arms that explain a difference between ours and what was published, and `others` under other workloads,
    /// with what they showed of the first.
    pub(super) fn explain(
        &self,
        metric: Metric,
        difference: &Difference<'_>,
        others: &[Difference<'_>],
    ) -> String {
        let mut said = Vec::new();
        for (arm, factor) in &self.others {
            let explains = |it: &Difference<'_>| self.explains(arm, metric, it);
            let of_others =
                || !others.is_empty() && others.iter().all(|other| explains(other).is_some());
            if let Some(size) = explains(difference).filter(|_| of_others()) {
                let size = words::size_interval(metric, &size);
                said.push(format!("{} (other {factor}): {size}", arm.name));
            }
        }
        if said.is_empty() { NOT_EXPLAINED.to_owned() } else { said.join("; ") }
    }

    /// How far an arm is from the scenario, where that explains a difference.
    fn explains(
        &self,
        arm: &Scenario,
        metric: Metric,
        difference: &Difference<'_>,
    ) -> Option<Interval> {
        let first = difference.cells.first()?;
        if self.report.suite.is_as_listed(first) {
            return None;
        }
        let effect = Effect {
            arm: &arm.name,
            baseline: &self.scenario.name,
            metric,
            workload: difference.workload,
            order: first.order.as_deref(),
            is_open: false,
        };
        let size = effect.size(&self.analysis, self.report.windows, &difference.cells)?;
        (size.holds(difference.size) && effect.is_shown(&self.analysis)).then_some(size)
    }
}

/// What a scenario has of each factor but its start and its variables. A profile that begins with what is
/// set begins with the default: our servers are started for it.
#[derive(Default)]
struct Rules {
    instruments: Vec<InstrumentRule>,
    consumers: Vec<ConsumerRule>,
    metrics: Vec<MetricRule>,
}

impl Rules {
    fn of(scenario: &Scenario) -> Rules {
        let own = scenario.profile();
        let default = match own.as_ref().map(|profile| profile.base) {
            Some(Base::Current | Base::Default) => default_profile(),
            Some(Base::Off) | None => None,
        };
        let mut rules = Rules::default();
        for Profile { instruments, consumers, metrics, .. } in default.into_iter().chain(own) {
            rules.instruments.extend(instruments);
            rules.consumers.extend(consumers);
            rules.metrics.extend(metrics);
        }
        rules
    }
}

/// The factors in which two scenarios differ.
fn factors(one: &Scenario, other: &Scenario) -> Vec<String> {
    let (rules, others) = (Rules::of(one), Rules::of(other));
    let mut factors: Vec<String> = [
        ("options of the start", one.start != other.start),
        ("instruments", rules.instruments != others.instruments),
        ("consumers", rules.consumers != others.consumers),
        ("counters of InnoDB", rules.metrics != others.metrics),
    ]
    .into_iter()
    .filter(|(_, differs)| *differs)
    .map(|(factor, _)| factor.to_owned())
    .collect();
    let names = one.variables.keys().chain(other.variables.keys());
    for name in names.filter(|name| one.variables.get(*name) != other.variables.get(*name)) {
        if !factors.contains(name) {
            factors.push(name.clone());
        }
    }
    factors
}

#[cfg(test)]
mod tests {
    use crate::suite::Suite;

    use super::*;

    fn apart(suite: &str, one: &str, other: &str) -> Vec<String> {
        let suite = Suite::find(suite).unwrap();
        let [one, other] =
            [one, other].map(|name| suite.scenarios.iter().find(|it| it.name == name).unwrap());
        factors(one, other)
    }

    #[test]
    fn what_sets_scenarios_apart_follows_from_their_profiles_and_starts() {
        let one_factor = [
            ("rds", "pfsoff", "pfson_conoff_insoff", "options of the start"),
            ("rds", "pfson_conoff_insoff", "pfson_conon_insoff", "consumers"),
            ("rds", "pfson_conon_inson", "pfson_conon_ins_sqlon", "instruments"),
            ("modb", "basic", "basic-history", "consumers"),
            ("modb", "basic-memory", "basic", "instruments"),
            ("modb", "all-events-history", "all-events-memory", "instruments"),
            ("line", "default", "metrics-on", "counters of InnoDB"),
            ("line", "instruments-on-timed", "instruments-on", "instruments"),
        ];
        for (suite, one, other, factor) in one_factor {
            assert_eq!(apart(suite, one, other), [factor], "{suite}: {one}, {other}");
        }
        for (suite, one, other) in [
            ("rds", "pfson_conoff_insoff", "pfson_conon_inson"),
            ("modb", "off", "basic"),
            ("modb", "basic-history", "only-history"),
            ("line", "instruments-on", "instruments-off"),
        ] {
            assert!(apart(suite, one, other).len() > 1, "{suite}: {one}, {other}");
        }
        assert!(apart("rds", "pfsoff", "pfsoff").is_empty());
    }

    #[test]
    fn each_variable_is_a_factor() {
        let mut suite = Suite::find("rds").unwrap();
        let mut other = suite.scenarios.remove(0);
        let mut one = other.clone();
        one.variables.insert("sync_binlog".to_owned(), "0".to_owned());
        assert_eq!(factors(&one, &other), ["sync_binlog"]);
        other.variables.insert("sync_binlog".to_owned(), "1".to_owned());
        assert_eq!(factors(&one, &other), ["sync_binlog"]);
        other.variables.insert("long_query_time".to_owned(), "1".to_owned());
        assert_eq!(factors(&one, &other).len(), 2);
    }
}
