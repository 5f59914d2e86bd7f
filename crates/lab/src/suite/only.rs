//! What `--only` confines a suite to.

use super::{Suite, SuiteError};
use crate::window::Cell;

/// The words that choose loads by their kind.
pub(super) const CLOSED: &str = "closed";
pub(super) const OPEN: &str = "open";

impl Suite {
    /// Confines it, and gives the cells that stay and in which there is something to compare. A word names a
    /// workload, a number of threads, a scenario, an order where the suite has several, or `closed` or `open`;
    /// words of one kind add up, kinds confine each other.
    ///
    /// # Errors
    /// It has no such word, or nothing is left.
    pub fn confine(&mut self, only: &[String]) -> Result<Vec<Cell>, SuiteError> {
        let mut words = Words::default();
        for word in only {
            words.take(self, word)?;
        }
        let baseline = self.baseline.clone();
        self.scenarios.retain(|scenario| {
            words.scenarios.is_empty()
                || scenario.name == baseline
                || words.scenarios.contains(&scenario.name)
        });
        let is_compared = |cell: &Cell| {
            let mut others = self.scenarios.iter().filter(|one| one.name != baseline);
            self.scenarios.len() == 1 || others.any(|one| self.has(cell, &one.name))
        };
        let all = self.cells().into_iter();
        let cells: Vec<Cell> = all.filter(|cell| words.has(cell) && is_compared(cell)).collect();
        if cells.is_empty() {
            return Err(SuiteError::NothingLeft {
                name: self.name.clone(),
                only: only.join(" --only "),
            });
        }
        Ok(cells)
    }
}

#[derive(Default)]
struct Words {
    workloads: Vec<String>,
    threads: Vec<u32>,
    scenarios: Vec<String>,
    orders: Vec<String>,
    is_open: Vec<bool>,
}

impl Words {
    fn take(&mut self, suite: &Suite, word: &str) -> Result<(), SuiteError> {
        let is_scenario = suite.scenarios.iter().any(|scenario| scenario.name == word);
        let is_workload = suite.workloads.iter().any(|workload| workload.name == word);
        let is_order = orders(suite).any(|order| order == word);
        let threads = word.parse().ok().filter(|count| suite.threads.contains(count));
        match (word, threads) {
            (CLOSED, _) => self.is_open.push(false),
            (OPEN, _) => self.is_open.push(true),
            (_, Some(threads)) => self.threads.push(threads),
            _ if is_workload => self.workloads.push(word.to_owned()),
            _ if is_scenario => self.scenarios.push(word.to_owned()),
            _ if is_order => self.orders.push(word.to_owned()),
            _ => return Err(unknown(suite, word)),
        }
        Ok(())
    }

    fn has(&self, cell: &Cell) -> bool {
        let is_open = cell.load.is_open();
        (self.workloads.is_empty() || self.workloads.contains(&cell.workload))
            && (self.threads.is_empty() || self.threads.contains(&cell.threads))
            && (self.is_open.is_empty() || self.is_open.contains(&is_open))
            && (self.orders.is_empty()
                || cell.order.as_ref().is_some_and(|order| self.orders.contains(order)))
    }
}

/// The names of the orders that can be told apart: of several.
pub(super) fn orders(suite: &Suite) -> impl Iterator<Item = &str> {
    let has_several = suite.orders.len() > 1;
    suite.orders.iter().filter(move |_| has_several).map(|order| order.name.as_str())
}

fn unknown(suite: &Suite, word: &str) -> SuiteError {
    let workloads = suite.workloads.iter().map(|workload| workload.name.clone());
    let threads = suite.threads.iter().map(u32::to_string);
    let scenarios = suite.scenarios.iter().map(|scenario| scenario.name.clone());
    let orders = orders(suite).map(str::to_owned);
    let known: Vec<String> = workloads.chain(threads).chain(scenarios).chain(orders).collect();
    SuiteError::NoSuchWord {
        name: suite.name.clone(),
        word: word.to_owned(),
        known: known.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(words: &[&str]) -> Result<(Vec<Cell>, Suite), SuiteError> {
        let mut suite = Suite::find("rds").unwrap();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let cells = suite.confine(&words)?;
        Ok((cells, suite))
    }

    #[test]
    fn words_of_one_kind_add_up_and_kinds_confine_each_other() {
        let (cells, suite) =
            only(&["read-only", "1", "32", "closed", "pfson_conon_inson"]).unwrap();
        assert_eq!(cells.len(), 2);
        assert!(cells.iter().all(|cell| cell.workload == "read-only"));
        let names: Vec<&str> = suite.scenarios.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["pfsoff", "pfson_conon_inson"]);
        let (all, _) = only(&[]).unwrap();
        assert_eq!(all.len(), Suite::find("rds").unwrap().cells().len());
    }

    #[test]
    fn cells_of_an_order_that_has_none_of_the_scenarios_do_not_stay() {
        let mut suite = Suite::find("modb").unwrap();
        let cells = suite.confine(&["only-memory".to_owned()]).unwrap();
        assert!(!cells.is_empty());
        assert!(cells.iter().all(|cell| cell.order.as_deref() == Some("one-factor")), "{cells:?}");
    }

    #[test]
    fn an_order_confines_a_suite_that_has_several() {
        let mut suite = Suite::find("modb").unwrap();
        let of = |order: &str| {
            let order = Some(order.to_owned());
            suite.cells().into_iter().filter(|cell| cell.order == order).collect::<Vec<Cell>>()
        };
        let (random, cumulative) = (of("random"), of("cumulative"));
        // The one of the source is closed; the loads at a fixed rate are in the random one.
        assert_eq!((random.len(), cumulative.len()), (4, 1));
        let cells = suite.confine(&["random".to_owned()]).unwrap();
        assert_eq!(cells, random);
        let both = ["random".to_owned(), "cumulative".to_owned()];
        assert_eq!(suite.confine(&both).unwrap(), [cumulative, random].concat());
        // The only order of a suite has a name, and there is nothing to choose.
        assert!(matches!(only(&["random"]), Err(SuiteError::NoSuchWord { .. })));
    }

    #[test]
    fn an_unknown_word_is_told_with_those_that_are_known() {
        let said = only(&["3"]).unwrap_err().to_string();
        assert!(said.contains("read-only") && said.contains("1024"), "{said}");
        let said = only(&["open", "1"]).unwrap_err().to_string();
        assert!(said.contains("--only open --only 1 leaves nothing to run"), "{said}");
    }
}
