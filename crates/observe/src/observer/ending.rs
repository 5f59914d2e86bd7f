//! The last interval of a server.

use std::sync::Arc;

use waggle_host::monotonic_ns;
use waggle_model::{Ending, LastLook, Loss, Reading, Record};

use super::Observer;
use crate::news::Gone;
use crate::sink::Sinks;

impl Observer {
    /// Closes it, and ends all that is kept of the server.
    pub(super) fn close_last(&mut self, gone: &Gone, sinks: &mut Sinks<'_>) {
        let server = &gone.server;
        let mut losses = gone.losses;
        losses.add(Loss::LockWait, self.blockers.lost_waits(server.pid));
        let losses = self.lost_before.last(server.pid, losses);
        let losses = self.judge(server, losses, sinks);
        self.tell_losses(server, losses, sinks);
        if let Some(mut account) = self.accounts.remove(&server.pid) {
            account.books.iter_mut().for_each(|books| books.begin_closing(monotonic_ns()));
            let look = account.last_look(&gone.parted);
            let looked_ns = look.as_ref().map(|(looked_ns, _)| *looked_ns);
            let ran =
                look.map_or_else(|| Reading::absent(gone.reason()), |(_, ran)| Reading::Value(ran));
            let record = self.close(server, &mut account, ran, losses, Some(gone), sinks);
            let record = record.map(|record| {
                let (running, ran) = (Reading::absent(gone.reason()), record.running);
                let wall_ns = looked_ns.map(|ns| self.clocks.wall_ns(ns));
                let last_look = wall_ns.zip(ran.into_value());
                let at_end = gone.is_told();
                let last_look = last_look.map(|(wall_ns, ran)| LastLook { wall_ns, at_end, ran });
                let signal = gone.signal().cloned();
                let ended = Some(Ending { why: gone.reason(), signal, last_look });
                // The kernel may go on taking its threads away.
                let state = match gone.has_ended() {
                    true => Reading::absent(gone.reason()),
                    false => record.state,
                };
                Arc::new(Record { running, state, ended, ..record })
            });
            sinks.take(record.as_slice());
        }
        self.blockers.forget(server.pid);
        sinks.companion.iter_mut().for_each(|companion| companion.end(server.pid));
    }
}
