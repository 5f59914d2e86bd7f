//! Whether a server is read wrongly: its threads answer clients, and the answers become no statement.

use waggle_model::{Command, Loss, Losses, Origin, Server, Statement};

/// Answers without a statement that mean nothing, however few statements there are.
const HARMLESS: u64 = 20;

/// What a server was heard to answer since it was last judged, and the verdicts so far.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Statements that were captured, or are known to be lost.
    statements: u64,
    /// Replies that became no statement.
    replies: u64,
    /// Replies that showed that the server is read wrongly.
    wrong: u64,
    /// Replies of the X protocol that became no statement, since the beginning.
    of_x: u64,
    is_x_told: bool,
}

impl Silence {
    /// A statement of this server ended.
    pub(crate) fn hear(&mut self, statement: &Statement<'_>) {
        let is_statement = statement.command.is_none_or(|command| command.is_statement());
        // A statement without its text may be anything.
        let is_whole = statement.text.is_some() || statement.command != Some(Command::QUERY);
        let is_heard = is_statement && is_whole && statement.origin == Origin::Client;
        self.statements += u64::from(is_heard);
    }

    /// Adds what was lost since the last time, and judges as soon as there is enough. Returns how many replies show that
    /// the server is read wrongly; none was counted before.
    pub(crate) fn judge(&mut self, lost: &Losses) -> u64 {
        self.statements += lost.statements();
        self.replies += lost.get(Loss::NoStatement);
        let is_wrong = self.replies >= HARMLESS && self.replies > self.statements;
        if !is_wrong && self.statements < HARMLESS {
            return 0;
        }
        let wrong = if is_wrong { self.replies } else { 0 };
        (self.statements, self.replies) = (0, 0);
        self.wrong += wrong;
        wrong
    }

    /// Adds those of the X protocol. Returns how many there were so far where that is to be told: once, as soon as they are
    /// more than logins of a few clients.
    pub(crate) fn judge_x_protocol(&mut self, lost: &Losses) -> Option<u64> {
        self.of_x += lost.get(Loss::XProtocol);
        let is_told = self.of_x >= HARMLESS && !self.is_x_told;
        self.is_x_told |= is_told;
        is_told.then_some(self.of_x)
    }

    /// All replies so far that showed that the server is read wrongly.
    pub(crate) fn wrong(&self) -> u64 {
        self.wrong
    }
}

/// That a server is read wrongly, with what to do.
pub(crate) fn told(server: &Server, replies: u64) -> String {
    let Server { pid, flavour, version, build, .. } = server;
    format!(
        "pid {pid}: {replies} replies to clients became no statement, more than were captured: \
         statements are missing. waggle reads this {flavour} {version} wrongly; run `waggle verify`, \
         and report the build {build}"
    )
}

/// That clients use the X protocol, with what that means.
pub(crate) fn told_of_x(server: &Server, replies: u64) -> String {
    let Server { pid, flavour, version, .. } = server;
    format!(
        "pid {pid}: {replies} replies to clients of the X protocol became no statement so far; they \
         are counted as x_protocol. Those of logins are none; but some builds before MySQL 9 show none of \
         what such clients run: this is {flavour} {version}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(intervals: &[(u64, u64)]) -> Vec<u64> {
        let mut silence = Silence::default();
        let judge = |(statements, replies): &(u64, u64)| {
            let mut lost = Losses::default();
            lost.add(Loss::RingFull, *statements);
            lost.add(Loss::NoStatement, *replies);
            silence.judge(&lost)
        };
        intervals.iter().map(judge).collect()
    }

    #[test]
    fn many_replies_and_fewer_statements_are_a_server_that_is_read_wrongly() {
        assert_eq!(judged(&[(0, HARMLESS)]), [HARMLESS]);
        assert_eq!(judged(&[(999, 1000), (1000, 1000)]), [1000, 0]);
        assert_eq!(judged(&[(0, HARMLESS - 1)]), [0]);
    }

    #[test]
    fn replies_of_the_x_protocol_are_told_once_and_do_not_mean_that_the_server_is_read_wrongly() {
        let mut silence = Silence::default();
        let mut lost = Losses::default();
        lost.add(Loss::XProtocol, HARMLESS / 2 + 1);
        let mut judge = || (silence.judge(&lost), silence.judge_x_protocol(&lost));
        assert_eq!([judge(), judge(), judge()], [(0, None), (0, Some(HARMLESS + 2)), (0, None)]);
    }

    #[test]
    fn on_a_quiet_server_they_add_up_over_intervals_and_each_is_told_once() {
        assert_eq!(judged(&[(0, 8); 6]), [0, 0, 24, 0, 0, 24]);
    }

    #[test]
    fn a_server_whose_statements_are_captured_is_read_rightly_so_far() {
        // What came before no longer counts.
        assert_eq!(judged(&[(0, 19), (20, 0), (0, 19), (20, 0)]), [0, 0, 0, 0]);
        assert_eq!(judged(&[(10_000, 500), (0, 500)]), [0, 500]);
    }
}
