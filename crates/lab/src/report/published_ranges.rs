//! What the source says of an effect without figures, beside ours.

use crate::report::Report;
use crate::report::columns;
use crate::report::document::{Block, Datum, Notes, Table};
use crate::report::explanation::{Arms, of_the_same};
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
    for range in &report.suite.published_ranges {
        for group in groups.iter().filter(|group| is_beside(group, range)) {
            let metric = columns::metric(range.figure);
            if let Some(scenario) = group.scenarios.iter().find(|one| one.name == range.scenario) {
                let line = Line { report, group, scenario, metric };
                let data = data(&line, range, &mut table.notes);
                table.row(data);
            }
        }
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

fn data(line: &Line<'_>, range: &PublishedRange, notes: &mut Notes) -> Vec<Datum> {
    let said = line.range(&[range.low_percent, range.high_percent], false);
    let said = Datum::published(said).note(notes.number(&range.says));
    let [scenario, workload, figure] = line.names(notes);
    let [ours, lowest_to_highest] = line.ours_in_words(notes);
    let [direction, explanation] = answer(line, range);
    vec![scenario, workload, figure, said, ours, lowest_to_highest, direction, explanation]
}

/// The direction, and the explanation of the difference.
fn answer(line: &Line<'_>, range: &PublishedRange) -> [Datum; 2] {
    let Some(ours) = line.effect() else {
        return [line.absent(), Datum::text("nothing to compare")];
    };
    let (low, high) = (range.low_percent, range.high_percent);
    // Zero where the range holds it.
    let direction = direction(0.0_f64.clamp(low, high), &ours);
    let explanation = match ours.low <= high && low <= ours.high {
        true => of_the_same(&ours, low <= 0.0 && 0.0 <= high).to_owned(),
        false => {
            let nearer = ours.value.clamp(low, high);
            let arms = Arms::of(line.report, line.scenario);
            let difference = beyond(line.metric, nearer, ours.value);
            arms.explain(line.group.workload, &line.cells(), line.metric, difference)
        }
    };
    [Datum::text(direction), Datum::text(explanation)]
}
