//! Whether a window counts. The rules are fixed beforehand, and the same for every arm.

use crate::meter::Usage;
use crate::window::Measured;

/// The share of the processors that the hypervisor may take, 0 to 1.
pub const STEAL_MAX: f64 = 0.05;
/// How much longer than asked a window may be, without the transactions that were under way at its end. Beyond that the
/// lab itself had to wait.
const LONGER_MAX: f64 = 1.25;
/// The part of its length by which a window with a load at a fixed rate may fall behind the arrivals: then 95 % of them
/// were served. It is a time, since the number of arrivals differs by chance.
const BEHIND_MAX: f64 = 0.05;

/// How often a turn is repeated because the hypervisor took too much: that says nothing about the arm, and on a busy host
/// it happens in most windows.
pub const ANEW_MAX: usize = 3;

/// The share of the processors that the hypervisor took in a turn that has to be repeated: too much even if one tick of it
/// began long before. A turn of 50 ms on two processors has ten.
pub fn stolen(used: &Usage) -> Option<f64> {
    Some(used.steal_share).filter(|share| share - used.tick_share > STEAL_MAX)
}

/// Whether the hypervisor took too much of a window as a whole.
pub fn is_stolen(measured: &Measured) -> bool {
    measured.steal_share.is_some_and(|steal| steal > STEAL_MAX)
}

/// Whether a fixed rate was more than the server could do: it fell behind the arrivals.
pub fn is_overloaded(measured: &Measured) -> bool {
    let is_too_much = |[begin, end]: [f64; 2]| end - begin > BEHIND_MAX * measured.seconds;
    measured.behind_s.is_some_and(is_too_much)
}

/// What a window should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// Its length, s.
    pub seconds: f64,
    /// In how many turns it is made.
    pub turns: u32,
}

/// Why a window does not count; `None` where it does.
pub fn judge(measured: &Measured, asked: &Asked) -> Option<String> {
    if measured.transactions == Some(0) {
        return Some("no transaction ended in it".to_owned());
    }
    if measured.statements == 0 {
        return Some("no statement ended in it".to_owned());
    }
    if let Some(steal) = measured.steal_share.filter(|_| is_stolen(measured)) {
        let percent = 100.0 * steal;
        return Some(format!("the hypervisor took {percent:.1} % of the CPU time"));
    }
    let longest = measured.latency.as_ref().map_or(0.0, |latency| latency.max_ns / 1e9);
    if measured.seconds > asked.seconds * LONGER_MAX + f64::from(asked.turns) * longest {
        let (seconds, asked) = (measured.seconds, asked.seconds);
        return Some(format!("it took {seconds:.2} s instead of {asked:.2} s"));
    }
    let [begin, end] = measured.behind_s?;
    is_overloaded(measured).then(|| {
        let (begin_ms, end_ms) = (1e3 * begin, 1e3 * end);
        format!(
            "overloaded: what arrived had waited for {begin_ms:.0} ms at its beginning and for {end_ms:.0} ms at its end"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Latency;

    fn measured() -> Measured {
        Measured {
            seconds: 2.0,
            transactions: Some(2000),
            statements: 40_000,
            latency: Some(Latency::default()),
            steal_share: Some(0.0),
            ..Measured::default()
        }
    }

    #[test]
    fn each_rule_says_what_is_wrong() {
        let closed = Asked { seconds: 2.0, turns: 1 };
        assert_eq!(judge(&measured(), &closed), None);
        let bad = [
            (Measured { transactions: Some(0), ..measured() }, "no transaction"),
            (Measured { statements: 0, transactions: None, ..measured() }, "no statement"),
            (Measured { steal_share: Some(0.08), ..measured() }, "8.0 %"),
            (Measured { seconds: 3.0, ..measured() }, "3.00 s instead of 2.00 s"),
        ];
        for (measured, said) in bad {
            let why = judge(&measured, &closed).unwrap();
            assert!(why.contains(said), "{why}");
        }
        let latency = Some(Latency { max_ns: 0.6e9, ..Latency::default() });
        let waits = Measured { seconds: 3.0, latency, ..measured() };
        assert_eq!(judge(&waits, &closed), None, "transactions that were under way");
        let of_turns = Measured { seconds: 3.6, ..waits };
        assert!(judge(&of_turns, &closed).is_some());
        assert_eq!(judge(&of_turns, &Asked { turns: 2, ..closed }), None);
        // What is not measured voids nothing.
        let elsewhere = Measured { transactions: None, steal_share: None, ..measured() };
        assert_eq!(judge(&elsewhere, &closed), None);
        let open = |begin, end| {
            let measured = Measured { behind_s: Some([begin, end]), ..measured() };
            judge(&measured, &closed)
        };
        assert_eq!(open(0.0, 0.0), None);
        // A queue that stays as long as it is, is a latency like any other.
        assert_eq!(open(0.3, 0.39), None);
        assert!(open(0.0, 0.11).unwrap().contains("0 ms at its beginning and for 110 ms"));
    }
}
