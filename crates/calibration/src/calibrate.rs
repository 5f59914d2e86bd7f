//! From windows to prices.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use waggle_host::processors::{keep_on, usable};
use waggle_host::{Meter, MeterError};
use waggle_instrumentation::State;
use waggle_instrumentation::class::kind_of;
use waggle_instrumentation::cost::calibration::{EVENTS_MIN, Measured, SESSIONS};
use waggle_instrumentation::cost::{Counted, Span, are_known, price_of};
use waggle_instrumentation::status::{self, Timer};
use waggle_model::Reading;
use waggle_mysql::{Connection, ConnectionError, Options};
use waggle_stats::Random;

use crate::arm::{Arm, switch};
use crate::awake::Awake;
use crate::block::{Block, Windows, rounds_max};
use crate::load::{PointSelects, prepare};

/// Short neighbours differ less, many of them tell more. To set another class takes about as long as one four.
const WINDOWS: Windows =
    Windows { window: Duration::from_millis(5), settle: Duration::from_millis(2), fours: 6 };
/// A statement of one of many sessions takes longer, and one that is at work at a switch belongs to neither side.
const WINDOWS_OF_MANY: Windows =
    Windows { window: Duration::from_millis(10), settle: Duration::from_millis(5), fours: 6 };
/// Until every session is at work and the caches are warm.
const WARM_UP: Duration = Duration::from_secs(1);
/// For how long events are counted.
const COUNTED_FOR: Duration = Duration::from_secs(1);
const CONFIDENCE: f64 = 0.95;
/// What two sessions write at once goes from one processor to the other then, as on every server that is at work.
const PROCESSORS_MIN: usize = 2;
/// A kind with so few events per statement is measured more often: it is the only thing that it can be priced by.
const FEW_EVENTS: f64 = 8.0;
const MORE_OFTEN: usize = 3;

/// What to measure.
pub struct Request<'a> {
    /// How to reach the server.
    pub options: &'a Options,
    /// Its process.
    pub pid: u32,
    /// Rounds of a block of every price; of a kind with few events, of several.
    pub rounds: usize,
    /// From which the order follows.
    pub seed: u64,
    /// Set to stop before the end.
    pub stop: &'a AtomicBool,
    /// Told before each round: the sessions, and the rounds that were made and are wanted.
    pub tell: &'a mut dyn FnMut(u32, usize, usize),
}

/// Why there are no prices.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The connection.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The process.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// The processors of its threads.
    #[error("the threads of the private server cannot be kept on few CPUs: {0}")]
    Processors(io::Error),
    /// The tables of events.
    #[error("events cannot be counted: {0}")]
    Events(String),
    /// The load does nothing.
    #[error("none of {0} sessions ended a statement in {COUNTED_FOR:?}")]
    NoStatements(u32),
    /// Too many windows were void.
    #[error(
        "{class} with {sessions} sessions: {blocks} blocks of windows are too few; the host is too busy, \
         or the hypervisor takes too much of its time: try again later"
    )]
    Void {
        /// The class.
        class: String,
        /// How many sessions were at work.
        sessions: u32,
        /// Blocks that were not void.
        blocks: usize,
    },
    /// Somebody wanted it to end.
    #[error("it was stopped; nothing was kept")]
    Stopped,
}

/// How often a server is started until it knows what reading its timers costs, at most. It measures that when it
/// starts, the least of twenty, and on some hosts one start in some gets 0.
const STARTS_MAX: usize = 6;

/// Starts a private server, and again while it does not know what reading its timers costs; the last start may not.
///
/// # Errors
/// What `start` or `restart` says, or the connection is broken.
pub fn start_knowing<S, E: From<CalibrationError>>(
    start: impl FnOnce() -> Result<S, E>,
    mut restart: impl FnMut(S) -> Result<S, E>,
    options: impl Fn(&S) -> Options,
) -> Result<S, E> {
    let mut server = start()?;
    for _ in 1..STARTS_MAX {
        if knows_its_timers(&options(&server))? {
            break;
        }
        server = restart(server)?;
    }
    Ok(server)
}

fn knows_its_timers(options: &Options) -> Result<bool, CalibrationError> {
    let mut connection = Connection::open(options)?;
    let timers = status::timers(&mut connection)?;
    let chosen = status::class_timers(&State::read(&mut connection)?);
    Ok(are_known(&timers, &chosen))
}

/// Measures every price of a private server.
///
/// # Errors
/// The server is gone, or the host is too busy.
pub fn measure(request: Request<'_>) -> Result<Vec<Measured>, CalibrationError> {
    let mut connection = Connection::open(request.options)?;
    prepare(&mut connection)?;
    let arms = Arm::all(&mut connection)?;
    let timers = status::timers(&mut connection)?;
    let chosen = status::class_timers(&State::read(&mut connection)?);
    let mut calibration = Calibrator {
        meter: Meter::of(request.pid)?,
        random: Random::seeded(request.seed),
        connection,
        arms,
        timers,
        chosen,
        request,
    };
    let mut measured = Vec::new();
    for sessions in SESSIONS {
        measured.extend(calibration.with(sessions)?);
    }
    Ok(measured)
}

struct Calibrator<'a> {
    request: Request<'a>,
    connection: Connection,
    meter: Meter,
    random: Random,
    arms: Vec<Arm>,
    timers: Vec<Timer>,
    chosen: BTreeMap<String, String>,
}

