//! Compares the digests, field by field.

use std::collections::BTreeMap;

use waggle_model::{Histogram, Reading};

use super::join::{Joined, Key, Ours, Theirs, has_our_rules, join, major};
use super::shortfall::{captured_sum, counted_sum, shortfalls};
use super::{Captured, CapturedDigest, Differing, Field, Report, Why};
use crate::Difference;
use crate::counters::Bucket;

const PS_PER_NS: u64 = 1000;
/// Latency sums agree within this share …
const LATENCY_SHARE: f64 = 0.03;
/// … or within this time per statement, nanoseconds.
const LATENCY_SLACK_NS: u64 = 3_000;
/// By how much Performance Schema may time a statement longer, nanoseconds per statement: the 95th
/// percentile of the trials on four servers.
const TIMED_LONGER_NS: u64 = 150_000;
/// Lock times agree within this time per statement, nanoseconds.
const LOCK_SLACK_NS: u64 = 2_000;
/// How many statements a digest row may miss, because threads update it at once without a lock: a
/// few when it is new, or one in this many (six in 3,220 were seen, with four threads on two
/// processors). It never misses more than all digests together lack of the server's own count by
/// event name.
const RACED_STATEMENTS: u64 = 4;
const RACED_ONE_IN: u64 = 50;
/// A sum can miss what calls add although the number of calls is right (3,600 of 3,700 rows in 37
/// calls were seen). If the sum of all events shows that the server misses it, the bounds of calls
/// apply; otherwise one call, or one in this many.
const RACED_IN_SUM_ONE_IN: u64 = 1000;
/// The first major version in which lock time means the same in the session and in Performance
/// Schema: before, and in MariaDB, a wait for a row is in one and not in the other.
const LOCK_TIME_SINCE: u32 = 9;
const QUANTILES: [f64; 3] = [0.50, 0.95, 0.99];

struct Comparison<'a> {
    server: &'a Difference,
    joined: &'a Joined,
    report: &'a mut Report,
    compares_lock_time: bool,
    /// The number of statements that all server rows together lack.
    short: u64,
    /// The same for the sums that the server's sum by event name confirms.
    short_in_sums: BTreeMap<Field, u64>,
}

pub(super) fn digests(captured: &Captured, server: &Difference, report: &mut Report) {
    if let Reading::Absent(why) = &server.digests {
        report.not_compared.push(format!("digests: {why}"));
        return;
    }
    if let Some(why) = &captured.no_digests {
        report.not_compared.push(format!("digests: {why}"));
        return;
    }
    let joined = join(captured, server);
    report.not_compared.extend(joined.not_compared.iter().cloned());
    let compares_lock_time = has_our_rules(server) && major(server) >= LOCK_TIME_SINCE;
    if !compares_lock_time {
        let why = "lock_time: in this family it means something else in the session than in \
                   Performance Schema, which leaves out waits for rows";
        report.not_compared.push(why.to_owned());
    }
    let short = joined.short();
    let short_in_sums = shortfalls(captured, server, &joined);
    Comparison { server, joined: &joined, report, compares_lock_time, short, short_in_sums }.run();
}

