//! One server, and every arm on it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use tempfile::TempDir;
use waggle_host::processors::keep_on;
use waggle_lab::gate::{self, Asked};
use waggle_lab::load::{Count, Driver, Pace, Reach, Request, Sysbench, prepare};
use waggle_lab::meter::{Meter, Sample, Usage};
use waggle_lab::schedule::{Schedule, Slot};
use waggle_lab::suite::{Scale, Suite};
use waggle_lab::{Measured, Window};
use waggle_stats::Random;
use waggle_testkit::{Server, launcher};

use crate::injection::{Injection, Runs, disproof};
use crate::kept::Repetition;
use crate::settings::Settings;

/// Until the caches are warm.
const WARM_UP: Duration = Duration::from_secs(2);

/// Until a loop has ended that a look meets, since it is counted then: longer than a statement takes.
const ENDED: Duration = Duration::from_micros(500);

/// A server under load, with the program that makes it slower.
pub(crate) struct Subject<'a> {
    suite: &'a Suite,
    settings: &'a Settings,
    in_server: Injection,
    in_load: Injection,
    meter: Meter,
    load_meter: Meter,
    load: Driver,
    _directory: TempDir,
    _server: Server,
}

impl<'a> Subject<'a> {
    /// Starts both on one processor.
    pub(crate) fn start(
        suite: &'a Suite,
        settings: &'a Settings,
        processor: usize,
    ) -> Result<Subject<'a>> {
        let server = Server::start(settings.server)?;
        keep_on(server.pid(), &[processor])?;
        let directory = TempDir::new()?;
        let sysbench = Sysbench::find("sysbench".as_ref())?;
        let reach = Reach::private(&server.socket())?;
        let request = Request {
            sysbench: &sysbench,
            launcher: &launcher(),
            reach: &reach,
            workload: suite.workloads.first().context("the suite has no workload")?,
            threads: suite.threads.first().copied().unwrap_or(2),
            tables: suite.data.tables,
            rows: suite.data.rows.of(Scale::Tiny),
            seed: settings.options.seed,
            directory: directory.path(),
        };
        prepare(&request, &AtomicBool::new(false))?;
        let mut load = Driver::start(&request)?;
        keep_on(load.pid(), &[processor])?;
        let meter = Meter::of(server.pid())?;
        let load_meter = Meter::of(load.pid())?;
        let in_server = Injection::attach(server.pid())?;
        let in_load = Injection::attach(load.pid())?;
        load.go(Pace::Closed)?;
        sleep(WARM_UP);
        Ok(Subject {
            suite,
            settings,
            in_server,
            in_load,
            meter,
            load_meter,
            load,
            _directory: directory,
            _server: server,
        })
    }

    /// Measures every arm in every block. The load goes on all the time. The windows, and how long the
    /// program was busy by its own clock.
    pub(crate) fn measure(&mut self, repetition: u32) -> Result<(Vec<Window>, ByArm)> {
        let seed = self.settings.seed_of(repetition);
        let schedule = schedule(self.suite, self.settings, repetition);
        let (mut windows, mut busy) = (Vec::new(), BTreeMap::new());
        for slots in schedule.slots.chunk_by(|one, other| one.block == other.block) {
            for (slot, made) in slots.iter().zip(self.block(&schedule, slots, seed)?) {
                let (measured, void) = self.judged(&made)?;
                let arm = schedule.arms.get(slot.arm).context("an arm")?.name;
                if void.is_none() {
                    busy.entry(arm.to_owned()).or_insert_with(Busy::default).add(&made);
                }
                windows.push(Window {
                    number: slot.number,
                    block: slot.block,
                    cell: schedule.cells.get(slot.cell).context("a cell")?.clone(),
                    arm: arm.to_owned(),
                    server_start: repetition,
                    stolen: made.stolen,
                    begin: made.begin,
                    end: made.end,
                    measured: Some(measured),
                    void,
                    ..Window::default()
                });
            }
        }
        let busy = busy.into_iter().map(|(arm, busy)| (arm, busy.per_statement_ns()));
        Ok((windows, busy.collect()))
    }

    /// The windows of a block, whose arms take turns.
    fn block(&mut self, schedule: &Schedule<'_>, slots: &[Slot], seed: u64) -> Result<Vec<Made>> {
        let mut made: Vec<Made> = slots.iter().map(|_| Made::nothing()).collect();
        let first = slots.first().map_or(0, |slot| slot.number);
        let mut random = Random::seeded(seed ^ (u64::from(first) << 24));
        for _ in 0..self.settings.turns() {
            let mut order: Vec<usize> = (0..slots.len()).collect();
            random.shuffle(&mut order);
            for at in order {
                let (slot, made) = slots.get(at).zip(made.get_mut(at)).context("a slot")?;
                let arm = schedule.arms.get(slot.arm).context("an arm")?;
                let busy_ns = self.inject(busy_ns(&arm.scenario.name))?;
                sleep(self.settings.settle());
                self.turn(made, busy_ns)?;
            }
        }
        Ok(made)
    }

    /// Makes statements cost the server so much, ns. Their load is busy for what is left of the largest cost, so
    /// that a statement takes as long in every arm. How long both are busy in a statement, ns.
    fn inject(&self, cost_ns: u32) -> Result<[u32; 2]> {
        let costs_ns = self.suite.scenarios.iter().map(|scenario| busy_ns(&scenario.name));
        let left_ns = costs_ns.max().unwrap_or(0).saturating_sub(cost_ns);
        let Settings { always_us, always_load_us, .. } = self.settings;
        let busy_ns = [cost_ns + 1000 * always_us, left_ns + 1000 * always_load_us];
        self.in_server.set(busy_ns[0])?;
        self.in_load.set(busy_ns[1])?;
        Ok(busy_ns)
    }

    /// One turn, made anew where the hypervisor took too much of it. `busy_ns` as [`Subject::inject`] gives it.
    fn turn(&mut self, made: &mut Made, busy_ns: [u32; 2]) -> Result<()> {
        for tries in 0.. {
            let before = self.look()?;
            sleep(self.settings.turn());
            let after = self.look()?;
            let used = after.used.since(&before.used);
            let held = after.held(&before, busy_ns, used.seconds);
            let stolen = gate::stolen(&used).or(held);
            if let Some(share) = stolen.filter(|_| tries < gate::ANEW_MAX) {
                made.stolen.push(share);
                continue;
            }
            made.held = made.held.or(held);
            made.add(&before, &after, used);
            break;
        }
        Ok(())
    }

    /// What happened in a window, and why it does not count. A point select is one statement.
    fn judged(&self, made: &Made) -> Result<(Measured, Option<String>)> {
        let (count, used) = made.sum.as_ref().context("a window has a turn")?;
        let measured = Measured {
            load_cpu_ns: Some(made.load_cpu_ns),
            ..Measured::of(used.seconds, count.transactions, Some(count), Some(used))
        };
        let (turns, turn) = (self.settings.turns(), self.settings.turn());
        let seconds = (turn * turns).as_secs_f64();
        let asked = Asked { seconds, turns };
        let disproof = |of: &str, runs: [Runs; 2]| {
            disproof(of, runs.map(|runs| runs.count), measured.statements)
        };
        let void = disproof("server", made.in_server)
            .or_else(|| disproof("load", made.in_load))
            .or_else(|| made.held.map(why_held))
            .or_else(|| gate::judge(&measured, &asked));
        Ok((measured, void))
    }

    fn look(&mut self) -> Result<Look> {
        let before = [self.in_server.runs()?, self.in_load.runs()?];
        let count = self.load.count()?;
        // Beside each other: one is divided by the other.
        let (used, of_load) = (self.meter.read()?, self.load_meter.read()?);
        sleep(ENDED);
        let [in_server, in_load] = before;
        let in_server = [in_server, self.in_server.runs()?];
        let in_load = [in_load, self.in_load.runs()?];
        Ok(Look { in_server, in_load, count, used, of_load })
    }
}

