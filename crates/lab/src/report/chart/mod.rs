//! Charts as SVG, made by small functions.

mod floor;
mod forest;
mod mark;
mod picture;
mod plot;
mod raw;
pub(super) mod scale;
mod threads;

use std::collections::BTreeSet;

use crate::metric::Metric;
use crate::report::Report;
use crate::report::chart::picture::Picture;
use crate::report::group::Group;

/// The style of every chart.
pub(super) const STYLE: &str = include_str!("chart.css");

/// A chart with what is said about it.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    /// A name for links and files.
    pub(super) name: String,
    /// What it shows.
    pub(super) title: String,
    /// How to read it.
    pub(super) caption: String,
    pub(super) picture: Picture,
}

impl Figure {
    fn new(title: String, caption: &str, picture: Picture) -> Figure {
        Figure { name: slug(&title), title, caption: caption.to_owned(), picture }
    }

    /// With what has to be said of the order of a group.
    fn in_order(mut self, group: &Group<'_>) -> Figure {
        if let Some(warning) = group.warning() {
            self.caption = format!("{} {warning}", self.caption);
        }
        self
    }

    /// As a file of its own.
    pub(super) fn alone(self) -> super::Chart {
        let svg = self.picture.alone().to_string() + "\n";
        super::Chart { name: self.name, svg }
    }
}

/// What the comparisons say.
pub(super) fn of_results(report: Report<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let groups = Group::all(report);
    for group in groups.iter().filter(|group| !group.is_open) {
        if group.cells.len() > 1 {
            figures.push(threads::throughput(report, group));
            figures.push(threads::changes(report, group));
        }
        // Closed loads and those at a fixed rate.
        let of_name: Vec<&Group<'_>> = groups.iter().filter(|it| it.name == group.name).collect();
        figures.extend(forest::of(report, &of_name, report.source_metric()));
        figures.extend(forest::of(report, &of_name, Metric::CpuPerStatement));
    }
    figures.push(floor::of(report));
    distinct(figures)
}

/// Every window, a chart for each cell that was run.
pub(super) fn of_windows(report: Report<'_>) -> Vec<Figure> {
    let run = report.cells_run();
    let mut cells = report.cells();
    cells.retain(|cell| run.contains(&cell));
    distinct(cells.iter().map(|cell| raw::of(report, cell)).collect())
}

/// With a number at the end of a name that was there before: names of a suite can differ in what a slug leaves out.
fn distinct(mut figures: Vec<Figure>) -> Vec<Figure> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for figure in &mut figures {
        let plain = figure.name.clone();
        for number in 2.. {
            if taken.insert(figure.name.clone()) {
                break;
            }
            figure.name = format!("{plain}-{number}");
        }
    }
    figures
}

/// Letters, digits and single hyphens.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        match c.is_ascii_alphanumeric() {
            true => slug.push(c.to_ascii_lowercase()),
            false if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            false => {}
        }
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_what_no_file_has_are_told_apart() {
        let figure = |title: &str| Figure {
            name: slug(title),
            title: title.to_owned(),
            caption: String::new(),
            picture: Picture::new("", 0.0, Vec::new()),
        };
        let figures =
            distinct(["one_two", "one-two", "One two", "one two 2", "three"].map(figure).to_vec());
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["one-two", "one-two-2", "one-two-3", "one-two-2-2", "three"]);
    }

    #[test]
    fn a_name_for_a_file_has_nothing_that_a_shell_minds() {
        assert_eq!(slug("read-only, 32 threads: d% of «QPS»/s"), "read-only-32-threads-d-of-qps-s");
    }
}
