//! Who used the processors.

/// What the processors that a server may use did in an interval, in cores: 1 is a whole processor all the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessorUse {
    /// How many they are.
    pub processors: u64,
    /// In use, by the server or by others. What was taken away is none of it.
    pub busy: f64,
    /// In use by the server, also beside these processors.
    pub server: f64,
    /// Taken away by the hypervisor; `None` where that does not tell.
    pub stolen: Option<f64>,
    /// The limit of a control group that holds the server back most; `None` where none was found.
    pub limit: Option<ProcessorLimit>,
}

/// A limit of a control group on processor time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessorLimit {
    /// What the group may use, cores.
    pub cores: f64,
    /// In which share of the periods in which it ran it was held back, because it had used all of it.
    pub held_back: f64,
}

impl ProcessorUse {
    /// In use by others.
    pub fn others(&self) -> f64 {
        (self.busy - self.server).max(0.0)
    }

    /// A number of cores as a share of all of them.
    pub fn share(&self, cores: f64) -> f64 {
        cores / self.processors.max(1) as f64
    }
}
