//! What takes what the observer sees.

use std::sync::Arc;

use waggle_model::{
    DigestKey, Interval, Losses, ProcessorSample, Record, RunningStatement, Server, Statement,
};
use waggle_probes::tap::Ready;

use crate::News;

/// How a sink stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It takes what comes.
    Takes,
    /// It has ended, and the others go on. The observation ends with the last one.
    Ended,
    /// It has ended, and the observation is to end with it.
    EndsAll,
}

/// Takes statements. It is called on the thread that empties the rings, so it must not wait for anything.
pub trait StatementSink {
    /// A server is watched from now on.
    fn begin(&mut self, _server: &Server) {}

    /// A statement ended.
    fn ended(&mut self, statement: &Statement<'_>);

    /// A session waits for its next request; only where the tap was asked to tell.
    fn ready(&mut self, _ready: Ready) {}

    /// Whether it reads the whole texts of what runs.
    fn wants_whole_texts(&self) -> bool {
        false
    }

    /// What a thread did at a moment; only where the tap was asked to tell.
    fn sampled(&mut self, _sample: &ProcessorSample) {}

    /// What runs in a server. What ended before the look is handed over after this.
    fn look(&mut self, _server: &Server, _running: &[RunningStatement]) {}

    /// Everything that ended before the look at a server was handed over.
    fn looked(&mut self, _server: &Server, _running: &[RunningStatement]) {}

    /// What was lost of a server since the last call.
    fn lost(&mut self, _server: &Server, _losses: &Losses) {}

    /// A server came or went.
    fn news(&mut self, _news: &News) {}

    /// What waits was handed over, for now: a batch ends here.
    fn turn(&mut self) {}

    /// A sentence for the user.
    fn tell(&mut self, _words: &str) {}

    /// What the user should know of it and was not told yet.
    fn complaint(&mut self) -> Option<String> {
        None
    }

    /// Whether it goes on.
    fn standing(&mut self) -> Standing {
        Standing::Takes
    }
}

/// Takes records. It is called on the thread that empties the rings, so it must not wait for anything.
pub trait RecordSink {
    /// The records of all servers whose interval ended at the same time.
    fn take(&mut self, records: &[Arc<Record>]);

    /// A server came or went.
    fn news(&mut self, _news: &News) {}

    /// A sentence for the user.
    fn tell(&mut self, _words: &str) {}

    /// What the user should know of it and was not told yet.
    fn complaint(&mut self) -> Option<String> {
        None
    }

    /// Whether it goes on.
    fn standing(&mut self) -> Standing {
        Standing::Takes
    }
}

/// Somebody of ours who talks to the servers about what is captured. Its own statements are in no record.
pub trait Companion {
    /// A server is watched from now on.
    fn begin(&mut self, server: &Server);

    /// A server has ended.
    fn end(&mut self, pid: u32);

    /// Whether it sent this statement.
    fn sent(&self, statement: &Statement<'_>) -> bool;

    /// Whether this running statement is one of its own.
    fn runs(&self, pid: u32, running: &RunningStatement) -> bool;

    /// A digest is met for the first time in an interval.
    fn meet(&self, key: DigestKey, statement: &Statement<'_>);

    /// Adds what it knows to an interval.
    fn complete(&self, pid: u32, interval: &mut Interval);

    /// What a server told of its `max_digest_length`; `None` unless it had to be asked.
    fn max_digest_length(&self, pid: u32) -> Option<u64>;

    /// What is new since the last call.
    fn news(&self) -> Vec<String>;
}

/// Everything that takes what one observer sees.
#[derive(Default)]
pub struct Sinks<'a> {
    /// Those of statements.
    pub statements: Vec<&'a mut dyn StatementSink>,
    /// Those of records. Without any, no records are made.
    pub records: Vec<&'a mut dyn RecordSink>,
    /// Who asks the servers.
    pub companion: Option<&'a mut dyn Companion>,
}

impl Sinks<'_> {
    pub(crate) fn news(&mut self, news: &News) {
        self.statements.iter_mut().for_each(|sink| sink.news(news));
        self.records.iter_mut().for_each(|sink| sink.news(news));
    }

    pub(crate) fn take(&mut self, records: &[Arc<Record>]) {
        if !records.is_empty() {
            self.records.iter_mut().for_each(|sink| sink.take(records));
        }
    }

    /// Whether there is none.
    pub(crate) fn are_none(&self) -> bool {
        self.statements.is_empty() && self.records.is_empty()
    }

    /// Whether one of them ends all, or none is left.
    pub(crate) fn are_over(&mut self) -> bool {
        let statements = self.statements.iter_mut().map(|sink| sink.standing());
        let standings = statements.chain(self.records.iter_mut().map(|sink| sink.standing()));
        let standings: Vec<Standing> = standings.collect();
        let is_one_left = standings.is_empty() || standings.contains(&Standing::Takes);
        !is_one_left || standings.contains(&Standing::EndsAll)
    }

    /// What has become known since the last call, for the user.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        let of_companion = self.companion.as_ref().map(|companion| companion.news());
        let statements = self.statements.iter_mut().filter_map(|sink| sink.complaint());
        let records = self.records.iter_mut().filter_map(|sink| sink.complaint());
        of_companion.into_iter().flatten().chain(statements).chain(records).collect()
    }

    pub(crate) fn tell(&mut self, words: &str) {
        self.statements.iter_mut().for_each(|sink| sink.tell(words));
        self.records.iter_mut().for_each(|sink| sink.tell(words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stands(Standing);

    impl StatementSink for Stands {
        fn ended(&mut self, _statement: &Statement<'_>) {}

        fn standing(&mut self) -> Standing {
            self.0
        }
    }

    impl RecordSink for Stands {
        fn take(&mut self, _records: &[Arc<Record>]) {}

        fn standing(&mut self) -> Standing {
            self.0
        }
    }

    #[test]
    fn the_observation_ends_with_the_last_sink_or_with_one_that_ends_all() {
        use Standing::{Ended, EndsAll, Takes};
        assert!(!Sinks::default().are_over(), "nobody has ended");
        for (of_statements, of_records, is_over) in [
            (Takes, Takes, false),
            (Takes, Ended, false),
            (Ended, Takes, false),
            (Ended, Ended, true),
            (Takes, EndsAll, true),
            (EndsAll, Takes, true),
        ] {
            let (mut log, mut output) = (Stands(of_statements), Stands(of_records));
            let (statements, records) = (
                vec![&mut log as &mut dyn StatementSink],
                vec![&mut output as &mut dyn RecordSink],
            );
            let mut sinks = Sinks { statements, records, companion: None };
            assert_eq!(sinks.are_over(), is_over, "{of_statements:?} {of_records:?}");
        }
    }
}
