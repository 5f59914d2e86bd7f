//! The half of a connection that runs the driver.

use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use mysql::prelude::Queryable;
use mysql::{Conn, Value};
use serde_bytes::ByteBuf;
use waggle_host::Limits;

use super::frame::{self, Ask, COLUMNS_MAX, Said};
use super::{ConnectionError, Row, log_in};

/// What a child may use: the longest packet three times, as it comes, as values, and as it is said on.
const LIMITS: Limits = Limits { memory: 512 << 20, cpu_s: None };

/// Logs in as it is told at the standard input, gives up all rights, and asks the server what it is told to. For a process
/// of its own, which ends with the one that started it.
///
/// # Errors
/// If nobody listens to what it says.
pub fn serve_as_child() -> io::Result<()> {
    LIMITS.hold()?;
    let stream = io::stdin().as_fd().try_clone_to_owned()?;
    serve(stream.into(), || LIMITS.confine())
}

pub(super) fn serve(
    mut asked: UnixStream,
    confine: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(asked.try_clone()?);
    let Some((options, endpoint)) = frame::read_login(&mut asked)? else { return Ok(()) };
    let conn = log_in(&options, &endpoint);
    drop(options);
    match conn.and_then(|conn| confine().map(|()| conn).map_err(ConnectionError::child)) {
        Ok(conn) => {
            say(&mut out, &Said::LoggedIn(conn.connection_id()))?;
            answer(conn, &mut asked, &mut out)
        }
        Err(error) => say(&mut out, &Said::Failed(error)),
    }
}

fn answer(mut conn: Conn, asked: &mut UnixStream, out: &mut impl Write) -> io::Result<()> {
    while let Some(ask) = frame::read(asked)? {
        let done = match ask {
            Ask::Rows(statement) => each_row(&mut conn, &statement, |row| {
                let row = row.into_iter().map(|value| value.map(ByteBuf::from)).collect();
                frame::write(out, &Said::Row(row)).map_err(ConnectionError::child)
            }),
            Ask::Database(name) => conn.select_db(&name).map_err(ConnectionError::statement),
        };
        let is_over = matches!(done, Err(ConnectionError::NotBorne));
        say(out, &done.map_or_else(Said::Failed, |()| Said::Done))?;
        if is_over {
            // What is left of the answer would be taken for that of the next statement.
            break;
        }
    }
    Ok(())
}

fn say(out: &mut impl Write, said: &Said) -> io::Result<()> {
    frame::write(out, said)?;
    out.flush()
}

/// Sends one statement and gives each row of its result to `take`. After an error of that, the connection is of no use
/// any more.
pub(super) fn each_row(
    conn: &mut Conn,
    statement: &str,
    mut take: impl FnMut(Row) -> Result<(), ConnectionError>,
) -> Result<(), ConnectionError> {
    let bytes = |value| match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(bytes),
        other => Some(other.as_sql(true).into_bytes()),
    };
    let mut result = conn.query_iter(statement).map_err(ConnectionError::statement)?;
    for row in result.by_ref() {
        let row = row.map_err(ConnectionError::statement)?;
        let taken = match row.len() > COLUMNS_MAX {
            true => Err(ConnectionError::NotBorne),
            false => take(row.unwrap().into_iter().map(bytes).collect()),
        };
        if let Err(error) = taken {
            // Dropping it would read the rest, which may have no end.
            std::mem::forget(result);
            return Err(error);
        }
    }
    Ok(())
}