/// A window while it is made.
struct Made {
    begin: Timestamp,
    end: Timestamp,
    /// As in [`Window::stolen`].
    stolen: Vec<f64>,
    /// As [`Look::held`] of a turn that was not made anew once more.
    held: Option<f64>,
    /// What was done and used in all turns.
    sum: Option<(Count, Usage)>,
    load_cpu_ns: u64,
    /// The fewest and the most runs of the program that there may have been, in the server and in its load.
    in_server: [Runs; 2],
    in_load: [Runs; 2],
}

/// A number for each arm, by its name.
pub(crate) type ByArm = BTreeMap<String, f64>;

/// How long the server was made busy in the windows of an arm that count.
#[derive(Default)]
struct Busy {
    all: Runs,
}

impl Busy {
    /// Adds the least and the most that there may have been in a window: half of the sum is between them.
    fn add(&mut self, made: &Made) {
        self.all = self.all + made.in_server[0] + made.in_server[1];
    }

    /// A statement has one reply. It is counted here and not by the load, with which the estimate counts.
    fn per_statement_ns(&self) -> f64 {
        self.all.busy_ns as f64 / self.all.count.max(1) as f64
    }
}

impl Made {
    fn nothing() -> Made {
        let begin = Timestamp::now();
        Made {
            begin,
            end: begin,
            stolen: Vec::new(),
            held: None,
            sum: None,
            load_cpu_ns: 0,
            in_server: [Runs::default(); 2],
            in_load: [Runs::default(); 2],
        }
    }

