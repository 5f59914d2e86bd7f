//! The expected cost of a plan, before it is applied.

use std::fmt::Write as _;
use std::time::Duration;

use waggle_instrumentation::Plan;
use waggle_instrumentation::cost::{Calibration, Expected, Forecast, Origin, Question};
use waggle_instrumentation::status::StatusError;
use waggle_model::Reading;
use waggle_mysql::Connection;

use super::super::super::Failure;
use super::super::NOT_SAID;
use super::super::process::{cpu_of_server, process_of};
use super::super::status::mib;
use super::stored;
use super::table::{between, busy, certainty, columns, number, reasons, source_of, sum};

/// What is expected of a plan on a server.
pub(in super::super) struct Here {
    /// Absent where events may not be read.
    pub(in super::super) cost: Reading<Forecast>,
    prices: Reading<Calibration>,
    /// The process of the server, where it is known.
    pub(in super::super) pid: Option<u32>,
}

impl Here {
    /// Counts for `interval` what is on, and prices what will be.
    pub(in super::super) fn read(
        connection: &mut Connection,
        plan: &Plan,
        interval: Duration,
    ) -> Result<Here, Failure> {
        let pid = process_of(connection).map_err(Failure::Cannot)?;
        let prices = stored(connection, pid)?;
        let mut server_ns = || cpu_of_server(pid);
        let question =
            Question { interval, calibration: prices.value(), server_ns: &mut server_ns };
        let cost = match Forecast::read(connection, plan, question) {
            Ok(cost) => Reading::Value(cost),
            Err(StatusError::Unreadable(why)) => Reading::Absent(why),
            Err(error) => return Err(error.into()),
        };
        Ok(Here { cost, prices, pid })
    }

    /// The table, and from where its numbers are. Writing to a string cannot fail.
    pub(in super::super) fn in_words(&self) -> String {
        let cost = match &self.cost {
            Reading::Value(cost) => cost,
            Reading::Absent(why) => return format!("expected here: not measured: {why}\n"),
        };
        let mut text = String::new();
        let _ = writeln!(
            text,
            "expected here, with {:.1} statements/s, {:.1} sessions at work, {}\n",
            cost.statements_per_s,
            cost.running,
            busy(cost.server_cores, cost.server_cores_unknown.as_deref())
        );
        let _ = writeln!(
            text,
            "{:<20} {:>13} {:>13} {:>13} {:>11} {:>9}",
            "class", "per statement", "ns per event", "ns/statement", "CPUs", "of server"
        );
        for class in &cost.classes {
            let _ = writeln!(text, "  {}", line(class));
        }
        let _ = writeln!(text, "  {:<18} {}", "all", sum(&cost.total));
        between(&mut text, &cost.total);
        let _ = writeln!(text, "  {:<18} {}\n", "on now", sum(&cost.now));
        let is_any = |from| cost.classes.iter().any(|class| class.events_from == from);
        if is_any(Origin::PointSelects) {
            text.push_str(
                "events as of point selects: what is off cannot be counted; so many had a statement of \
                 the calibration, which are point selects; once it is on, waggle pfs cost counts yours\n",
            );
        }
        if is_any(Origin::Unknown) {
            text.push_str("events not measured: what is off cannot be counted, and ");
            text.push_str(match &self.prices {
                Reading::Value(_) => "the calibration saw too few of it\n",
                Reading::Absent(_) => "there is no calibration\n",
            });
        }
        let _ = writeln!(text, "{}", source_of(&self.prices));
        let with_events = cost.classes.iter().filter(|class| class.events_per_s != Some(0.0));
        let with_events = with_events.map(|class| (class.class.as_str(), class.kept));
        reasons(&mut text, &cost.total, cost.statement_time, with_events);
        memory(&mut text, cost);
        text
    }
}

fn line(class: &Expected) -> String {
    let mut notes = match class.events_from {
        Origin::Counted => String::new(),
        Origin::PointSelects => "  as of point selects".to_owned(),
        Origin::Unknown => "  events not measured".to_owned(),
    };
    let is_silent = class.events_per_s == Some(0.0);
    let is_unknown = class.events_from == Origin::Unknown && class.total.cores.is_none();
    if !is_silent && !is_unknown {
        notes.push_str(certainty(&class.total));
    }
    let per_statement =
        class.events_per_statement.map_or("-".to_owned(), |events| format!("{events:.2}"));
    format!(
        "{:<18} {per_statement:>13} {:>13} {}{notes}",
        class.class,
        number(class.ns_per_event, 1),
        columns(&class.total),
    )
}

/// Its current and its coming instruments.
fn memory(text: &mut String, cost: &Forecast) {
    let _ = match cost.memory_bytes_total {
        Some(bytes) => write!(text, "memory of Performance Schema: {:.1} MiB", mib(bytes)),
        None => {
            let why = cost.memory_missing.as_deref().unwrap_or(NOT_SAID);
            write!(text, "memory of Performance Schema: not measured: {why}")
        }
    };
    if cost.memory_grows.is_empty() {
        text.push_str("; nothing of it grows with what comes on\n");
        return;
    }
    let buffer = |(name, bytes): (&&str, &Option<u64>)| match bytes {
        Some(bytes) => format!("{name} ({:.1} MiB now)", mib(*bytes)),
        None => (*name).to_owned(),
    };
    let buffers: Vec<String> = cost.memory_grows.iter().map(buffer).collect();
    let _ = writeln!(
        text,
        "; with what comes on grow {}, by as much as there is of it, and keep that until a restart, also \
         when it is undone",
        buffers.join(", ")
    );
}
