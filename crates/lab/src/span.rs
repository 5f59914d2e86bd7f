//! What a load does in a span of time.
//!
//! With a closed load a turn begins and ends while the load is paused. So it has every counted statement with all of its
//! processor time and nothing else, however late a busy server answers us: with 1,000 sessions that can be a second.
//! The time in which the sessions stop one after another belongs to it, in every arm alike.
//!
//! An open load is read while it runs: a pause would empty its queue, and what waits there at the end waits longest.
//! A load of others is read while it runs, too, since it cannot be paused.

use std::time::{Duration, Instant};

use waggle_host::Meter;

use crate::engine::Engine;
use crate::error::LabError;
use crate::gate;
use crate::load::{Count, Pace, Traffic};
use crate::measured_server::MeasuredServer;
use crate::meter::{Sample, Usage};
use crate::window::Measured;

/// What was done and used in a span, or in several together.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    seconds: f64,
    statements: u64,
    count: Option<Count>,
    load_cpu_ns: Option<u64>,
    usage: Option<Usage>,
    /// As in [`Measured::behind_s`].
    behind_s: Option<[f64; 2]>,
}

/// What was done so far.
struct Done {
    count: Option<Count>,
    statements: u64,
}

/// What was used so far, and when that was.
struct Used {
    at: Instant,
    load_cpu_ns: Option<u64>,
    sample: Option<Sample>,
}

impl Engine<'_> {
    /// Lets a load settle, then work for a time. It is paused at the end, if it can be.
    ///
    /// # Errors
    /// The server or the load has ended, a transaction does not end, or somebody stopped it.
    pub(crate) fn settled_span(
        &self,
        server: &mut MeasuredServer<'_>,
        load: &mut Traffic,
        pace: Pace,
        [settle, time]: [Duration; 2],
    ) -> Result<Span, LabError> {
        if !settle.is_zero() {
            load.go(pace)?;
        }
        self.wait(settle)?;
        if pace != Pace::Closed || !load.can_rest() {
            return self.span_under_way(server, load, time);
        }
        load.pause()?;
        self.span(server, load, time)
    }

    /// Lets a paused load work for a time, as fast as it goes.
    ///
    /// # Errors
    /// As [`Engine::settled_span`].
    pub(crate) fn span(
        &self,
        server: &mut MeasuredServer<'_>,
        load: &mut Traffic,
        time: Duration,
    ) -> Result<Span, LabError> {
        let (done, used) = (Done::so_far(server, load)?, Used::so_far(server, load)?);
        load.go(Pace::Closed)?;
        self.wait(time)?;
        load.rest()?;
        // Before anything that costs the server time.
        let used_later = Used::so_far(server, load)?;
        load.pause()?;
        Ok(Done::so_far(server, load)?.since(&done, &used_later, &used))
    }

    /// Reads a load that is at work, and again after a time.
    fn span_under_way(
        &self,
        server: &mut MeasuredServer<'_>,
        load: &mut Traffic,
        time: Duration,
    ) -> Result<Span, LabError> {
        // In the same order at both ends, so that the readings are equally far apart.
        let (behind, used) = (load.behind_s()?, Used::so_far(server, load)?);
        let done = Done::so_far(server, load)?;
        self.wait(time)?;
        let (behind_later, used_later) = (load.behind_s()?, Used::so_far(server, load)?);
        let done_later = Done::so_far(server, load)?;
        load.pause()?;
        let behind_s = behind.zip(behind_later).map(|(begin, end)| [begin, end]);
        Ok(Span { behind_s, ..done_later.since(&done, &used_later, &used) })
    }
}

impl Done {
    fn so_far(server: &mut MeasuredServer<'_>, load: &mut Traffic) -> Result<Done, LabError> {
        Ok(Done { count: load.count()?, statements: server.statements()? })
    }

    fn since(&self, earlier: &Done, used: &Used, used_earlier: &Used) -> Span {
        let count = self.count.as_ref().zip(earlier.count.as_ref());
        let count = count.map(|(now, before)| now.since(before));
        let sample = used.sample.as_ref().zip(used_earlier.sample.as_ref());
        let usage = sample.map(|(now, before)| now.since(before));
        let seconds = match &usage {
            Some(usage) => usage.seconds,
            None => used.at.duration_since(used_earlier.at).as_secs_f64(),
        };
        let load_cpu = used.load_cpu_ns.zip(used_earlier.load_cpu_ns);
        Span {
            seconds,
            statements: self.statements.saturating_sub(earlier.statements),
            count,
            load_cpu_ns: load_cpu.map(|(now, before)| now.saturating_sub(before)),
            usage,
            behind_s: None,
        }
    }
}

impl Span {
    /// Both together.
    #[must_use]
    pub(crate) fn plus(self, later: Span) -> Span {
        Span {
            seconds: self.seconds + later.seconds,
            statements: self.statements + later.statements,
            count: self.count.zip(later.count).map(|(one, other)| one.plus(&other)),
            load_cpu_ns: self.load_cpu_ns.zip(later.load_cpu_ns).map(|(one, other)| one + other),
            usage: self.usage.zip(later.usage).map(|(one, other)| one.plus(other)),
            behind_s: self.behind_s.zip(later.behind_s).map(|([begin, _], [_, end])| [begin, end]),
        }
    }

    /// Transactions that ended; `None` where nobody counts them.
    pub(crate) fn transactions(&self) -> Option<u64> {
        Some(self.count.as_ref()?.transactions)
    }

    /// As [`gate::stolen`].
    pub(crate) fn stolen(&self) -> Option<f64> {
        gate::stolen(self.usage.as_ref()?)
    }

    /// As it is stored.
    pub(crate) fn measured(&self) -> Measured {
        let (count, usage) = (self.count.as_ref(), self.usage.as_ref());
        Measured {
            load_cpu_ns: self.load_cpu_ns,
            behind_s: self.behind_s,
            ..Measured::of(self.seconds, self.statements, count, usage)
        }
    }
}

impl Used {
    fn so_far(server: &MeasuredServer<'_>, load: &Traffic) -> Result<Used, LabError> {
        let load_cpu_ns = load.pid().map(|pid| Meter::of(pid)?.cpu_ns()).transpose()?;
        Ok(Used { at: Instant::now(), load_cpu_ns, sample: server.used()? })
    }
}
