//! What the source says of an effect without figures, beside ours.

use crate::report::Report;
use crate::report::columns;
use crate::report::document::{Block, Datum, Notes, Table};
use crate::report::explanation::{Arms, Difference, of_the_same};
use crate::report::group::Group;
use crate::report::published_effects::{Line, beyond, direction};
use crate::suite::PublishedRange;

/// How to read the table, beside the rule of explanations.
const RULE: &str = "Said without figures: the source names a range of changes, and prints nothing from \
                    which it follows. The difference is that between ours and the nearer end of the \
                    range; it needs no explanation where our interval reaches into the range.";

/// The rule, and a row for each range in each order that has the scenario; nothing where there is none.
pub(super) fn blocks(report: Report<'_>) -> Vec<Block> {
    let heads = [
        "scenario",
        "workload",
        "figure",
        "said, d%",
        "ours, d% (95 % interval)",
        "ours, lowest to highest cell",
        "direction",
        "explanation",
    ];
    let caption = format!(
        "Against {}: what the source says without figures, and ours",
        report.suite.baseline
    );
    let mut table = Table::new(caption, heads.map(str::to_owned).to_vec());
    let groups = Group::all(report);
    let lines: Vec<(Line<'_>, &PublishedRange)> = report
        .suite
        .published_ranges
        .iter()
        .flat_map(|range| lines(report, &groups, range).map(move |line| (line, range)))
        .collect();
    for (line, range) in &lines {
        let is_other = |other: &&(Line<'_>, &PublishedRange)| {
            other.0.is_under_other_workload(line) && other.1.scenario == range.scenario
        };
        let others = lines.iter().filter(is_other);
        let others: Vec<_> = others.filter_map(|(line, range)| difference(line, range)).collect();
        let data = data(line, range, &others, &mut table.notes);
        table.row(data);
    }
    match table.rows.is_empty() {
        true => Vec::new(),
        false => vec![Block::Paragraph(RULE.to_owned()), Block::Table(table)],
    }
}

/// A restart for each scenario is for what belongs to a server life, not for changes of rates and times.
fn is_beside(group: &Group<'_>, range: &PublishedRange) -> bool {
    let is_of_lives = group.order.is_some_and(|order| order.restart);
    !group.is_open && !is_of_lives && group.workload == range.workload
}

/// What a range is of, in each order that has the scenario.
fn lines<'a>(
    report: Report<'a>,
    groups: &'a [Group<'a>],
    range: &'a PublishedRange,
) -> impl Iterator<Item = Line<'a>> {
    let metric = columns::metric(range.figure);
    groups.iter().filter(|group| is_beside(group, range)).filter_map(move |group| {
        let scenario = group.scenarios.iter().find(|one| one.name == range.scenario)?;
        Some(Line { report, group, scenario, arm: &scenario.name, metric })
    })
}

fn data(
    line: &Line<'_>,
    range: &PublishedRange,
    others: &[Difference<'_>],
    notes: &mut Notes,
) -> Vec<Datum> {
    let said = line.range(&[range.low_percent, range.high_percent], false);
    let said = Datum::published(said).note(notes.number(&range.says));
    let [scenario, workload, figure] = line.names(notes);
    let [ours, lowest_to_highest] = line.ours_in_words(notes);
    let [direction, explanation] = answer(line, range, others);
    vec![scenario, workload, figure, said, ours, lowest_to_highest, direction, explanation]
}

/// The direction, and the explanation of the difference.
fn answer(line: &Line<'_>, range: &PublishedRange, others: &[Difference<'_>]) -> [Datum; 2] {
    let Some(ours) = line.effect() else {
        return [line.absent(), Datum::text("nothing to compare")];
    };
    let (low, high) = (range.low_percent, range.high_percent);
    // Zero where the range holds it.
    let direction = direction(0.0_f64.clamp(low, high), &ours);
    let explanation = match difference(line, range) {
        None => of_the_same(&ours, low <= 0.0 && 0.0 <= high).to_owned(),
        Some(difference) => {
            Arms::of(line.report, line.scenario).explain(line.metric, &difference, others)
        }
    };
    [Datum::text(direction), Datum::text(explanation)]
}

/// What is to be explained: how far ours is from the nearer end of the range. `None` where it reaches into it.
fn difference<'a>(line: &'a Line<'_>, range: &PublishedRange) -> Option<Difference<'a>> {
    let (ours, low, high) = (line.effect()?, range.low_percent, range.high_percent);
    let is_in_it = ours.low <= high && low <= ours.high;
    (!is_in_it).then(|| Difference {
        workload: line.group.workload,
        cells: line.cells(),
        size: beyond(line.metric, ours.value.clamp(low, high), ours.value),
    })
}
