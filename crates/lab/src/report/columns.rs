//! Tables with a row for each scenario of a cell.

use crate::analysis::{Comparison, Verdict};
use crate::metric::Metric;
use crate::report::document::{Datum, Kind, Notes, Table};
use crate::report::group::Group;
use crate::report::words::{self, BELOW_SATURATION, NOT_MEASURED, NOT_PUBLISHED};
use crate::report::{Absent, Report};
use crate::suite::{Figure, Published};
use crate::window::{Cell, Load};

const BASELINE: &str = "baseline";
const MIB: f64 = (1 << 20) as f64;
/// A cell is called by a share of the processors from which the baseline may be so far away.
const SHARE_WITHIN: f64 = 0.05;

/// What a column shows of a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Column {
    /// A metric in its unit.
    Ours(Metric),
    /// What the source printed in its place.
    Published(Metric),
    /// The change of a metric in per cent.
    Percent(Metric),
    /// The change in the metric of the source, from its figures.
    PublishedPercent,
    /// The change of a metric in its unit.
    Difference(Metric),
    /// The metric of the source over that of the baseline.
    Ratio,
    PublishedRatio,
    /// The share of the processors that was in use, by whomever.
    HostShare,
    /// On [`Report::verdict_metric`].
    Verdict,
}

impl Column {
    /// The metric of which it shows what the source printed, `source` being that of the suite; `None`
    /// where it shows ours.
    pub(super) fn published(self, source: Metric) -> Option<Metric> {
        match self {
            Column::Published(metric) => Some(metric),
            Column::PublishedPercent | Column::PublishedRatio => Some(source),
            _ => None,
        }
    }

    pub(super) fn head(self, report: Report<'_>) -> String {
        let source = words::name(report.source_metric());
        let with_unit = |what: String, metric| format!("{what}, {}", words::unit(metric));
        match self {
            Column::Ours(metric) => with_unit(words::name(metric).to_owned(), metric),
            Column::Published(Metric::Rss) => "published memory over the baseline, MiB".to_owned(),
            Column::Published(metric) => {
                with_unit(format!("published {}", words::name(metric)), metric)
            }
            Column::Percent(metric) => format!("{}, d% (95 % interval)", words::name(metric)),
            Column::PublishedPercent => format!("published {source}, d%"),
            Column::Difference(Metric::Rss) => {
                "memory of the server (RSS) over the baseline, MiB (95 % interval)".to_owned()
            }
            Column::Difference(metric) => {
                let unit = words::unit(metric);
                format!("{} over the baseline, {unit} (95 % interval)", words::name(metric))
            }
            Column::Ratio => format!("{source} over that of the baseline, ratio"),
            Column::PublishedRatio => {
                format!("published {source} over that of the baseline, ratio")
            }
            Column::HostShare => "processors in use, % of those that the server may use".to_owned(),
            Column::Verdict => words::verdict_on(report.verdict_metric()),
        }
    }

    pub(super) fn datum(
        self,
        report: Report<'_>,
        cell: &Cell,
        scenario: &str,
        notes: &mut Notes,
    ) -> Datum {
        let is_baseline = scenario == report.suite.baseline;
        match self {
            Column::Ours(metric) => ours(report, cell, scenario, metric, notes),
            Column::Published(metric) => published(report, cell, scenario, metric, notes),
            Column::PublishedPercent => published_percent(report, cell, scenario, notes),
            Column::PublishedRatio => published_ratio(report, cell, scenario, notes),
            Column::HostShare => host_share(report, cell, scenario, notes),
            _ if is_baseline => Datum::text(BASELINE),
            Column::Percent(metric) => change(report.answer(cell, scenario, metric), notes),
            Column::Difference(metric) => of(report.answer(cell, scenario, metric), |one| {
                words::difference(metric, &one.difference)
            }),
            Column::Ratio => of(report.answer(cell, scenario, report.source_metric()), |one| {
                words::number(1.0 + one.percent.value / 100.0, 3)
            }),
            Column::Verdict => verdict_of(report.answer(cell, scenario, report.verdict_metric())),
        }
    }
}

