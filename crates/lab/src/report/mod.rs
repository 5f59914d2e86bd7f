//! What a run says, as one file of HTML, as Markdown, as CSV and as JSON.
//!
//! The report is put together once, as a list of blocks (`document`), which HTML and Markdown print.
//! Numbers become words in `words` only. Everything from outside is escaped where it is written:
//! there is no other way to write it.

mod answer;
mod asked;
mod at_work;
mod bar;
mod chart;
mod circumstances;
mod csv;
mod difference;
mod document;
mod element;
mod group;
mod html;
mod json;
mod left_out;
mod line;
mod machines;
mod markdown;
mod published;
mod row;
mod terminal;
mod void;
mod words;

#[cfg(test)]
mod published_tests;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub use difference::in_words as differences;
pub use json::of_differences as differences_json;
pub use json::{differences_schema, schema};
pub use left_out::cells_in_words;
pub use words::{cell as cell_in_words, duration as duration_in_words};

use crate::analysis::{Analysis, Comparison, Verdict};
use crate::metric::Metric;
use crate::report::document::Block;
use crate::run_info::{NotRun, RunInfo};
use crate::suite::Suite;
use crate::window::{self, Cell, Measured, Window};

/// A chart as a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// A name for a file, without an ending.
    pub name: String,
    /// The picture, with its style.
    pub svg: String,
}

/// The directory of the charts beside a report.
pub const CHARTS: &str = "charts";

/// Everything a report is made of, and each form of it.
#[derive(Clone, Copy)]
pub struct Report<'a> {
    /// What was compared.
    pub suite: &'a Suite,
    /// The circumstances.
    pub info: &'a RunInfo,
    /// What was measured.
    pub windows: &'a [Window],
    /// What that says.
    pub analysis: &'a Analysis,
}

/// How to read the tables of [`Report::effects`], as a list of Markdown.
pub fn effects_rules() -> String {
    markdown::part(&[published::rules()])
}

/// The lowest and the highest finite value.
fn span(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.map(|value| (value, value)).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
}

/// Why there is no number: a verdict that says so.
#[derive(Clone, Debug, PartialEq)]
struct Absent(Verdict);

impl<'a> Report<'a> {
    /// One file of HTML, which needs nothing beside it.
    pub fn html(self) -> String {
        html::of(&self.title(), &self.blocks())
    }

    /// Whether more of the cells that were run are void than may be: then it is not to be quoted.
    pub fn has_too_many_void(self) -> bool {
        void::CellsRun::of(self).are_too_many_void()
    }

    /// Markdown.
    pub fn markdown(self) -> String {
        markdown::of(&self.title(), &self.blocks())
    }

    /// Direction and size of every effect that the source published, beside ours, as a section of Markdown.
    pub fn effects(self) -> String {
        markdown::part(&published::blocks(self, true))
    }

    /// The same without [`effects_rules`], for a page that has several.
    pub fn effects_without_rules(self) -> String {
        markdown::part(&published::blocks(self, false))
    }

    /// How many published effects are in the same direction as ours, and how many are not, as a sentence; `None` where the
    /// source has no figure of what was run.
    pub fn effects_in_a_sentence(self) -> Option<String> {
        published::summary(self)
    }

    /// The charts of the HTML report, each by itself.
    pub fn charts(self) -> Vec<Chart> {
        let figures = chart::of_results(self).into_iter().chain(chart::of_windows(self));
        figures.map(chart::Figure::alone).collect()
    }

    /// The most telling of it as plain text of less than a screen: for the end of a run.
    pub fn summary(self) -> String {
        terminal::text(self)
    }

    /// Every comparison in the cells that were run beside the published figure as CSV, a line each, the names
    /// of the columns first. What is not there is empty.
    pub fn csv(self) -> String {
        csv::comparisons(self)
    }

    /// Every window as it was measured as CSV, a line each, the names of the columns first. What was not
    /// measured is empty.
    pub fn windows_csv(self) -> String {
        csv::windows(self.windows)
    }

    /// Everything but the raw windows as JSON.
    pub fn json(self) -> String {
        json::of_run(self)
    }

    fn title(&self) -> String {
        format!("waggle lab: {} on {}", self.suite.name, self.info.server.version)
    }

    fn blocks(self) -> Vec<Block> {
        let mut blocks = vec![Block::Heading("Answer".to_owned())];
        blocks.extend(answer::blocks(self));
        blocks.push(Block::Paragraph(asked::noise_in_a_sentence(self)));
        blocks.push(Block::Heading("Charts".to_owned()));
        blocks.push(Block::Figures(chart::of_results(self)));
        blocks.extend(answer::further(self));
        blocks.extend(asked::noise(self));
        blocks.extend(asked::blocks(self));
        let windows = words::count(self.windows.len(), "window", "windows");
        let title = format!("Raw: {windows}, a mark each, by cell ({CHARTS}/*-every-window.svg)");
        blocks.push(Block::Folded(title, chart::of_windows(self)));
        blocks
    }

