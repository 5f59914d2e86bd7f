//! The server that is measured.

use anyhow::{Context, Result};
use waggle_calibration::{Block, Meter, Windows};
use waggle_mysql::{Connection, Options, Sources};
use waggle_stats::Random;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Server};

use crate::load;
use crate::settings::Settings;

pub(crate) const CONFIDENCE: f64 = 0.95;

/// A private server with the tables of the loads.
pub(crate) struct Subject {
    pub(crate) server: Server,
    pub(crate) options: Options,
    pub(crate) connection: Connection,
    pub(crate) meter: Meter,
    counters: Client,
}

impl Subject {
    pub(crate) fn start(settings: &Settings) -> Result<Subject> {
        let server = Server::builder(settings.server).arg("--performance-schema=ON").start()?;
        load::prepare(&server)?;
        let file = Some(server.defaults_file());
        let options = Options::read(&Sources { defaults_file: file, ..Sources::default() })?;
        let mut connection = Connection::open(&options, None)?;
        connection.rows("SET SESSION sql_mode = ''")?;
        let meter = Meter::of(server.pid())?;
        let counters = Client::connect(&server, Transport::Unix, Account::ROOT)?;
        Ok(Subject { server, options, connection, meter, counters })
    }

    /// Sends statements one after the other.
    pub(crate) fn send(&mut self, statements: &[String]) -> Result<()> {
        for statement in statements {
            self.connection.rows(statement).with_context(|| statement.clone())?;
        }
        Ok(())
    }

    /// The switch above all instruments.
    pub(crate) fn switch(connection: &mut Connection, on: bool) -> Result<()> {
        let on = if on { "YES" } else { "NO" };
        connection.rows(&format!(
            "UPDATE performance_schema.setup_consumers SET ENABLED = '{on}' \
             WHERE NAME = 'global_instrumentation'"
        ))?;
        Ok(())
    }

    /// A block of windows with what is set, and without it. `also` is told when it is switched.
    pub(crate) fn block(
        &mut self,
        windows: Windows,
        random: &mut Random,
        also: &dyn Fn(bool),
    ) -> Result<Option<Block>> {
        let Subject { connection, counters, meter, .. } = self;
        let mut switch = |on| {
            also(on);
            Subject::switch(connection, on)
        };
        let mut statements = || Ok(counters.questions()?);
        windows.block(meter, random, &mut switch, &mut statements)
    }
}
