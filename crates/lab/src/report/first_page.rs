//! What a reader needs before any table: the question, the verdicts, the noise, the circumstances.

use crate::report::document::{Block, Datum, Table};
use crate::report::effect::Effect;
use crate::report::group::Group;
use crate::report::words::{self, DEFINITION};
use crate::report::{Report, at_work, circumstances, left_out, machines, settings, verdicts, void};
use crate::suite::{Order, Sequence};
use crate::window::Window;

/// Where no comparison of the baseline with itself has numbers.
pub(super) const NOISE_UNKNOWN: &str = "No comparison of the baseline with itself has enough windows: \
                                        the noise is not known.";

/// The first page.
pub(super) fn blocks(report: Report<'_>) -> Vec<Block> {
    let mut blocks = asked(report);
    blocks.push(Block::Heading("Verdicts".to_owned()));
    blocks.extend(verdicts::blocks(report));
    blocks.extend(without_verdict(report));
    blocks.push(Block::Heading("Noise floor".to_owned()));
    blocks.extend(noise(report));
    blocks.push(Block::Heading("Environment".to_owned()));
    blocks.push(Block::Table(circumstances::table(report.facts)));
    blocks.push(Block::Heading("Caveats".to_owned()));
    blocks.push(Block::List(caveats(report)));
    blocks
}

/// What has no row among the verdicts, and what is void.
fn without_verdict(report: Report<'_>) -> Option<Block> {
    let left_out = left_out::in_words(report);
    (!left_out.is_empty()).then_some(Block::List(left_out))
}

fn asked(report: Report<'_>) -> Vec<Block> {
    let suite = report.suite;
    let source = &suite.source;
    let mut blocks = vec![
        Block::Heading("What was asked".to_owned()),
        Block::Paragraph(format!("Suite {}: {}", suite.name, suite.title)),
        Block::Paragraph(format!("Source: {}; {}; {}", source.what, source.server, source.load)),
        Block::Paragraph(made(report).join(" ")),
        Block::Table(scenarios(report)),
    ];
    let profiles = settings::profiles(suite);
    if !profiles.is_empty() {
        blocks.push(Block::Paragraph(settings::RULE.to_owned()));
        blocks.push(Block::List(profiles));
    }
    if suite.orders.len() > 1 {
        let order = |order: &Order| match order.sequence {
            Sequence::AsListed => {
                format!("{}: {}. {}", order.name, order.title, words::FIXED_ORDER)
            }
            Sequence::Random => format!("{}: {}", order.name, order.title),
        };
        let text = "Orders of the scenarios in a block. Each is reported by itself; the published \
                    figures stand beside the first one, which is that of the source, and those of \
                    memory beside the one with a server for each scenario, where there is one; in \
                    effects.md beside every order that has the scenario.";
        blocks.push(Block::Paragraph(text.to_owned()));
        blocks.push(Block::List(suite.orders.iter().map(order).collect()));
    }
    blocks
}

