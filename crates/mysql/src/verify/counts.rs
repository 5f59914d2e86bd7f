//! Compares the totals, per connection if the server counts per connection.

use waggle_model::{Loss, Reading};

use super::captured::NOT_KNOWN;
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

#[derive(Clone, Copy, Default)]
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

    fn agrees(self) -> bool {
        self.missing == 0 && self.extra == 0
    }

    fn plus(self, other: Tally) -> Tally {
        Tally {
            missing: self.missing + other.missing,
            extra: self.extra + other.extra,
            in_flight: self.in_flight + other.in_flight,
        }
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
    report.missing = tally.missing - unseen + unknown(server, &mut report);
    report.extra = tally.extra;
    report.in_flight = tally.in_flight;
    report
}

/// What the server counted in classes that waggle does not know: such a statement cannot have been
/// captured as one. Names them, and the blind spots.
fn unknown(server: &Difference, report: &mut Report) -> u64 {
    let mut sum = 0;
    for (name, count) in server.unknown_events() {
        sum += count;
        report.not_compared.push(format!(
            "{count} events {name}: waggle does not know what they are, so that they count as \
             missing; look for a newer waggle"
        ));
    }
    for (command, count) in server.blind_spots() {
        report.not_compared.push(format!(
            "{count} commands {command}: blind spot: the statements inside have no reply of their own"
        ));
    }
    report.server_counted = report.server_counted.map(|counted| counted + sum);
    sum
}

/// By event name. By `Questions` where that agrees and what ended connections ran does not: what a
/// thread counted by event name is in no table, or in two, while it ends and its counts are added to
/// those of its account (`aggregate_thread` in `storage/perfschema/pfs_instr.cc`); `Questions` is added
/// under a lock.
fn by_event(captured: &Captured, server: &Difference, counted: u64, report: &mut Report) -> Tally {
    report.source = Some(Source::ByEventName);
    report.server_counted = Some(counted);
    let (present, ended) = by_connection(captured, server, counted);
    let tally = present.plus(ended);
    if ended.agrees() || !present.agrees() {
        return tally;
    }
    let mut other = Report::default();
    let by_questions = by_questions(captured, server, &mut other);
    if other.server_counted.is_none() || !by_questions.agrees() {
        return tally;
    }
    report.not_compared.push(format!(
        "counts by event name ({counted}): threads ended while they were read; Questions agree"
    ));
    (report.source, report.server_counted) = (other.source, other.server_counted);
    by_questions
}

/// The connections that are there at the second reading, one by one, and all others together.
fn by_connection(captured: &Captured, server: &Difference, counted: u64) -> (Tally, Tally) {
    let (mut present, mut ended) = (Tally::default(), Tally::default());
    let all = captured.connections.values().fold(Calls::default(), |all, one| all.plus(*one));
    let (mut rest, mut counted_in_rest) = (all, counted);
    let ids_known = !captured.connections.contains_key(&NOT_KNOWN);
    let connections = server.connections.value().filter(|_| ids_known).into_iter().flatten();
    for (id, one) in connections.filter(|(_, one)| !one.background) {
        let captured = captured.connections.get(id).copied().unwrap_or_default();
        present.add(&Group { counted: one.statements, captured, more: 0, less: 0 });
        counted_in_rest = counted_in_rest.saturating_sub(one.statements);
        rest.certain -= captured.certain;
        rest.at_edges -= captured.at_edges;
    }
    // The tables are read one after the other, the total before the connections: what ended in
    // between is in one of them only, more of it at one reading or at the other.
    let between = all.at_edges;
    ended.add(&Group { counted: counted_in_rest, captured: rest, more: between, less: between });
    (present, ended)
}

/// The server counts a question when it begins, so what runs at a reading is counted already.
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
