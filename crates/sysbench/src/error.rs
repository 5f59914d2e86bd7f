//! Why there is no load.

use std::io;
use std::path::PathBuf;

/// Why sysbench does not do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub enum SysbenchError {
    /// There is no such program.
    #[error("there is no program {}; install the package sysbench (version 1.0)", program.display())]
    Missing {
        /// The program that was looked for.
        program: PathBuf,
    },
    /// It is not sysbench 1.0.
    #[error("{} is not sysbench 1.0, it says `{said}`; install the package sysbench", program.display())]
    Version {
        /// The program.
        program: PathBuf,
        /// What it says of its version.
        said: String,
    },
    /// There is no such script.
    #[error(
        "there is no script {script}; name one that comes with sysbench (in /usr/share/sysbench, \
         without .lua)"
    )]
    Script {
        /// The script.
        script: String,
    },
    /// sysbench failed.
    #[error("sysbench with {script}: {how}\n{said}")]
    Failed {
        /// The script.
        script: String,
        /// What it could not do, or how it ended.
        how: String,
        /// What it said.
        said: String,
    },
    /// The system refuses something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: String,
        /// What the system says.
        source: io::Error,
    },
}

impl SysbenchError {
    /// For `map_err`.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> SysbenchError {
        move |source| SysbenchError::System { what: what.into(), source }
    }
}