    fn add(&mut self, before: &Look, after: &Look, used: Usage) {
        let count = after.count.since(&before.count);
        self.sum = Some(match self.sum.take() {
            Some((sum, all)) => (sum.plus(&count), all.plus(used)),
            None => (count, used),
        });
        self.end = Timestamp::now();
        self.load_cpu_ns += after.of_load.since(&before.of_load).server_cpu_ns;
        self.in_server = plus(self.in_server, since(after.in_server, before.in_server));
        self.in_load = plus(self.in_load, since(after.in_load, before.in_load));
    }
}

fn why_held(share: f64) -> String {
    format!(
        "the hypervisor held the processor for {:.0} % of a turn, and of each of those made in its place",
        100.0 * share
    )
}

/// The fewest and the most runs that there may have been between two looks: of each, those before and after all
/// else was read.
fn since(later: [Runs; 2], earlier: [Runs; 2]) -> [Runs; 2] {
    [later[0].since(earlier[1]), later[1].since(earlier[0])]
}

fn plus(one: [Runs; 2], other: [Runs; 2]) -> [Runs; 2] {
    [one[0] + other[0], one[1] + other[1]]
}

/// What was done so far.
struct Look {
    /// Runs of the program, before and after all else was read.
    in_server: [Runs; 2],
    in_load: [Runs; 2],
    count: Count,
    used: Sample,
    of_load: Sample,
}

impl Look {
    /// The share of the time since an earlier look for which the hypervisor held the processor and did not say so, where
    /// that is more than it may take: loops were longer than they were to be.
    fn held(&self, earlier: &Look, busy_ns: [u32; 2], seconds: f64) -> Option<f64> {
        let in_server = since(self.in_server, earlier.in_server)[1].longer_than(busy_ns[0]);
        let in_load = since(self.in_load, earlier.in_load)[1].longer_than(busy_ns[1]);
        Some((in_server + in_load) as f64 / 1e9 / seconds).filter(|share| *share > gate::STEAL_MAX)
    }
}

/// The windows of a repetition in their order.
fn schedule<'a>(suite: &'a Suite, settings: &Settings, repetition: u32) -> Schedule<'a> {
    Schedule::new(suite, &suite.cells(), settings.blocks, settings.seed_of(repetition))
}

/// Whether a repetition that was kept has the windows that it would have here.
pub(crate) fn has_its_windows(suite: &Suite, settings: &Settings, kept: &Repetition) -> bool {
    let schedule = schedule(suite, settings, kept.number);
    let is_whole = kept.windows.len() == schedule.slots.len();
    is_whole && kept.windows.iter().all(|window| schedule.has(window))
}

/// What an arm injects, ns: its name is the number of µs with the unit.
pub(crate) fn busy_ns(arm: &str) -> u32 {
    let micros = arm.strip_suffix("us").and_then(|number| number.parse::<u32>().ok());
    micros.map_or(0, |micros| micros * 1000)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;

    use super::*;
    use crate::settings::Arguments;

    /// A repetition without a measurement.
    fn repetition(suite: &Suite, settings: &Settings, number: u32) -> Repetition {
        let schedule = schedule(suite, settings, number);
        let window = |slot: &Slot| Window {
            number: slot.number,
            block: slot.block,
            cell: schedule.cells[slot.cell].clone(),
            arm: schedule.arms[slot.arm].name.to_owned(),
            server_start: number,
            ..Window::default()
        };
        let windows = schedule.slots.iter().map(window).collect();
        let busy_ns = BTreeMap::new();
        Repetition { number, machine: Value::Null, seconds: 1.0, busy_ns, windows }
    }

    #[test]
    fn the_order_of_a_repetition_follows_from_the_seed_and_its_number_alone() {
        let suite = Suite::parse("truth", crate::TRUTH).unwrap();
        let settings = Arguments::parse_from(["bench", "--quick"]).settings.made_quick();
        let first = repetition(&suite, &settings, 0);
        assert!(has_its_windows(&suite, &settings, &first));
        assert!(!has_its_windows(&suite, &settings, &Repetition { number: 1, ..first.clone() }));
        let mut other_seed = settings.clone();
        other_seed.options.seed = 9;
        assert!(!has_its_windows(&suite, &other_seed, &first));
        let mut short = first;
        short.windows.pop();
        assert!(!has_its_windows(&suite, &settings, &short));
    }
}
