//! Statements as sysbench sends them (its `oltp_common.lua`), with values from a seed.

use std::fmt::Write;

use waggle_stats::Random;

/// Rows of a table.
const ROWS: usize = 1_000_000;
/// Tables.
const TABLES: usize = 4;
/// Rows of a statement that fills a table.
const BULK_ROWS: usize = 200;

/// What the statements are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// The transactions of `oltp_read_write`: ten selects of a row, four of a range, two updates, a
    /// delete, an insert.
    ReadWrite,
    /// The inserts of many rows by which `prepare` fills the tables.
    Fill,
}

impl Load {
    /// Every load.
    pub const ALL: [Load; 2] = [Load::ReadWrite, Load::Fill];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Load::ReadWrite => "read write",
            Load::Fill => "fill",
        }
    }

    /// At least `bytes` of statements.
    pub fn statements(self, bytes: usize, seed: u64) -> Vec<String> {
        let mut random = Random::seeded(seed);
        let mut statements = Vec::new();
        let mut length = 0;
        while length < bytes {
            let begin = statements.len();
            match self {
                Load::ReadWrite => transaction(&mut random, &mut statements),
                Load::Fill => statements.push(fill(&mut random)),
            }
            length += statements[begin..].iter().map(String::len).sum::<usize>();
        }
        statements
    }
}

fn transaction(random: &mut Random, out: &mut Vec<String>) {
    out.push("BEGIN".to_owned());
    for _ in 0..10 {
        let (table, id) = place(random);
        out.push(format!("SELECT c FROM sbtest{table} WHERE id={id}"));
    }
    let ranges = [("c", ""), ("SUM(k)", ""), ("c", " ORDER BY c"), ("DISTINCT c", " ORDER BY c")];
    for (what, order) in ranges {
        let (table, id) = place(random);
        let last = id + 99;
        let range = format!("WHERE id BETWEEN {id} AND {last}{order}");
        out.push(format!("SELECT {what} FROM sbtest{table} {range}"));
    }
    let (table, id) = place(random);
    out.push(format!("UPDATE sbtest{table} SET k=k+1 WHERE id={id}"));
    let (table, id) = place(random);
    let c = groups(random, 10);
    out.push(format!("UPDATE sbtest{table} SET c='{c}' WHERE id={id}"));
    let (table, id) = place(random);
    out.push(format!("DELETE FROM sbtest{table} WHERE id={id}"));
    let (k, c, pad) = (random.below(ROWS), groups(random, 10), groups(random, 5));
    let columns = "(id, k, c, pad)";
    out.push(format!("INSERT INTO sbtest{table} {columns} VALUES ({id}, {k}, '{c}', '{pad}')"));
    out.push("COMMIT".to_owned());
}

fn fill(random: &mut Random) -> String {
    let table = 1 + random.below(TABLES);
    let mut statement = format!("INSERT INTO sbtest{table}(k, c, pad) VALUES");
    for row in 0..BULK_ROWS {
        let comma = if row == 0 { "" } else { ", " };
        let (k, c, pad) = (random.below(ROWS), groups(random, 10), groups(random, 5));
        // Writing to a String cannot fail.
        let _ = write!(statement, "{comma}({k}, '{c}', '{pad}')");
    }
    statement
}

fn place(random: &mut Random) -> (usize, usize) {
    (1 + random.below(TABLES), 1 + random.below(ROWS))
}

/// `###########-###########-…` of sysbench.
fn groups(random: &mut Random, count: usize) -> String {
    let group = |_| format!("{:011}", random.below(100_000_000_000));
    (0..count).map(group).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_as_sysbench_sends_them_and_the_same_for_a_seed() {
        let statements = Load::ReadWrite.statements(1, 7);
        assert_eq!(statements.len(), 20);
        assert!(statements[1].starts_with("SELECT c FROM sbtest"), "{}", statements[1]);
        assert_eq!(statements, Load::ReadWrite.statements(1, 7));
        assert_ne!(statements, Load::ReadWrite.statements(1, 8));
        let fill = Load::Fill.statements(1, 7);
        assert_eq!(fill[0].matches("), (").count(), BULK_ROWS - 1);
    }
}
