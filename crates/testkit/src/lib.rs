//! What tests and benches need of the outside world: private servers of every version that waggle
//! is proven on, a client that can send any packet, and sysbench.
//!
//! ```no_run
//! use waggle_testkit::{Server, Version};
//!
//! let server = Server::start(Version::Mysql9)?;
//! println!("{} listens on {}", server.version_string(), server.port());
//! # Ok::<(), waggle_testkit::Error>(())
//! ```
//!
//! Every server has its own port, socket and data directory below the build directory and ends
//! with the process that started it, even when that is killed. `cargo xtask setup` fetches the
//! programs.

#![forbid(unsafe_code)]

mod account;
pub mod client;
mod crash;
mod error;
pub mod fake;
mod install;
mod killed;
mod launch;
mod lease;
mod place;
pub mod secrets;
mod server;
mod settings;
pub mod sysbench;
mod template;
mod tls;
mod version;
mod wait;
pub mod x_client;

pub use account::Account;
pub use client::{Client, Transport};
pub use crash::create_crash;
pub use error::{Error, Result};
pub use install::{MARIADB_IN_SID, describe, list, program};
pub use killed::Killed;
pub use launch::launcher;
pub use lease::Leased;
pub use place::{servers_dir, target_dir};
pub use server::{Server, ServerBuilder};
pub use settings::PerformanceSchema;
pub use version::Version;
pub use wait::{PATIENCE, wait_for, wait_showing, wait_until};
