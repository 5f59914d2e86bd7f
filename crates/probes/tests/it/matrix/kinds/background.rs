//! What the server sends or runs without a client's statement.

use waggle_model::Command;
use waggle_testkit::client::Command as Send;

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
    writer.quit();
    let is_mark = |packet: &[u8]| packet.windows(mark.len()).any(|bytes| bytes == mark.as_bytes());
    while !is_mark(&reader.client.read_packet().unwrap()) {}
    let id = reader.id();
    reader.client.hang_up();
    // The reader is told of its end by an error that is no statement's.
    let end = scene.control.note(Command::BINLOG_DUMP, None);
    let _ = end;
    scene.control.run(&format!("KILL {id}"));
    scene.wait_until_gone(id);
}

/// What an event runs has no reply; see `Absent::Nested`.
pub(crate) fn event(scene: &mut Scene) {
    scene.control.run("CREATE EVENT tick ON SCHEDULE EVERY 1 SECOND DO INSERT INTO ticks () VALUES ()");
    while scene.control.run("SELECT COUNT(*) FROM ticks").text(0, 0).as_deref() == Some("0") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    scene.control.run("DROP EVENT tick");
}
