//! The sink of samples and statements.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use waggle_account::{Digests, Grouping};
use waggle_host::KernelFunctions;
use waggle_model::{
    Command, Losses, Origin, ProcessorSample, RunningStatement, Server, Statement, TimeClass,
    Waited,
};
use waggle_observe::{News, Standing, StatementSink};
use waggle_probes::servers::{ADDRESSES_MAX, Named, Namer, ToldNames};
use waggle_profile::{Collector, Function, Profile, Taken};

/// How long names are waited for at the end.
const NAMES_AWAITED: Duration = Duration::from_secs(60);
/// Pause of that wait.
const PAUSE: Duration = Duration::from_millis(5);

/// Takes samples and statements, and asks for the names of functions while their server runs.
#[derive(Default)]
pub(super) struct Profiler {
    collector: Collector,
    digests: BTreeMap<u32, Digests>,
    namer: Namer,
    running: BTreeSet<u32>,
    /// Every server that was watched.
    pub(super) servers: BTreeMap<u32, Server>,
    pub(super) losses: Losses,
    /// Why names are missing.
    pub(super) nameless: BTreeSet<String>,
    /// What it took to note all samples, nanoseconds.
    took_ns: u64,
    /// Samples that told what they took.
    noted: u64,
}

impl Profiler {
    /// What has come of it. Waits for the last names.
    pub(super) fn finish(mut self) -> Finished {
        let begun = Instant::now();
        loop {
            self.name();
            if !self.namer.is_asking() && self.collector.new_addresses() == 0 {
                break;
            }
            if begun.elapsed() > NAMES_AWAITED {
                self.nameless.insert("they were not read in time".to_owned());
                break;
            }
            thread::sleep(PAUSE);
        }
        let noted = self.noted;
        let ns_per_sample = (noted > 0).then(|| self.took_ns as f64 / noted as f64);
        let kernel = KernelFunctions::read();
        let profile = self.collector.finish(&|address| kernel.name(address).map(str::to_owned));
        let Profiler { servers, losses, nameless, .. } = self;
        Finished { profile, servers, losses, nameless, ns_per_sample }
    }

    /// Takes the names that are there, and asks for the next ones.
    fn name(&mut self) {
        if let Some(ToldNames { pid, names }) = self.namer.poll() {
            match names {
                Ok(names) => {
                    for (address, named) in names {
                        self.collector.name(pid, address, named.map(function));
                    }
                }
                Err(why) => {
                    self.nameless.insert(format!("pid {pid}: {why}"));
                }
            }
        }
        if !self.namer.is_asking()
            && let Some((pid, addresses)) = self.collector.take_new(ADDRESSES_MAX)
        {
            self.namer.ask(pid, addresses);
        }
    }
}

/// What has come of it.
pub(super) struct Finished {
    pub(super) profile: Profile,
    pub(super) servers: BTreeMap<u32, Server>,
    pub(super) losses: Losses,
    pub(super) nameless: BTreeSet<String>,
    pub(super) ns_per_sample: Option<f64>,
}

fn function(named: Named) -> Function {
    let Named { file, function, is_named } = named;
    Function { name: function, file, is_named, is_kernel: false }
}

impl StatementSink for Profiler {
    fn begin(&mut self, server: &Server) {
        self.digests.insert(server.pid, Digests::of(server, Grouping::Digest));
        self.running.insert(server.pid);
        self.servers.insert(server.pid, server.clone());
    }

    fn ended(&mut self, statement: &Statement<'_>) {
        let Some(digests) = self.digests.get_mut(&statement.pid) else { return };
        if statement.origin == Origin::Client {
            let (key, name) = digests.digest(statement);
            self.collector.ended(statement.pid, statement.key(), key, name);
        }
    }

    fn wants_whole_texts(&self) -> bool {
        true
    }

    fn sampled(&mut self, sample: &ProcessorSample) {
        let ProcessorSample { pid, thread, user, kernel, is_cut, .. } = sample;
        self.took_ns = self.took_ns.saturating_add(sample.took_ns);
        self.noted += u64::from(sample.took_ns > 0);
        let of_client = |command: &Command| *command != Command::DAEMON;
        let command = sample.command.filter(of_client);
        let taken = Taken {
            pid: *pid,
            statement: sample.statement.filter(|_| command.is_some()),
            runs: command.is_some_and(Command::is_statement),
            thread,
            user,
            kernel,
            is_cut: *is_cut,
            waited: None,
        };
        let Some(Waited { class, ns, queued_ns }) = sample.waited else {
            return self.collector.sample(&taken);
        };
        // A thread of the server itself may have a session, and wait for work.
        if !taken.runs {
            return;
        }
        let waits = [(class, ns.saturating_sub(queued_ns)), (TimeClass::RunQueue, queued_ns)];
        for (class, ns) in waits {
            let us = ns.saturating_add(500) / 1000;
            if us > 0 {
                self.collector.sample(&Taken { waited: Some((class, us)), ..taken });
            }
        }
    }

    fn looked(&mut self, server: &Server, running: &[RunningStatement]) {
        // What runs at the end is not seen to end; what ends later keeps its digest.
        if let Some(digests) = self.digests.get_mut(&server.pid) {
            for one in running.iter().filter(|one| one.command.is_statement()) {
                if !self.collector.awaits(server.pid, one.key()) {
                    continue;
                }
                let (key, name) = digests.digest_running(one);
                self.collector.ended(server.pid, one.key(), key, name);
            }
        }
        self.name();
    }

    fn lost(&mut self, _server: &Server, losses: &Losses) {
        self.losses = self.losses.plus(losses);
    }

    fn news(&mut self, news: &News) {
        match news {
            News::Gone(gone) => {
                self.running.remove(&gone.server.pid);
                self.nameless.insert(format!("pid {}: it has ended", gone.server.pid));
            }
            News::Attached(_) | News::Refused(..) | News::RefusedMany(..) => {}
        }
    }

    fn standing(&mut self) -> Standing {
        let is_over = self.running.is_empty() && !self.servers.is_empty();
        if is_over { Standing::EndsAll } else { Standing::Takes }
    }
}