    /// The cells of the suite that were asked for, and those that were run besides.
    fn cells(&self) -> Vec<Cell> {
        let mut cells = self.suite.cells();
        for comparison in &self.analysis.comparisons {
            if !cells.contains(&comparison.cell) {
                cells.push(comparison.cell.clone());
            }
        }
        let not_asked = |cell: &Cell| {
            let mut left_out = self.info.not_run.iter().filter(|one| one.scenario.is_none());
            left_out.any(|one| one.cell == *cell && one.why == NotRun::NOT_ASKED)
        };
        cells.retain(|cell| !not_asked(cell));
        cells
    }

    /// The cells of which there are windows.
    fn cells_run(&self) -> Vec<&'a Cell> {
        let mut cells: Vec<&Cell> = Vec::new();
        for window in self.windows {
            if !cells.contains(&&window.cell) {
                cells.push(&window.cell);
            }
        }
        cells
    }

    /// What the source printed.
    fn source_metric(&self) -> Metric {
        published::metric(self.suite.metric.figure())
    }

    /// What verdicts are on: the processor time of the server per statement, or QPS where nobody could measure that, as on
    /// a server of another host.
    fn verdict_metric(&self) -> Metric {
        let cpu = Metric::CpuPerStatement;
        let mut counted = self.windows.iter().filter_map(Window::counted).peekable();
        let is_unknown = counted.peek().is_some() && counted.all(|one| cpu.of(one).is_none());
        if is_unknown { Metric::Qps } else { cpu }
    }

    /// The comparison with the baseline of the suite where it has numbers, or why it has none.
    fn answer(&self, cell: &Cell, arm: &str, metric: Metric) -> Result<&'a Comparison, Absent> {
        self.answer_against(&self.suite.baseline, cell, arm, metric)
    }

    /// The same with another scenario in place of the baseline.
    fn answer_against(
        &self,
        baseline: &str,
        cell: &Cell,
        arm: &str,
        metric: Metric,
    ) -> Result<&'a Comparison, Absent> {
        match self.analysis.find(baseline, cell, arm, metric) {
            Some(one) if one.verdict.is_known() => Ok(one),
            Some(Comparison {
                verdict: it @ (Verdict::Overloaded(_) | Verdict::Void(_)), ..
            }) => Err(Absent(it.clone())),
            Some(Comparison { verdict: Verdict::NotRun(why), .. }) => {
                Err(self.absent(cell, arm, why))
            }
            _ => Err(self.absent(cell, arm, Verdict::NOT_YET)),
        }
    }

    /// Why something was not run: what the run says of it, else `otherwise`.
    fn absent(&self, cell: &Cell, arm: &str, otherwise: &str) -> Absent {
        let is_it = |one: &&NotRun| {
            one.cell == *cell && one.scenario.as_deref().is_none_or(|scenario| scenario == arm)
        };
        let known = self.info.not_run.iter().find(is_it);
        Absent(Verdict::NotRun(known.map_or(otherwise, |one| &one.why).to_owned()))
    }

    /// Whether an arm is compared with a scenario in a cell and has windows there, also where nothing of them
    /// counts or could be measured.
    fn was_run(&self, baseline: &str, cell: &Cell, arm: &str) -> bool {
        // That there is no window is true of all metrics.
        let any = self.analysis.find(baseline, cell, arm, Metric::CpuPerStatement);
        any.is_some_and(|one| !one.verdict.is_not_yet())
    }

    /// What the baseline had in a cell: the mean of the comparison that has most pairs.
    fn baseline(&self, cell: &Cell, metric: Metric) -> Result<f64, Absent> {
        let of_cell = self.analysis.comparisons.iter().filter(|one| {
            one.metric == metric
                && one.baseline == self.suite.baseline
                && one.cell == *cell
                && one.verdict.is_known()
                && one.baseline_value.is_finite()
        });
        match of_cell.max_by_key(|one| one.pairs) {
            Some(comparison) => Ok(comparison.baseline_value),
            None => match self.answer(cell, Window::AGAIN, metric) {
                Ok(comparison) => Ok(comparison.baseline_value),
                Err(absent) => Err(absent),
            },
        }
    }

    /// Share of the processors that was in use, mean of the windows that count, 0 to 1; `None` where no
    /// window has it.
    fn host_share(&self, cell: &Cell, arm: &str) -> Option<f64> {
        self.mean(cell, arm, |one| one.host_share)
    }

    fn mean(&self, cell: &Cell, arm: &str, of: fn(&Measured) -> Option<f64>) -> Option<f64> {
        window::mean(self.windows.iter().filter(|one| one.arm == arm && one.cell == *cell), of)
    }
}
