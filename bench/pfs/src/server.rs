//! The server that is measured.

use anyhow::{Context, Result};
use waggle_calibration::{Block, Meter, Windows};
use waggle_mysql::connection::text;
use waggle_mysql::{Connection, Options, Sources};
use waggle_stats::Random;
use waggle_testkit::Server;

use crate::load;
use crate::settings::Settings;

pub(crate) const CONFIDENCE: f64 = 0.95;
/// A private server with the tables of the loads.
pub(crate) struct Subject {
    pub(crate) server: Server,
    pub(crate) options: Options,
    pub(crate) connection: Connection,
    pub(crate) meter: Meter,
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
        Ok(Subject { server, options, connection, meter })
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
        // Both closures use the one connection, never at once.
        let connection = std::cell::RefCell::new(&mut self.connection);
        let mut switch = |on| {
            also(on);
            Subject::switch(&mut connection.borrow_mut(), on)
        };
        let mut statements = || questions(&mut connection.borrow_mut());
        windows.block(&self.meter, random, &mut switch, &mut statements)
    }
}

fn questions(connection: &mut Connection) -> Result<u64> {
    let rows = connection.rows("SHOW GLOBAL STATUS LIKE 'Questions'")?;
    let questions = rows.first().map(|row| text(row, 1)).unwrap_or_default();
    questions.parse().with_context(|| format!("Questions is {questions:?}"))
}