/// A table with a row for each scenario of a cell.
pub(super) fn table(
    report: Report<'_>,
    group: &Group<'_>,
    cell: &Cell,
    columns: &[Column],
) -> Table {
    let mut heads = vec!["scenario".to_owned()];
    heads.extend(columns.iter().map(|column| column.head(report)));
    let mut table = Table::new(words::cell(cell), heads);
    for scenario in &group.scenarios {
        let mut row = vec![Datum::text(&scenario.name)];
        for column in columns {
            row.push(column.datum(report, cell, &scenario.name, &mut table.notes));
        }
        table.row(row);
    }
    table
}

/// A metric as it was measured, in its unit, marked where the baseline left processors idle.
fn ours(
    report: Report<'_>,
    cell: &Cell,
    scenario: &str,
    metric: Metric,
    notes: &mut Notes,
) -> Datum {
    if scenario == report.suite.baseline {
        return match report.baseline(cell, metric) {
            Ok(value) => Datum::number(words::value(metric, value)),
            Err(absent) => absent.datum(),
        };
    }
    match report.answer(cell, scenario, metric) {
        Ok(one) => below_saturation(Datum::number(words::value(metric, one.arm_value)), one, notes),
        Err(absent) => absent.datum(),
    }
}

/// A change in per cent, marked likewise.
fn change(answer: Result<&Comparison, Absent>, notes: &mut Notes) -> Datum {
    match answer {
        Ok(one) => {
            below_saturation(Datum::number(words::percent_interval(&one.percent)), one, notes)
        }
        Err(absent) => absent.datum(),
    }
}

/// A note on a mean of rates over cells, where the load left processors idle in some of them.
pub(super) fn cells_below_saturation<'a>(
    counted: impl Iterator<Item = &'a Comparison>,
) -> Option<String> {
    let (below, others): (Vec<_>, Vec<_>) =
        counted.partition(|one| one.is_saturated == Some(false));
    let (below, all) = (below.len(), below.len() + others.len());
    (below > 0).then(|| format!("{below} of {all} cells are {BELOW_SATURATION}"))
}

/// With a mark where it is a rate and the baseline left processors idle under a closed load.
fn below_saturation(datum: Datum, one: &Comparison, notes: &mut Notes) -> Datum {
    let is_closed = !one.cell.load.is_open();
    match one.metric.is_rate() && is_closed && one.is_saturated == Some(false) {
        true => datum.note(notes.number(BELOW_SATURATION)),
        false => datum,
    }
}

/// What was in use of the processors, marked where the baseline is far from the share that a cell with an
/// open load is called by.
fn host_share(report: Report<'_>, cell: &Cell, scenario: &str, notes: &mut Notes) -> Datum {
    let is_baseline = scenario == report.suite.baseline;
    let Some(share) = report.host_share(cell, scenario) else {
        let absent = match is_baseline {
            true => report.baseline(cell, Metric::CpuPerStatement).err(),
            false => report.answer(cell, scenario, Metric::CpuPerStatement).err(),
        };
        let not_measured = || Datum::new(NOT_MEASURED, Kind::NotRun);
        return absent.map_or_else(not_measured, |absent| absent.datum());
    };
    let datum = Datum::number(words::plain(100.0 * share));
    match cell.load {
        Load::Open { share: named } if is_baseline && (share - named).abs() > SHARE_WITHIN => {
            let note = format!(
                "the rate was chosen for {}, and the baseline had {} in use: read the cell as one of \
                 that",
                words::share(100.0 * named),
                words::share(100.0 * share)
            );
            datum.note(notes.number(&note))
        }
        _ => datum,
    }
}

/// What the source printed, marked where it contradicts itself.
fn published(
    report: Report<'_>,
    cell: &Cell,
    scenario: &str,
    metric: Metric,
    notes: &mut Notes,
) -> Datum {
    let published = report.published(cell, scenario, metric);
    let value = published.and_then(|one| published_value(one, metric));
    let contradicts = published.and_then(|one| contradiction(one, report.source_metric(), metric));
    marked(value.map(words::plain), contradicts, notes)
}