impl Comparison<'_> {
    fn run(&mut self) {
        let (mut only_ours, mut only_theirs) = (0, 0);
        let strict = has_our_rules(self.server);
        for (key, ours) in &self.joined.ours {
            match self.joined.theirs.get(key) {
                Some(theirs) => self.both(key, ours, theirs),
                None if ours.digest.unparsed == ours.digest.calls.all() => {}
                None if strict => _ = self.calls(key, Some(ours), &Theirs::default()),
                None => only_ours += 1,
            }
        }
        let missing =
            self.joined.theirs.iter().filter(|(key, _)| !self.joined.ours.contains_key(*key));
        for (key, theirs) in missing {
            match strict {
                true => _ = self.calls(key, None, theirs),
                false => only_theirs += 1,
            }
        }
        if only_ours + only_theirs > 0 {
            self.report.not_compared.push(format!(
                "{only_ours} digests of ours and {only_theirs} of the server: its texts are made by \
                 other rules than ours, so they do not join"
            ));
        }
        let mut differing: Vec<_> = self
            .report
            .differing
            .iter()
            .filter(|one| one.field.is_exact())
            .map(|one| (&one.schema, &one.digest_text))
            .collect();
        differing.sort();
        differing.dedup();
        self.report.digests_differing = differing.len() as u64;
    }

    /// Compares the calls. Whether they agree, so that the sums are of the same statements.
    fn calls(&mut self, key: &Key, ours: Option<&Ours>, theirs: &Theirs) -> bool {
        self.report.digests_compared += 1;
        let digest = ours.map(|ours| &ours.digest);
        let text = ours.map_or(&theirs.text, |ours| &ours.text);
        self.report.in_doubt += digest.map_or(0, |digest| digest.calls.at_edges);
        let bounds = digest.map_or((0, 0), |digest| digest.bounds(CapturedDigest::parsed));
        let pair = nearest(bounds, theirs.sums.count);
        let why = self.why_calls_differ(pair);
        self.note(key, text, Field::Calls, pair, why);
        pair.0 == pair.1
    }

    fn both(&mut self, key: &Key, ours: &Ours, theirs: &Theirs) {
        if !self.calls(key, Some(ours), theirs) {
            return;
        }
        let digest = &ours.digest;
        let text = &ours.text;
        let sums = &theirs.sums;
        let call = text.starts_with("CALL ").then_some(Why::CallSums);
        let errors = digest.bounds(|digest| digest.errors.saturating_sub(digest.unparsed));
        let errors = nearest(errors, sums.errors);
        let errors_why = self.why_sums_differ(Field::Errors, digest.calls.all(), errors);
        self.note(key, text, Field::Errors, errors, errors_why);
        for field in [Field::RowsSent, Field::RowsExamined, Field::RowsAffected] {
            if captured_sum(digest, field).is_some() {
                let ours = digest.bounds(|digest| captured_sum(digest, field).unwrap_or(0));
                let pair = nearest(ours, counted_sum(sums, field));
                let why = call.or_else(|| self.why_sums_differ(field, digest.calls.all(), pair));
                self.note(key, text, field, pair, why);
            }
        }
        self.times(key, text, digest, theirs);
    }

    fn times(&mut self, key: &Key, text: &str, digest: &CapturedDigest, theirs: &Theirs) {
        let calls = theirs.sums.count;
        if digest.parsed() != calls {
            // Nobody can say whose times the server has.
            return;
        }
        let lock = theirs.sums.lock_time_ps / PS_PER_NS;
        if let (Some(ours), true) = (digest.lock_ns, self.compares_lock_time) {
            let near = ours.abs_diff(lock) <= calls * LOCK_SLACK_NS;
            self.note(key, text, Field::LockTime, (if near { lock } else { ours }, lock), None);
        }
        // Statements that failed to parse are in our times and in no digest.
        if digest.latency_ns.count() != calls {
            return;
        }
        let times = Times::of(digest);
        let (ours, sum) = (times.done.sum(), theirs.sums.timer_wait_ps / PS_PER_NS);
        let slack = ((sum as f64 * LATENCY_SHARE) as u64).max(calls * LATENCY_SLACK_NS);
        let near = ours.abs_diff(sum) <= slack;
        let why = times.why(times.replied.sum(), ours, sum, calls);
        self.note(key, text, Field::LatencySum, (if near { sum } else { ours }, sum), why);
        if let Some((quantile, ours, theirs)) = percentiles(times.done, &theirs.histogram) {
            let replied = times.replied.quantile(quantile).unwrap_or(ours);
            let why = times.why(replied, ours, theirs, 1);
            self.note(key, text, Field::LatencyPercentiles, (ours, theirs), why);
        }
    }

    fn note(
        &mut self,
        key: &Key,
        text: &str,
        field: Field,
        (ours, theirs): (u64, u64),
        why: Option<Why>,
    ) {
        let summary = self.report.fields.entry(field).or_default();
        summary.compared += 1;
        if ours == theirs {
            summary.equal += 1;
            return;
        }
        summary.differing += 1;
        self.report.differing.push(Differing {
            schema: key.0.clone(),
            digest_text: text.to_owned(),
            field,
            ours,
            theirs,
            why,
        });
    }

    /// Whether the totals agree.
    fn is_exact(&self) -> bool {
        self.report.missing == 0 && self.report.extra == 0
    }

    /// Why a sum over this many calls differs.
    fn why_sums_differ(&self, field: Field, calls: u64, (ours, theirs): (u64, u64)) -> Option<Why> {
        let missed = ours.saturating_sub(theirs);
        let of_a_call = ours.div_ceil(calls.max(1));
        let most = match self.short_in_sums.get(&field) {
            Some(short) => (RACED_STATEMENTS * of_a_call).max(ours / RACED_ONE_IN).min(*short),
            None => of_a_call.max(ours / RACED_IN_SUM_ONE_IN),
        };
        // Threads that come at once are two calls at least.
        let is_raced = calls >= 2 && missed > 0 && missed <= most;
        (is_raced && self.is_exact()).then_some(Why::UnlockedRow)
    }

    fn why_calls_differ(&self, (ours, counted): (u64, u64)) -> Option<Why> {
        let (more, less) = (ours.saturating_sub(counted), counted.saturating_sub(ours));
        let exact = self.is_exact();
        let lost = self.report.lost;
        if more > 0 && self.joined.without_digest + self.server.digests_lost > 0 {
            Some(Why::DigestTableFull)
        } else if more > 0 && more <= self.joined.sql_executes {
            Some(Why::SqlExecute)
        } else if more > 0 && more <= self.joined.packets {
            Some(Why::MultiStatement)
        } else if more > 0 && exact && more <= self.short.min(raced(ours)) {
            Some(Why::UnlockedRow)
        } else if less > 0 && less <= self.joined.truncated && exact {
            Some(Why::Truncated)
        } else if less > 0 && less <= self.joined.unkept && exact {
            Some(Why::NotKept)
        } else if less > 0 && less <= lost.statements() {
            Some(Why::Lost)
        } else if less > 0 && less <= lost.get(waggle_model::Loss::EndedUnseen) {
            Some(Why::EndedUnseen)
        } else {
            None
        }
    }
}

