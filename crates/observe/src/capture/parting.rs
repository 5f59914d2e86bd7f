//! The end of the watch over a server.

use waggle_host::monotonic_ns;
use waggle_model::Statement;
use waggle_probes::capture::Amount;

use super::{Capture, RunningTexts, Watched};
use crate::news::{Gone, News, Parted};

impl Capture {
    pub(super) fn forget(
        &mut self,
        pid: u32,
        news: &mut Vec<News>,
        consume: &mut dyn FnMut(&Statement<'_>),
    ) {
        self.refused.forget(pid);
        self.builds.forget(pid);
        if self.watched.contains_key(&pid) {
            self.tap.drain(Amount::UpToNow, &mut *consume);
            let death = self.tap.death(pid);
            // What was told at the end is the last look.
            if let (Some(at_ns), Some(ran)) = (death.at_ns, &death.ran) {
                self.tap.settle(pid, ran, at_ns, &mut *consume);
            }
            let ran = self.tap.settle(pid, &[], monotonic_ns(), consume);
            news.extend(self.let_go(pid, Parted::Ended { ran, death }).map(News::Gone));
        }
    }

    /// Ends the watch over servers that have ended. Hands over what they ran.
    pub fn let_ended_go(&mut self, consume: &mut dyn FnMut(&Statement<'_>)) -> Vec<News> {
        let ended = |(pid, watched): (&u32, &Watched)| watched.found.has_ended().then_some(*pid);
        let ended: Vec<u32> = self.watched.iter().filter_map(ended).collect();
        let mut news = Vec::new();
        for pid in ended {
            self.forget(pid, &mut news, consume);
        }
        news
    }

    /// Ends the watch over a server whose statements were handed over.
    pub(super) fn let_go(&mut self, pid: u32, parted: Parted) -> Option<Box<Gone>> {
        let server = self.watched.remove(&pid)?.server;
        // Another server may get its pid by the time that this is read.
        let losses = self.tap.detach(pid);
        Some(Box::new(Gone { server, losses, parted }))
    }

    /// Ends the watch over servers that the last look has shown to have nothing by which to watch them. Hands over
    /// what they ran up to now.
    pub fn let_unfit_go(&mut self, consume: &mut dyn FnMut(&Statement<'_>)) -> Vec<Box<Gone>> {
        let why = |(pid, watched): (&u32, &Watched)| Some((*pid, watched.unfit.clone()?));
        let unfit: Vec<(u32, String)> = self.watched.iter().filter_map(why).collect();
        let mut all = Vec::new();
        for (pid, why) in unfit {
            // What runs now has not ended unseen.
            let looked_ns = monotonic_ns();
            let running = self.sample_one(pid, RunningTexts::Shown);
            self.tap.drain(Amount::UpToNow, &mut *consume);
            if let Some(Ok(running)) = running {
                self.tap.settle(pid, &running, looked_ns, &mut *consume);
            }
            all.extend(self.let_go(pid, Parted::RunsOn { why }));
        }
        all
    }
}