/// The change that follows from the published figures, marked where they contradict themselves.
fn published_percent(report: Report<'_>, cell: &Cell, scenario: &str, notes: &mut Notes) -> Datum {
    if scenario == report.suite.baseline {
        return Datum::text(BASELINE);
    }
    let percent = report.published_percent(cell, scenario).map(words::percent);
    marked(percent, contradiction_of_change(report, cell, scenario), notes)
}

fn published_ratio(report: Report<'_>, cell: &Cell, scenario: &str, notes: &mut Notes) -> Datum {
    if scenario == report.suite.baseline {
        return Datum::text(BASELINE);
    }
    let percent = report.published_percent(cell, scenario);
    let ratio = percent.map(|percent| words::number(1.0 + percent / 100.0, 3));
    marked(ratio, contradiction_of_change(report, cell, scenario), notes)
}

fn marked(text: Option<String>, contradicts: Option<&str>, notes: &mut Notes) -> Datum {
    let Some(text) = text else { return Datum::new(NOT_PUBLISHED, Kind::Published) };
    let datum = Datum::published(text);
    let Some(why) = contradicts else { return datum };
    datum.note(notes.number(&format!("the source contradicts itself; out of the verdict: {why}")))
}

/// Why a change of the metric of the source cannot be trusted: its own figure, or that of the baseline.
pub(super) fn contradiction_of_change<'a>(
    report: Report<'a>,
    cell: &Cell,
    scenario: &str,
) -> Option<&'a str> {
    let published = |scenario| report.published(cell, scenario, report.source_metric());
    let of = |scenario| published(scenario).and_then(|one| one.contradicts.as_deref());
    of(scenario).or_else(|| of(&report.suite.baseline))
}

/// Why a figure contradicts something else in the source.
pub(super) fn contradiction(published: &Published, source: Metric, metric: Metric) -> Option<&str> {
    if metric == source {
        return published.contradicts.as_deref();
    }
    let further = published.further.iter().find(|one| self::metric(one.figure) == metric);
    further?.contradicts.as_deref()
}

/// Ours of what a source prints.
pub(super) fn metric(figure: Figure) -> Metric {
    match figure {
        Figure::Qps => Metric::Qps,
        Figure::Tps => Metric::Tps,
        Figure::Latency => Metric::LatencyMean,
        Figure::Cpu => Metric::ServerShare,
        Figure::Memory => Metric::Rss,
    }
}

/// A figure of the source in the unit of the table.
pub(super) fn published_value(published: &Published, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Qps => published.qps,
        Metric::Tps => published.tps,
        Metric::LatencyMean => published.latency_ms,
        Metric::ServerShare => published.cpu_percent,
        Metric::Rss => published.memory_bytes.map(|bytes| bytes / MIB),
        _ => None,
    }
}

/// What a comparison says in words, or why it says nothing.
pub(super) fn of(
    answer: Result<&Comparison, Absent>,
    words: impl FnOnce(&Comparison) -> String,
) -> Datum {
    match answer {
        Ok(comparison) => Datum::number(words(comparison)),
        Err(absent) => absent.datum(),
    }
}

/// The verdict of a comparison, or why it has none.
pub(super) fn verdict_of(answer: Result<&Comparison, Absent>) -> Datum {
    match answer {
        Ok(one) => verdict(&one.verdict),
        Err(absent) => absent.datum(),
    }
}

/// A verdict with its colour.
pub(super) fn verdict(verdict: &Verdict) -> Datum {
    Datum::new(words::verdict(verdict), kind(verdict))
}

/// How a verdict looks.
pub(super) fn kind(verdict: &Verdict) -> Kind {
    match verdict {
        Verdict::Cost => Kind::Cost,
        Verdict::Gain => Kind::Gain,
        Verdict::Change => Kind::Change,
        Verdict::Below { .. } => Kind::Below,
        Verdict::Free { .. } => Kind::Free,
        Verdict::Overloaded(_) | Verdict::Void(_) => Kind::Void,
        Verdict::NotRun(_) => Kind::NotRun,
    }
}

impl Absent {
    pub(super) fn datum(&self) -> Datum {
        verdict(&self.0)
    }
}