impl Calibrator<'_> {
    /// Prices with this many sessions at work.
    fn with(&mut self, sessions: u32) -> Result<Vec<Measured>, CalibrationError> {
        let processors = few_for(sessions).map_err(CalibrationError::Processors)?;
        let mut load = PointSelects::start(self.request.options, sessions, &processors)?;
        // After it, so that its sessions on the server are there.
        keep_on(self.request.pid, &processors).map_err(CalibrationError::Processors)?;
        sleep(WARM_UP);
        let mut counted = self.events(&mut load)?;
        counted.retain(|(_, [events, _])| *events >= EVENTS_MIN);
        let blocks = self.blocks(&mut load, &counted)?;
        let each = counted.iter().zip(blocks);
        each.map(|((arm, events), blocks)| self.price(arm, sessions, *events, &blocks)).collect()
    }

    /// Events per statement of every arm, and how many of them are timed, counted with all classes on at once: what
    /// else is on, and where events are kept, changes nothing of that.
    fn events(
        &mut self,
        load: &mut PointSelects,
    ) -> Result<Vec<(Arm, [f64; 2])>, CalibrationError> {
        self.check(load)?;
        Arm::set_all(&mut self.connection)?;
        switch(&mut self.connection, true)?;
        let state = State::read(&mut self.connection)?;
        let mut unread = || Reading::absent("it is not needed");
        let counted = Counted::read(&mut self.connection, &state, COUNTED_FOR, &mut unread)?;
        let counted = match counted {
            Reading::Value(counted) => counted,
            Reading::Absent(why) => return Err(CalibrationError::Events(why)),
        };
        if counted.statements == 0 {
            return Err(CalibrationError::NoStatements(load.sessions()));
        }
        let of = |arm: &Arm| {
            let of_arm = |class: &String| *class == arm.class || kind_of(class) == arm.class;
            let (mut events, mut timed) = (0, 0);
            for (_, count) in counted.classes.iter().filter(|(class, _)| of_arm(class)) {
                events += count.events;
                timed += count.timed;
            }
            [events, timed].map(|count| count as f64 / counted.statements as f64)
        };
        Ok(self.arms.iter().map(|arm| (arm.clone(), of(arm))).collect())
    }

    /// Rounds of a block of every arm, in a random order.
    fn blocks(
        &mut self,
        load: &mut PointSelects,
        arms: &[(Arm, [f64; 2])],
    ) -> Result<Vec<Vec<Block>>, CalibrationError> {
        let rounds = self.request.rounds;
        let often: Vec<usize> = arms
            .iter()
            .map(|(arm, [events, _])| {
                let is_alone = arm.class == kind_of(&arm.class) && *events < FEW_EVENTS;
                if is_alone { MORE_OFTEN } else { 1 }
            })
            .collect();
        let mut blocks = vec![Vec::new(); arms.len()];
        for round in 0..rounds_max(rounds) {
            // What was void is made up for at the end.
            let missing =
                |at: usize| (rounds * often[at]).saturating_sub(blocks[at].len()).min(often[at]);
            let mut turns: Vec<usize> =
                (0..arms.len()).flat_map(|at| std::iter::repeat_n(at, missing(at))).collect();
            if turns.is_empty() {
                break;
            }
            (self.request.tell)(load.sessions(), round, rounds);
            self.random.shuffle(&mut turns);
            for at in turns {
                self.check(load)?;
                arms[at].0.set(&mut self.connection)?;
                blocks[at].extend(self.block(load)?);
            }
        }
        Ok(blocks)
    }

    fn block(&mut self, load: &PointSelects) -> Result<Option<Block>, CalibrationError> {
        let connection = &mut self.connection;
        let mut turn = |on| Ok(switch(connection, on)?);
        let mut statements = || Ok(load.statements());
        let windows = if load.sessions() == SESSIONS[0] { WINDOWS } else { WINDOWS_OF_MANY };
        windows.block(&self.meter, &mut self.random, &mut turn, &mut statements)
    }

    /// Whether to go on: nobody stopped it, and every session is still at work.
    fn check(&self, load: &mut PointSelects) -> Result<(), CalibrationError> {
        match self.request.stop.load(Ordering::Relaxed) {
            true => Err(CalibrationError::Stopped),
            false => Ok(load.check()?),
        }
    }

    fn price(
        &self,
        arm: &Arm,
        sessions: u32,
        [events, timed]: [f64; 2],
        blocks: &[Block],
    ) -> Result<Measured, CalibrationError> {
        let void =
            || CalibrationError::Void { class: arm.class.clone(), sessions, blocks: blocks.len() };
        let added = Block::added_ns_typical(blocks, CONFIDENCE).ok_or_else(void)?;
        let added_ns = Span { low: added.low, value: added.value, high: added.high };
        let timer = price_of(kind_of(&arm.class), &self.timers, &self.chosen);
        let timer_ns = timer.and_then(|timer| timer.value().map(|timer| timer.ns_per_event()));
        Ok(Measured {
            sessions,
            class: arm.class.clone(),
            kept: arm.kept,
            events_per_statement: events,
            timed_per_statement: timed,
            without_ns: Block::without_ns(blocks),
            added_ns,
            timer_ns,
            rest_ns: Measured::rest(added_ns, events, timed, timer_ns),
        })
    }
}

/// So few processors that this many sessions and their server leave none time to halt, but two at the least where there
/// are, which two sessions may leave some; all of them for many sessions.
fn few_for(sessions: u32) -> io::Result<Vec<usize>> {
    let mut few = usable()?;
    few.truncate(PROCESSORS_MIN.max((sessions as usize).div_ceil(Awake::BUSY)));
    Ok(few)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sessions_have_few_processors() {
        let all = usable().unwrap();
        let few = |sessions| few_for(sessions).unwrap();
        assert_eq!(few(2), all[..all.len().min(2)]);
        assert_eq!(few(5).len(), all.len().min(3));
        assert_eq!(few(1_000_000), all);
    }
}
