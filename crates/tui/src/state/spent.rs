//! Where the time of statements went, in few bytes: the history keeps much of it.

use waggle_model::{AfterReply, Parts, Spent, TimeClass, Usage};

/// A number for every class that has one, in the order of the classes. Classes without one take no memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ByClass(Box<[(TimeClass, f32)]>);

impl ByClass {
    /// Of parts in nanoseconds, each divided by `by`.
    fn of(parts: &Parts, by: f64) -> ByClass {
        let number = |class| (class, (parts.get(class) as f64 / by) as f32);
        ByClass(TimeClass::ALL.map(number).into_iter().filter(|it| it.1 > 0.0).collect())
    }

    /// The number of a class.
    pub(crate) fn get(&self, class: TimeClass) -> f64 {
        self.iter().find(|it| it.0 == class).map_or(0.0, |it| it.1)
    }

    /// The classes that have a number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TimeClass, f64)> + '_ {
        self.0.iter().map(|(class, number)| (*class, f64::from(*number)))
    }

    /// All classes together.
    pub(crate) fn sum(&self) -> f64 {
        self.iter().map(|it| it.1).sum()
    }

    fn bytes(&self) -> usize {
        self.0.len() * size_of::<(TimeClass, f32)>()
    }
}

/// Of one digest, or of all, in one interval.
#[derive(Clone, Debug)]
pub(crate) struct TimeSpent {
    /// Latency of the statements that ended, nanoseconds; `None` if a part of it was not measured.
    pub(crate) parts: Option<ByClass>,
    /// Average active sessions; what is lacking in the load is not told yet. `None` as above.
    pub(crate) load: Option<ByClass>,
    /// What the statements that ended used; `None` as above.
    pub(crate) usage: Option<Usage>,
    pub(crate) after_reply: AfterReply,
}

impl TimeSpent {
    /// `None` if nothing was measured. `is_measured`: statements that end tell where their time went.
    pub(crate) fn of(spent: &Spent, length_ns: u64, is_measured: bool) -> Option<Box<TimeSpent>> {
        let of = TimeSpent {
            parts: spent.parts.get().map(|parts| ByClass::of(parts, 1.0)),
            load: spent.load(is_measured).map(|parts| ByClass::of(parts, length_ns.max(1) as f64)),
            usage: spent.usage.get().copied(),
            after_reply: spent.after_reply,
        };
        let is_known = of.parts.is_some() || of.load.is_some() || of.usage.is_some();
        is_known.then(|| Box::new(of))
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let classes = [&self.parts, &self.load].into_iter().flatten();
        size_of::<TimeSpent>() + classes.map(ByClass::bytes).sum::<usize>()
    }
}
