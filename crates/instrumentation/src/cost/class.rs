//! The cost of one class.

use std::collections::BTreeMap;

use serde::Serialize;
use waggle_model::Reading;

use super::calibration::{Rest, Storage};
use super::{Calibration, Count, Counted, Span, StatementTime, Total, timer};
use crate::class::kind_of;
use crate::status::Timer;

/// What one class of instruments costs while it is on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassCost {
    /// The class.
    pub class: String,
    /// Its instruments that are on.
    pub enabled: u64,
    /// Events per second.
    pub events_per_s: f64,
    /// Events per statement; `None` where there were no statements.
    pub events_per_statement: Option<f64>,
    /// How often per second, at least, its events were timed together; `None` for a class that
    /// times each event alone. This is what gets a price.
    pub calls_per_s: Option<f64>,
    /// Share of the events that are timed.
    pub timed_share: f64,
    /// Where its events are kept.
    pub kept: Storage,
    /// The timer, where its events are timed and the server knows what that costs.
    pub timer: Option<TimerPart>,
    /// Why the server does not know the price of the timer, where it does not.
    pub timer_unknown: Option<String>,
    /// The replacement: nanoseconds of two readings, as the private server of the calibration knew
    /// them.
    pub timer_calibrated_ns: Option<f64>,
    /// The cost of an event beyond the timer; `None` if it was not measured. In the noise it can be
    /// negative, and a sum over classes needs such values to be right.
    pub rest: Option<Rest>,
    /// Nanoseconds per event in all; `None` where nothing of it is known.
    pub ns_per_event: Option<Span>,
    /// What it costs in all.
    #[serde(flatten)]
    pub total: Total,
}

/// The part of a price that is the timer's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimerPart {
    /// Its name.
    pub name: String,
    /// Cycles of one reading.
    pub overhead_cycles: u64,
    /// Cycles per second.
    pub cycles_per_s: u64,
    /// Nanoseconds of two readings: of one event that is timed.
    pub ns_per_timed_event: f64,
}

/// What an event of a class costs.
pub(super) struct Price {
    pub(super) timer: Option<TimerPart>,
    pub(super) timer_unknown: Option<String>,
    /// In place of the timer, where the server does not know it.
    pub(super) timer_calibrated_ns: Option<f64>,
    pub(super) rest: Option<Rest>,
    /// `None` where nothing of it is known.
    pub(super) ns_per_event: Option<Span>,
    /// A part of it is not known.
    pub(super) is_at_least: bool,
}

/// From what prices are made.
pub(super) struct Prices<'a> {
    pub(super) timers: &'a [Timer],
    /// Rows of `setup_timers`.
    pub(super) chosen: &'a BTreeMap<String, String>,
    pub(super) calibration: Option<&'a Calibration>,
}

impl Prices<'_> {
    /// The cost of an event of a class, if this share of the events is timed and this many sessions
    /// are at work.
    pub(super) fn price(
        &self,
        class: &str,
        timed_share: f64,
        kept: Storage,
        sessions: f64,
    ) -> Price {
        let (timer, timer_unknown) = match timer::price_of(kind_of(class), self.timers, self.chosen)
        {
            Some(Reading::Value(price)) => (Some(TimerPart::from(price)), None),
            Some(Reading::Absent(why)) => (None, Some(why)),
            None => (None, None),
        };
        // The private server had the default timers.
        let stands_in = timer_unknown.is_some() && timer::is_default(kind_of(class), self.chosen);
        let timer_calibrated_ns =
            self.calibration.filter(|_| stands_in).and_then(|all| all.timer_ns(class));
        let timer_ns = timer.as_ref().map(|timer| timer.ns_per_timed_event).or(timer_calibrated_ns);
        let of_timer = timer_ns.map(|ns| ns * timed_share);
        let rest = self.calibration.and_then(|all| all.rest(class, kept, sessions));
        let ns_per_event = match (of_timer, rest) {
            (Some(timer), Some(rest)) => Some(rest.ns.plus(Span::exact(timer))),
            (Some(timer), None) if timed_share > 0.0 => Some(Span::exact(timer)),
            (None, Some(rest)) => Some(rest.ns),
            (_, None) => None,
        };
        let lacks_timer = timer_unknown.is_some() && of_timer.is_none() && timed_share > 0.0;
        let is_at_least = rest.is_none() || lacks_timer;
        Price { timer, timer_unknown, timer_calibrated_ns, rest, ns_per_event, is_at_least }
    }

    /// How long statements take here, and took in the calibration.
    pub(super) fn statement_time(&self, counted: &Counted) -> StatementTime {
        StatementTime::of(counted, self.calibration)
    }

    /// What the events of a class cost.
    pub(super) fn cost(
        &self,
        class: &str,
        count: Count,
        kept: Storage,
        counted: &Counted,
    ) -> ClassCost {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let timed_share = share(count.timed, count.events);
        let price = self.price(class, timed_share, kept, counted.running);
        let Price { timer, timer_unknown, timer_calibrated_ns, rest, ns_per_event, is_at_least } =
            price;
        let calls = counted.calls(class);
        let is_at_least = is_at_least || calls.is_some();
        let priced = calls.unwrap_or(count.events);
        let paid = [counted.per_statement(priced), Some(priced as f64 / counted.seconds)];
        ClassCost {
            class: class.to_owned(),
            enabled: count.enabled,
            events_per_s: count.events as f64 / counted.seconds,
            calls_per_s: calls.map(|calls| calls as f64 / counted.seconds),
            events_per_statement: counted.per_statement(count.events),
            timed_share,
            kept,
            timer,
            timer_unknown,
            timer_calibrated_ns,
            rest,
            ns_per_event,
            total: self.total(ns_per_event, paid, is_at_least, counted),
        }
    }

    /// What events of this price cost that are paid so often per statement and per second.
    pub(super) fn total(
        &self,
        ns_per_event: Option<Span>,
        [per_statement, per_s]: [Option<f64>; 2],
        is_at_least: bool,
        counted: &Counted,
    ) -> Total {
        let cores = ns_per_event.zip(per_s).map(|(ns, per_s)| ns.times(per_s / 1e9));
        let is_predictable = !is_at_least
            && ns_per_event.is_some_and(Span::is_close)
            && self.statement_time(counted).is_within_reach;
        let share = |cores: Span| Some(cores.times(1.0 / counted.busy_cores()?));
        Total {
            ns_per_statement: ns_per_event.zip(per_statement).map(|(ns, events)| ns.times(events)),
            cores,
            share_of_server: cores.and_then(share),
            is_at_least,
            is_predictable,
        }
    }
}

impl From<timer::TimerPrice> for TimerPart {
    fn from(price: timer::TimerPrice) -> TimerPart {
        let ns_per_timed_event = price.ns_per_event();
        let timer::TimerPrice { timer: name, overhead_cycles, cycles_per_s } = price;
        TimerPart { name, overhead_cycles, cycles_per_s, ns_per_timed_event }
    }
}
