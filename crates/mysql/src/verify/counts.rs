//! The totals: captured against counted, per connection where the server counts per connection.

use waggle_model::{Loss, Reading};

use super::{Calls, Captured, Report, Source};
use crate::Difference;

/// Statements of one group, on both sides.
struct Group {
    counted: u64,
    captured: Calls,
    /// By how much the server may rightly count more than was captured.
    more: u64,
    /// By how much the server may rightly count less than was captured.
    less: u64,
}

#[derive(Default)]
struct Tally {
    missing: u64,
    extra: u64,
    in_flight: u64,
}

impl Tally {
    fn add(&mut self, group: &Group) {
        let most = group.captured.all() + group.more;
        let least = group.captured.certain.saturating_sub(group.less);
        self.missing += group.counted.saturating_sub(most);
        self.extra += least.saturating_sub(group.counted);
        self.in_flight += group.counted.clamp(least, most).abs_diff(group.captured.all());
    }
}

pub(super) fn count(captured: &Captured, server: &Difference) -> Report {
    let mut report = Report {
        captured: captured.statements(),
        lost: captured.lost,
        nested: captured.nested,
        ..Report::default()
    };
    let tally = match server.statements_by_event() {
        Some(counted) => by_event(captured, server, counted, &mut report),
        None => by_questions(captured, server, &mut report),
    };
    let unseen = captured.lost.get(Loss::EndedUnseen).min(tally.missing);
    report.missing = tally.missing - unseen;
    report.extra = tally.extra;
    report.in_flight = tally.in_flight;
    report
}

/// By event name; by `Questions` where that agrees and the other does not. What a thread counted by
/// event name is in no table, or in two, while it ends and its counts are added to those of its
/// account (`aggregate_thread` in `storage/perfschema/pfs_instr.cc`); `Questions` is added under a lock.
fn by_event(captured: &Captured, server: &Difference, counted: u64, report: &mut Report) -> Tally {
    report.source = Some(Source::ByEventName);
    report.server_counted = Some(counted);
    let tally = by_connection(captured, server, counted);
    // A total says nothing where one connection has too much and another too little.
    if (tally.missing > 0) == (tally.extra > 0) {
        return tally;
    }
    let mut other = Report::default();
    let by_questions = by_questions(captured, server, &mut other);
    let agrees = by_questions.missing == 0 && by_questions.extra == 0;
    if other.server_counted.is_none() || !agrees {
        return tally;
    }
    report.not_compared.push(format!(
        "counts by event name ({counted}): threads ended while they were read; Questions agree"
    ));
    (report.source, report.server_counted) = (other.source, other.server_counted);
    by_questions
}

/// The server counts an event when the statement ends, shortly after its reply: what ran at the
/// first reading may have replied before it, what ran at the second may have replied already.
fn by_connection(captured: &Captured, server: &Difference, counted: u64) -> Tally {
    let mut tally = Tally::default();
    let mut rest = Group {
        counted,
        captured: captured.connections.values().fold(Calls::default(), |all, one| all.plus(*one)),
        more: server.running_before,
        less: server.running_after,
    };
    // Statements without a connection id belong to the rest.
    rest.captured.certain += report_gap(captured, rest.captured);
    let at_edges = rest.captured.at_edges;
    let connections = server.connections.value().into_iter().flatten();
    for (id, one) in connections.filter(|(_, one)| !one.background) {
        let calls = captured.connections.get(id).copied().unwrap_or_default();
        tally.add(&Group {
            counted: one.statements,
            captured: calls,
            more: u64::from(one.running_before),
            less: u64::from(one.running_after),
        });
        rest.counted = rest.counted.saturating_sub(one.statements);
        rest.captured.certain -= calls.certain;
        rest.captured.at_edges -= calls.at_edges;
        rest.more = rest.more.saturating_sub(u64::from(one.running_before));
    }
    // The tables are read one after the other, the total before the connections: what ended in
    // between is in one of them only, more of it at one reading or at the other.
    rest.more += at_edges;
    rest.less += at_edges;
    tally.add(&rest);
    tally
}

fn report_gap(captured: &Captured, by_connection: Calls) -> u64 {
    captured.statements().saturating_sub(by_connection.all())
}

/// The server counts a question when it begins.
fn by_questions(captured: &Captured, server: &Difference, report: &mut Report) -> Tally {
    if let Reading::Absent(why) = &server.events {
        report.not_compared.push(format!("counts by event name and by connection: {why}"));
    }
    let counted = match server.statements_by_questions(&captured.commands) {
        Reading::Value(counted) => counted,
        Reading::Absent(why) => {
            report.not_compared.push(format!("Questions: {why}"));
            return Tally::default();
        }
    };
    report.source = Some(Source::QuestionsLessQuit);
    report.server_counted = Some(counted);
    let at_edges = captured.connections.values().map(|calls| calls.at_edges).sum();
    let mut tally = Tally::default();
    tally.add(&Group {
        counted,
        captured: Calls { certain: captured.statements() - at_edges, at_edges },
        more: server.running_after,
        less: server.running_before,
    });
    tally
}
