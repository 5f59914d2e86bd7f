//! The sessions of the mix. Each has its own thread, since most of them wait.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use waggle_testkit::{Client, Server};

/// A session has run all its statements, or one of them failed.
type Answer = (usize, Result<(), String>);

pub(super) struct MixSessions {
    orders: Vec<Sender<Vec<String>>>,
    answers: Receiver<Answer>,
    threads: Vec<JoinHandle<()>>,
}

impl MixSessions {
    /// Opens `number` sessions; returns their connection ids, too.
    pub(super) fn open(server: &Server, number: usize) -> (MixSessions, Vec<u64>) {
        let (sender, answers) = channel();
        let (mut orders, mut threads, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..number {
            let client = server.root().unwrap();
            ids.push(client.connection_id().into());
            let (order, told) = channel();
            let sender = sender.clone();
            threads.push(thread::spawn(move || serve(client, at, &told, &sender)));
            orders.push(order);
        }
        (MixSessions { orders, answers, threads }, ids)
    }

    pub(super) fn send(&self, at: usize, statements: Vec<String>) {
        self.orders[at].send(statements).unwrap();
    }

    /// Sessions that have got their reply.
    pub(super) fn answered(&self) -> Vec<usize> {
        self.answers.try_iter().map(answer_of).collect()
    }

    /// The next session that gets its reply within `moment`.
    pub(super) fn wait_a_moment(&self, moment: Duration) -> Option<usize> {
        self.answers.recv_timeout(moment).ok().map(answer_of)
    }

    /// Ends all sessions; none may be waiting.
    pub(super) fn close(self) {
        drop(self.orders);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

fn answer_of((at, result): Answer) -> usize {
    result.unwrap_or_else(|error| panic!("a statement of session {at} failed: {error}"));
    at
}

fn serve(mut client: Client, at: usize, told: &Receiver<Vec<String>>, sender: &Sender<Answer>) {
    for statements in told {
        let run = |statement: &String| match client.run(statement) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{statement}: {error}")),
        };
        let result = statements.iter().try_for_each(run);
        if sender.send((at, result)).is_err() {
            return;
        }
    }
}
