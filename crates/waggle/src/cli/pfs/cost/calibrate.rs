//! Measures prices on a private server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use jiff::Timestamp;
use waggle_calibration::{CalibrationError, Request, measure, start_knowing};
use waggle_instrumentation::cost::calibration::{Calibration, Host};
use waggle_mysql::connection::{MARK, text};
use waggle_mysql::{Connection, Options};
use waggle_private_server::{Launcher, PrivateServer, Program};

use super::super::super::{Failure, private_server, stop_on_signal};
use super::super::calibrations;
use super::super::process::NOT_FOUND;
use super::{Args, build_of};
use crate::streams::tell;

/// Connections besides the 32 sessions of the load and our own.
const SETTINGS: [&str; 2] = ["--performance-schema=ON", "--max-connections=64"];
/// As that of the private server, so that neither waits for the other.
const NICE: i32 = 10;

/// Measures the prices of a server's build, and keeps them.
pub(super) fn run(
    args: &Args,
    connection: &mut Connection,
    pid: Option<u32>,
) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let pid = pid.ok_or_else(|| {
        Failure::Cannot(anyhow!(
            "{NOT_FOUND}; prices of this host say nothing of a server elsewhere: run waggle there, as root"
        ))
    })?;
    let program = program(args, connection, pid)?;
    let server = start(&program, &stop)?;
    // What is started by us has its own already, and would have both.
    rustix::process::nice(NICE).map_err(|errno| Failure::Cannot(errno.into()))?;
    let options = options_of(&server);
    let version = same_version(connection, &options)?;
    let build = same_build(pid, server.pid())?;
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let rounds = usize::from(args.rounds);
    let mut tell = |sessions: u32, round: usize, of: usize| match round < of {
        true => tell!("prices with {sessions} sessions: round {} of {of}", round + 1),
        false => tell!("prices with {sessions} sessions: again what was void"),
    };
    let request = Request {
        options: &options,
        pid: server.pid(),
        rounds,
        seed,
        stop: &stop,
        tell: &mut tell,
    };
    let measured = measure(request)?;
    let (at, host) = (Timestamp::now(), Host::look());
    let calibration = Calibration { at, host, version, build, rounds, measured };
    let path = calibration.store(&calibrations())?;
    tell!("kept in {}", path.display());
    Ok(())
}

/// Starts the program, again while it does not know what reading its timers costs.
fn start(program: &Program, stop: &Arc<AtomicBool>) -> Result<PrivateServer, Failure> {
    let launcher = Launcher { stop: Some(stop.clone()), ..private_server::launcher()? };
    tell!("a private server is started");
    let start = || Ok(PrivateServer::start(program, &launcher, &SETTINGS)?);
    let restart = |server: PrivateServer| -> anyhow::Result<PrivateServer> {
        if stop.load(Ordering::Relaxed) {
            return Err(CalibrationError::Stopped.into());
        }
        tell!("it is started again, since it does not know what reading its timers costs");
        Ok(server.restart(program, &launcher, &SETTINGS)?)
    };
    start_knowing(start, restart, options_of).map_err(Failure::Cannot)
}

fn options_of(server: &PrivateServer) -> Options {
    let (user, socket) = (Some("root".to_owned()), Some(server.socket()));
    Options { user, socket, private: true, ..Options::default() }
}

fn program(args: &Args, connection: &mut Connection, pid: u32) -> Result<Program, Failure> {
    let flavour = connection.server_identity().flavour;
    let found = match &args.mysqld {
        Some(path) => Program::at(path, flavour),
        None => {
            let rows =
                connection.rows(&format!("SELECT @@basedir AS {MARK}, @@lc_messages_dir"))?;
            let row = rows.first().cloned().unwrap_or_default();
            let (base, messages) = (PathBuf::from(text(&row, 0)), PathBuf::from(text(&row, 1)));
            Program::of_process(pid, flavour, &base, &messages)
        }
    };
    Ok(found?)
}

/// The version of the private server, which has to be that of the server.
fn same_version(connection: &Connection, options: &Options) -> Result<String, Failure> {
    let private = Connection::open(options).context("the private server");
    let version = private.map_err(Failure::Cannot)?.server_identity().version.clone();
    let wanted = &connection.server_identity().version;
    if Calibration::is_same_release(&version, wanted) {
        return Ok(version);
    }
    Err(Failure::Cannot(anyhow!(
        "the program is {version} and the server is {wanted}: prices of one say nothing of the other; \
         name the program of that version with --mysqld"
    )))
}

/// The build of the private server, which has to be that of the server.
fn same_build(pid: u32, private: u32) -> Result<Option<String>, Failure> {
    let (wanted, build) = (build_of(pid), build_of(private));
    if wanted == build {
        return Ok(build);
    }
    let name =
        |build: Option<String>| build.unwrap_or_else(|| "one that cannot be read".to_owned());
    Err(Failure::Cannot(anyhow!(
        "the program is the build {} and the server runs {}: prices of one say nothing of the other; \
         name the program of that build with --mysqld",
        name(build),
        name(wanted)
    )))
}
