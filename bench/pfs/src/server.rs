//! The server that is measured.

use anyhow::{Context, Result};
use waggle_calibration::{Block, Windows};
use waggle_host::Meter;
use waggle_mysql::{Connection, Options, Sources};
use waggle_stats::Random;
use waggle_testkit::{Client, Server};

use crate::load;
use crate::settings::Settings;

/// A private server with the tables of the loads.
pub(crate) struct Subject {
    pub(crate) server: Server,
    pub(crate) options: Options,
    pub(crate) connection: Connection,
    pub(crate) meter: Meter,
    counters: Client,
}

/// A private server without tables.
pub(crate) fn start(settings: &Settings) -> Result<Server> {
    Ok(Server::builder(settings.server).arg("--performance-schema=ON").start()?)
}

impl Subject {
    pub(crate) fn start(settings: &Settings) -> Result<Subject> {
        let server = start(settings)?;
        load::prepare(&server)?;
        let file = Some(server.defaults_file());
        let options = Options::read(&Sources { defaults_file: file, ..Sources::default() })?;
        let mut connection = Connection::open(&options)?;
        connection.rows("SET SESSION sql_mode = ''")?;
        let meter = Meter::of(server.pid())?;
        let counters = server.root()?;
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
