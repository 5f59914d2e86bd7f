//! What was asked and how it was measured: all that a reader needs who doubts the answer.

use crate::analysis::Floor;
use crate::report::document::{Block, Datum, Table};
use crate::report::group::Group;
use crate::report::line::Line;
use crate::report::{Report, at_work, circumstances, left_out, machines, void, words};
use crate::suite::{Order, Scenario, Sequence};
use crate::window::{Load, Window};

/// Where no comparison of the baseline with itself has numbers.
pub(super) const NOISE_UNKNOWN: &str = "No comparison of the baseline with itself has enough windows: \
                                        the noise is not known.";
/// A load at a fixed rate is called by a share of the processors from which the baseline may be so far away.
const SHARE_WITHIN: f64 = 0.05;

/// What was compared, what of it counts, where and how.
pub(super) fn blocks(report: Report<'_>) -> Vec<Block> {
    let suite = report.suite;
    let source = &suite.source;
    let mut blocks = vec![
        Block::Heading("What was asked, and how".to_owned()),
        Block::Paragraph(format!("Suite {}: {}.", suite.name, suite.title)),
        Block::Paragraph(format!("Source: {}; {}; {}.", source.what, source.server, source.load)),
        Block::List(suite.scenarios.iter().map(|one| scenario(report, one)).collect()),
    ];
    if suite.scenarios.iter().any(|one| one.profile.is_some()) {
        let text = "What a profile sets, row by row, is in run.json (profiles). What a row needs is set with it. A window \
                    is void where anything does not read as set after a turn.";
        blocks.push(Block::Paragraph(text.to_owned()));
    }
    if suite.orders.len() > 1 {
        let order = |order: &Order| match order.sequence {
            Sequence::AsListed => {
                format!("order {}: {}. {}", order.name, order.title, words::FIXED_ORDER)
            }
            Sequence::Random => format!("order {}: {}", order.name, order.title),
        };
        blocks.push(Block::List(suite.orders.iter().map(order).collect()));
    }
    blocks.push(Block::Subheading("What counts".to_owned()));
    blocks.push(Block::List(made(report)));
    blocks.extend(fixed_rates(report).map(Block::Table));
    blocks.push(Block::Subheading("Where, when and how".to_owned()));
    let all = circumstances::all(report.info).into_iter();
    blocks.push(Block::List(all.map(|(name, value)| format!("{name}: {value}")).collect()));
    blocks.push(Block::Subheading("Caveats".to_owned()));
    blocks.push(Block::List(caveats(report)));
    blocks
}

/// What a scenario sets, in a line.
fn scenario(report: Report<'_>, scenario: &Scenario) -> String {
    let is_baseline = scenario.name == report.suite.baseline;
    let baseline = if is_baseline { " (baseline)" } else { "" };
    let start = (!scenario.start.is_empty()).then(|| format!("start {}", scenario.start.join(" ")));
    let profile = scenario.profile.iter().map(|profile| format!("profile {profile}"));
    let variables = scenario.variables.iter().map(|(name, value)| format!("{name} = {value}"));
    let sets: Vec<String> = start.into_iter().chain(profile).chain(variables).collect();
    let sets = if sets.is_empty() { "sets nothing".to_owned() } else { sets.join(", ") };
    format!("{}{baseline}: {}; {sets}", scenario.name, scenario.title)
}