/// What we have that is nearest to what the server counted, and that.
fn nearest((least, most): (u64, u64), counted: u64) -> (u64, u64) {
    (counted.clamp(least, most), counted)
}

/// The maximum that a row of this many statements may miss.
fn raced(calls: u64) -> u64 {
    RACED_STATEMENTS.max(calls / RACED_ONE_IN)
}

/// Our times of a digest. Performance Schema's timer stops between the two.
struct Times<'a> {
    /// Until the reply was sent.
    replied: &'a Histogram,
    /// Until the server was done and waited for the next request, where that is known of all
    /// statements; else the same.
    done: &'a Histogram,
    is_done_known: bool,
}

impl<'a> Times<'a> {
    fn of(digest: &'a CapturedDigest) -> Times<'a> {
        let replied = &digest.latency_ns;
        let is_done_known = digest.duration_ns.count() == replied.count();
        let done = if is_done_known { &digest.duration_ns } else { replied };
        Times { replied, done, is_done_known }
    }

    /// Why a time over this many calls differs from the server's.
    fn why(&self, replied: u64, done: u64, theirs: u64, calls: u64) -> Option<Why> {
        if self.is_done_known {
            return (replied <= theirs && theirs <= done).then_some(Why::TimedBetween);
        }
        let longer = replied < theirs && theirs - replied <= calls * TIMED_LONGER_NS;
        longer.then_some(Why::TimedLonger)
    }
}

/// The first of p50, p95 and p99 that lies outside the server's bucket and its neighbours, with
/// both values in nanoseconds. If all agree, twice the same value. `None` if the server has no
/// histogram.
fn percentiles(ours: &Histogram, theirs: &[Bucket]) -> Option<(f64, u64, u64)> {
    let all: u64 = theirs.iter().map(|bucket| bucket.count).sum();
    if all == 0 {
        return None;
    }
    for quantile in QUANTILES {
        let ours_ns = ours.quantile(quantile)?;
        let rank = ((quantile * all as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = theirs.iter().find(|bucket| {
            seen += bucket.count;
            seen >= rank
        })?;
        let width = bucket.high_ps.saturating_sub(bucket.low_ps);
        let ours_ps = ours_ns.saturating_mul(PS_PER_NS);
        let from = bucket.low_ps.saturating_sub(width);
        if ours_ps < from || ours_ps >= bucket.high_ps.saturating_add(width) {
            return Some((quantile, ours_ns, bucket.low_ps.midpoint(bucket.high_ps) / PS_PER_NS));
        }
    }
    Some((1.0, 0, 0))
}
