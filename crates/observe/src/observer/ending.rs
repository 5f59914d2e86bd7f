//! The last interval of a server.

use std::mem;
use std::sync::Arc;

use waggle_host::monotonic_ns;
use waggle_model::{Ending, LastLook, Loss, Reading, Record};

use super::{Observer, Present};
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
            let begun_ns = account.books.as_ref().map_or(0, |books| books.interval().start_ns);
            let end_ns = gone.end_ns().filter(|ns| *ns > begun_ns).unwrap_or_else(monotonic_ns);
            account.books.iter_mut().for_each(|books| books.begin_closing(end_ns));
            let (looked_ns, ran) = account.last_look(&gone.parted).unzip();
            let why = || gone.reason();
            let present = Present {
                running: ran.map_or_else(|| Reading::absent(why()), Reading::Value),
                logins: Reading::absent(why()),
                unread: Reading::absent(why()),
            };
            let record = self.close(server, &mut account, present, losses, sinks);
            let record = record.map(|record| Arc::new(self.ended(record, gone, looked_ns)));
            sinks.take(record.as_slice());
        }
        self.blockers.forget(server.pid);
        sinks.companion.iter_mut().for_each(|companion| companion.end(server.pid));
    }

    /// The last record of a server: what runs in it is what ran at its end, or at the last look.
    fn ended(&self, mut record: Record, gone: &Gone, looked_ns: Option<u64>) -> Record {
        let (death, why) = (gone.death(), gone.reason());
        let wall_ns = looked_ns.map(|ns| self.clocks.wall_ns(ns));
        let ran = mem::replace(&mut record.running, Reading::Absent(why.clone())).into_value();
        let last_look = wall_ns.zip(ran).map(|(wall_ns, ran)| {
            let at_end = death.is_some_and(|death| death.ran.is_some());
            LastLook { wall_ns, at_end, ran }
        });
        let signal = death.and_then(|death| death.signal.clone());
        if death.is_some() {
            // The kernel may go on taking its threads away.
            record.state = Reading::Absent(why.clone());
        }
        record.ended = Some(Ending { why, signal, last_look });
        record
    }
}