/// Each load at a fixed rate that was run, with what was in use of the processors; `None` where there is none.
fn fixed_rates(report: Report<'_>) -> Option<Table> {
    let heads = ["load", "CPUs in use, % of those that the server may use"];
    let caption = "Loads at a fixed rate: what the baseline had in use".to_owned();
    let mut table = Table::new(caption, heads.map(str::to_owned).to_vec());
    for cell in report.cells_run() {
        let Load::Open { share: named } = cell.load else { continue };
        let share = report.host_share(cell, &report.suite.baseline);
        let in_use = share
            .map_or_else(|| words::NOT_MEASURED.to_owned(), |share| words::plain(100.0 * share));
        let mut in_use = Datum::number(in_use);
        if let Some(share) = share.filter(|share| (share - named).abs() > SHARE_WITHIN) {
            let note = format!(
                "the rate was chosen for {}, and the baseline had {} in use: read the cell as one of that",
                words::share(100.0 * named),
                words::share(100.0 * share)
            );
            in_use = in_use.note(table.notes.number(&note));
        }
        table.rows.push(vec![Datum::text(words::cell(cell)), in_use]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// How much of the schedule was run, and how much of it counts, a sentence each.
pub(super) fn unfinished(report: Report<'_>) -> Vec<String> {
    let (analysis, run) = (report.analysis, &report.info.run);
    let planned = run.windows_planned as usize;
    let windows = words::count(analysis.windows, "window", "windows");
    let share = words::share(100.0 * analysis.void as f64 / analysis.windows.max(1) as f64);
    let made = match analysis.windows < planned {
        true => format!("The run is not finished: {windows} of {planned} were made"),
        false => format!("The run is finished: {windows} were made"),
    };
    let made =
        format!("{made}; {} of them ({share}) are void and count for nothing.", analysis.void);
    std::iter::once(made)
        .chain(void::cells(report))
        .chain(void::windows(report))
        .chain(void::stolen(report))
        .chain(void::unsteady(report))
        .chain(void::retries(report))
        .collect()
}

/// The same with what was left out, and in which cells few sessions were at work.
fn made(report: Report<'_>) -> Vec<String> {
    let made = unfinished(report).into_iter().chain(left_out::in_words(report));
    made.chain(at_work::few(report)).collect()
}

/// What the comparisons of the baseline with itself show.
pub(super) fn noise(report: Report<'_>) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("Noise floor".to_owned())];
    let floor = &report.analysis.floor;
    if floor.is_empty() {
        blocks.push(Block::Paragraph(NOISE_UNKNOWN.to_owned()));
        return blocks;
    }
    let text = "In every block a second arm is set as the baseline is: what differs between the two is noise. An interval \
                of 95 % that leaves out 0 is a false alarm; 1 in 20 is to be expected. The half-width is half the length of \
                these intervals, median over the cells; the suite declares how much it may be. Where the mean is far from \
                0, not all of it is chance, and smaller effects are not shown by this run.";
    blocks.push(Block::Paragraph(text.to_owned()));
    let heads = [
        "metric",
        "compared",
        "false alarms",
        "at most by chance",
        "half-width",
        "declared",
        "mean",
    ];
    let mut table =
        Table::new("The baseline compared with itself", heads.map(str::to_owned).to_vec());
    let row = |floor: &Floor| {
        let count = |count: usize| Datum::number(words::number(count as f64, 0));
        vec![
            Datum::text(words::name(floor.metric)),
            count(floor.comparisons),
            count(floor.false_alarms),
            count(floor.false_alarms_max()),
            Datum::number(words::share(floor.half_width_percent)),
            Datum::number(words::declared(report.suite.declared_percent(floor.metric))),
            Datum::number(words::percent(floor.mean_percent)),
        ]
    };
    table.rows.extend(floor.iter().map(row));
    blocks.push(Block::Table(table));
    blocks.extend(sharing(report).map(Block::Paragraph));
    blocks
}

/// The noise by what the answer is on, in a sentence.
pub(super) fn noise_in_a_sentence(report: Report<'_>) -> String {
    let mut metrics = vec![report.verdict_metric(), report.source_metric()];
    metrics.dedup();
    let (mut told, mut too_large) = (Vec::new(), Vec::new());
    for metric in metrics {
        let floor = report.analysis.floor.iter().find(|floor| floor.metric == metric);
        let Some(floor) = floor.filter(|floor| floor.half_width_percent.is_finite()) else {
            continue;
        };
        let (name, half_width) = (words::short(metric), floor.half_width_percent);
        let allowed = report.suite.declared_percent(metric);
        let at_most =
            allowed.map_or_else(String::new, |it| format!("allowed: {}; ", words::share(it)));
        told.push(format!(
            "{name} ± {} ({at_most}false alarms: {} of {})",
            words::share(half_width),
            floor.false_alarms,
            floor.comparisons
        ));
        too_large.extend(allowed.filter(|allowed| half_width > *allowed).map(|_| name));
    }
    if told.is_empty() {
        return NOISE_UNKNOWN.to_owned();
    }
    let told = format!("Noise of equal arms, in one cell: {}.", told.join(", "));
    match too_large.is_empty() {
        true => told,
        false => format!(
            "{told} The noise of {} is larger than the suite allows: do not quote these changes. Use more --blocks or \
             a quieter host.",
            too_large.join(" and ")
        ),
    }
}

/// How far an arm that shares a server is from itself alone on one, under each closed load, beside how far the baseline is
/// from itself; `None` where no arm shares one, or nobody knows.
fn sharing(report: Report<'_>) -> Option<String> {
    let groups = Group::all(report);
    let changes = |arm: &str, baseline: &str| {
        let change = |group: &Group<'_>| {
            let change = Line { report, group, arm, baseline }.change(report.verdict_metric())?;
            Some(format!("{} {}", group.name, words::percent_interval(&change)))
        };
        let closed = groups.iter().filter(|group| !group.is_open);
        closed.filter_map(change).collect::<Vec<_>>().join(", ")
    };
    let (scenario, baseline) = (&report.suite.also_alone()?.name, &report.suite.baseline);
    let (alone, again) = (changes(Window::ALONE, scenario), changes(Window::AGAIN, baseline));
    (!alone.is_empty()).then(|| {
        format!(
            "Where arms share a server, {scenario} is there again, alone on a server of its own. {} of the one alone \
             against the one that shares: {alone}; of the baseline against itself: {again}. What is more than that is in \
             the effects of all arms that share the server.",
            words::short(report.verdict_metric())
        )
    })
}

fn caveats(report: Report<'_>) -> Vec<String> {
    let mut caveats = vec![
        format!(
            "\"Proven below\" is said up to {}: smaller effects are of no interest to the suite. It stands at 5 % for each \
             comparison by itself.",
            words::share(report.suite.margin_percent)
        ),
        "A loss of 20 % of the throughput is a ratio of 1.25 the other way round; sources that print the ratio seem to find \
         more."
            .to_owned(),
        "Published figures come from other hardware and other versions, without intervals. They take no part in our \
         numbers."
            .to_owned(),
    ];
    let of_source = &report.suite.source.caveats;
    caveats.extend(of_source.iter().map(|one| format!("Of the source: {one}")));
    let of_run = report.info.caveats.iter().filter(|one| !of_source.contains(one));
    caveats.extend(of_run.cloned());
    caveats.extend(machines::caveats(report));
    caveats
}
