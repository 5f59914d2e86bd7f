//! What the server sends or runs without a client's statement.

use waggle_testkit::client::Command as Send;
use waggle_testkit::wait_until;

use crate::matrix::absent::Absent;
use crate::matrix::scene::Scene;

/// Event type and flag offsets: `binlog_event.h`, the common header of 19 bytes.
const EVENT_TYPE_AT: usize = 1 + 4;
const ROTATE: u8 = 4;

/// Reads the binary log as a replica does; what it is sent are no statements.
pub(crate) fn binlog_reader(scene: &mut Scene) {
    let mut reader = scene.open();
    reader.run("SET @master_binlog_checksum = @@global.binlog_checksum");
    if scene.is_mariadb() {
        reader.run("SET @mariadb_slave_capability = 4");
    }
    // Position, flags, server id, and no name: the first file.
    let mut payload = 4u32.to_le_bytes().to_vec();
    payload.extend(0u16.to_le_bytes());
    payload.extend(77u32.to_le_bytes());
    reader.client.send(Send::BinlogDump, &payload).unwrap();
    let first = reader.client.read_packet().unwrap();
    assert_eq!((first[0], first[EVENT_TYPE_AT]), (0, ROTATE), "{first:?}");

    let mark = format!("binlog mark {}", scene.transport);
    let mut writer = scene.open();
    for number in 0..20 {
        writer.run(&format!("INSERT INTO bag (v) VALUES ({number})"));
    }
    writer.run(&format!("INSERT INTO kept (v, note) VALUES (0, '{mark}')"));
    let is_mark = |packet: &[u8]| packet.windows(mark.len()).any(|bytes| bytes == mark.as_bytes());
    while !is_mark(&reader.client.read_packet().unwrap()) {}
    let id = reader.id();
    reader.client.hang_up();
    // The server notes that the reader has gone when it has something to send to it.
    wait_until("the end of the reader of the binary log", || {
        writer.run("INSERT INTO bag (v) VALUES (0)");
        !scene.has(id)
    });
    writer.quit();
}

/// What an event runs has no reply; see `Absent::Nested`.
pub(crate) fn event(scene: &mut Scene) {
    assert!(scene.lacks(Absent::Nested));
    let sql = "CREATE EVENT tick ON SCHEDULE EVERY 1 SECOND DO INSERT INTO ticks () VALUES ()";
    scene.control.run(sql);
    wait_until("the event", || {
        scene.control.run("SELECT COUNT(*) FROM ticks").text(0, 0).as_deref() != Some("0")
    });
    scene.control.run("DROP EVENT tick");
}
