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
        let kinds = kinds(self);
        let scenarios: Vec<String> = self.scenarios.iter().map(|one| one.name.clone()).collect();
        let is_known = |word: &String| {
            scenarios.contains(word) || kinds.iter().any(|(known, _)| known.contains(word))
        };
        if let Some(word) = only.iter().find(|word| !is_known(word)) {
            return Err(unknown(self, word));
        }
        let baseline = self.baseline.clone();
        let are_all = !only.iter().any(|word| scenarios.contains(word));
        self.scenarios.retain(|one| are_all || one.name == baseline || only.contains(&one.name));
        let is_asked = |cell: &Cell| {
            kinds.iter().all(|(known, word)| {
                let mut words = only.iter().filter(|word| known.contains(word)).peekable();
                words.peek().is_none() || words.any(|one| *one == word(cell))
            })
        };
        let is_compared = |cell: &Cell| {
            let mut others = self.scenarios.iter().filter(|one| one.name != baseline);
            self.scenarios.len() == 1 || others.any(|one| self.has(cell, &one.name))
        };
        let all = self.cells().into_iter();
        let cells: Vec<Cell> = all.filter(|cell| is_asked(cell) && is_compared(cell)).collect();
        if cells.is_empty() {
            return Err(SuiteError::NothingLeft {
                name: self.name.clone(),
                only: only.join(" --only "),
            });
        }
        Ok(cells)
    }
}

/// The words of a kind, and the one that a cell has.
type Kind = (Vec<String>, fn(&Cell) -> String);

/// What cells are chosen by.
fn kinds(suite: &Suite) -> [Kind; 4] {
    let kind = |cell: &Cell| if cell.load.is_open() { OPEN } else { CLOSED }.to_owned();
    [
        ([CLOSED, OPEN].map(str::to_owned).to_vec(), kind),
        (suite.workloads.iter().map(|one| one.name.clone()).collect(), |it| it.workload.clone()),
        (suite.threads.iter().map(u32::to_string).collect(), |it| it.threads.to_string()),
        (orders(suite).map(str::to_owned).collect(), |it| it.order.clone().unwrap_or_default()),
    ]
}

/// The names of the orders that can be told apart: of several.
pub(super) fn orders(suite: &Suite) -> impl Iterator<Item = &str> {
    let has_several = suite.orders.len() > 1;
    suite.orders.iter().filter(move |_| has_several).map(|order| order.name.as_str())
}

fn unknown(suite: &Suite, word: &str) -> SuiteError {
    let [_, workloads, threads, orders] = kinds(suite).map(|(words, _)| words);
    let scenarios = suite.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    let known = [workloads, threads, scenarios, orders].concat().join(", ");
    SuiteError::NoSuchWord { name: suite.name.clone(), word: word.to_owned(), known }
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