/// How much of the schedule was run, and how much of it counts, a sentence each.
pub(super) fn unfinished(report: Report<'_>) -> Vec<String> {
    let (analysis, run) = (report.analysis, &report.facts.run);
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

/// The same, and in which cells few sessions were at work.
fn made(report: Report<'_>) -> Vec<String> {
    unfinished(report).into_iter().chain(at_work::few(report)).collect()
}

/// What each scenario sets.
fn scenarios(report: Report<'_>) -> Table {
    let heads = ["scenario", "what it is", "static: options of a start", "dynamic: what is set"];
    let heads = heads.map(str::to_owned).to_vec();
    let mut table = Table::new("What was compared", heads);
    let or_nothing = |text: String| if text.is_empty() { "nothing".to_owned() } else { text };
    for scenario in &report.suite.scenarios {
        let profile = scenario.profile.iter().map(|profile| format!("profile {profile}"));
        let variables = scenario.variables.iter().map(|(name, value)| format!("{name} = {value}"));
        let dynamic: Vec<String> = profile.chain(variables).collect();
        let name = match scenario.name == report.suite.baseline {
            true => format!("{} (baseline)", scenario.name),
            false => scenario.name.clone(),
        };
        table.row(vec![
            Datum::text(name),
            Datum::text(&scenario.title),
            Datum::text(or_nothing(scenario.start.join(" "))),
            Datum::text(or_nothing(dynamic.join(", "))),
        ]);
    }
    table
}

/// What the comparisons of the baseline with itself show.
fn noise(report: Report<'_>) -> Vec<Block> {
    let text = "In every block a second arm is set as the baseline is. What differs between the two is noise, \
                and an interval that leaves out 0 is a false alarm; 1 in 20 is to be expected. The suite \
                declares how large an effect on a metric a run shall be able to show; the half-width is to \
                be at most that. Where the mean of what was found is far from 0, not all of it is chance, and smaller effects are \
                not shown by this run. What chance explains is reckoned for comparisons that are independent; those \
                of one block share their servers, and may be wrong together.";
    let text = Block::Paragraph(text.to_owned());
    let heads = [
        "metric",
        "A/A comparisons (number)",
        "false alarms (number)",
        "most false alarms that chance explains (number)",
        "half-width of the 95 % interval, median (%)",
        "declared detectable (%)",
        "mean of what was found (%)",
    ];
    let mut table =
        Table::new("The baseline compared with itself", heads.map(str::to_owned).to_vec());
    for floor in &report.analysis.floor {
        table.row(vec![
            Datum::text(words::name(floor.metric)),
            Datum::number(words::number(floor.comparisons as f64, 0)),
            Datum::number(words::number(floor.false_alarms as f64, 0)),
            Datum::number(words::number(floor.false_alarms_max() as f64, 0)),
            Datum::number(words::share(floor.half_width_percent)),
            Datum::number(words::declared(report.suite.declared_percent(floor.metric))),
            Datum::number(words::percent(floor.mean_percent)),
        ]);
    }
    let table = match table.rows.is_empty() {
        true => Block::Paragraph(NOISE_UNKNOWN.to_owned()),
        false => Block::Table(table),
    };
    [text, table].into_iter().chain(sharing(report).map(Block::Paragraph)).collect()
}

/// How far an arm that shares a server is from itself alone on one, under each closed load, beside how far the baseline is
/// from itself; `None` where no arm shares one, or nobody knows.
fn sharing(report: Report<'_>) -> Option<String> {
    let groups = Group::all(report);
    let changes = |arm: &str, baseline: &str| {
        let change = |group: &Group<'_>| {
            let metric = report.verdict_metric();
            let (workload, order, is_open) =
                (group.workload, group.order_of_cells(), group.is_open);
            let effect = Effect { arm, baseline, metric, workload, order, is_open };
            let change = words::percent_interval(&effect.change(report.analysis)?);
            Some(format!("{} {change}", group.name))
        };
        let closed = groups.iter().filter(|group| !group.is_open);
        closed.filter_map(change).collect::<Vec<_>>().join(", ")
    };
    let (scenario, baseline) = (&report.suite.also_alone()?.name, &report.suite.baseline);
    let (alone, again) = (changes(Window::ALONE, scenario), changes(Window::AGAIN, baseline));
    let alone_against_baseline = changes(Window::ALONE, baseline);
    (!alone.is_empty()).then(|| {
        format!(
            "Where arms share a server, one of them, {scenario}, is there again, alone on a server of its own. The {} of the one \
             alone against the one that shares: {alone}; of the baseline against itself: {again}. What is more than that comes \
             of what the others leave on a server that is shared, or of its sessions, which log in before any of them is set; it \
             is in the effects of all arms that share it. The one alone against {baseline}: \
             {alone_against_baseline}.",
            words::short(report.verdict_metric())
        )
    })
}

fn caveats(report: Report<'_>) -> Vec<String> {
    let mut caveats = vec![format!(
        "{DEFINITION}. A loss of 20 % of the throughput is a ratio of 1.25 the other way round; sources \
         that print the ratio seem to find more."
    )];
    caveats.push(format!(
        "A verdict of cost or gain has stayed significant at 5 % after Holm's correction over all \
         comparisons of its metric. \"Below what we can detect\" is no proof of zero; \"proven below\" is \
         a proof that the effect is smaller than that, where that is at most {}: smaller effects are of \
         no interest to the suite. It stands at 5 % for each comparison by itself: of 100 effects that are just \
         as large as that, about 5 are wrongly said to be smaller.",
        words::share(report.suite.margin_percent)
    ));
    caveats.push(
        "Published figures come from other hardware and other versions, without intervals. They are \
         printed beside ours, and take no part in our numbers."
            .to_owned(),
    );
    let of_source = &report.suite.source.caveats;
    caveats.extend(of_source.iter().map(|one| format!("Of the source: {one}")));
    let of_run = report.facts.caveats.iter().filter(|one| !of_source.contains(one));
    caveats.extend(of_run.cloned());
    caveats.extend(machines::caveats(report));
    caveats
}
