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
mod error;
mod home;
mod install;
mod launch;
mod place;
mod server;
mod settings;
pub mod sysbench;
mod template;
mod tls;
mod version;

pub use account::Account;
pub use client::Client;
pub use client::Transport;
pub use error::Error;
pub use error::Result;
pub use install::describe;
pub use install::list;
pub use place::servers_dir;
pub use place::target_dir;
pub use server::Server;
pub use server::ServerBuilder;
pub use settings::PerformanceSchema;
pub use version::Version;
