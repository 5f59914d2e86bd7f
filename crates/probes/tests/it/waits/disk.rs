//! Reads of a disk, by statements that find nothing in the memory of the server.

use std::fs;

use waggle_model::{Parts, TimeClass, Usage};
use waggle_testkit::{Client, Server, Version, on_each_server};

use super::counted::task_of;
use super::{client, run, shown, text, watching};

/// Rows of the table, of which a page has three.
const ROWS: u32 = 4096;
/// Statements, each of one row. They are so far from each other that nobody reads ahead.
const STATEMENTS: u32 = 100;

fn cold_reads_are_disk_reads_with_their_bytes(version: Version) {
    // Memory for half of the table: most of its pages are on disk only.
    let builder = Server::builder(version).arg("--innodb-buffer-pool-size=8M");
    let builder = builder.arg("--innodb-flush-method=O_DIRECT");
    let mut server = builder.start().unwrap();
    fill(&mut client(&server));
    server.restart().unwrap();
    let mut session = client(&server);
    run(&mut session, "SELECT id FROM cold WHERE id = 1");
    let task = task_of(&server, &mut client(&server), &session);
    let mut capture = watching(&server);
    capture.attach();
    let before = bytes_read(&task);
    for number in 1..=STATEMENTS {
        let id = number * 1_117 % ROWS;
        run(&mut session, &format!("SELECT body FROM cold WHERE id = {id}"));
    }
    let by_kernel = bytes_read(&task) - before;
    let (mut parts, mut usage, mut statements) = (Parts::default(), Usage::default(), 0);
    for one in capture.at_rest().iter().filter(|one| text(one).starts_with("SELECT body")) {
        parts.merge(&one.parts.unwrap());
        usage.merge(&one.usage.unwrap());
        statements += 1;
    }
    assert_eq!(statements, STATEMENTS, "{version}");
    let told = format!("{version}: {}", shown(&parts));
    assert!(by_kernel > 0, "{told}");
    // The thread may also read outside of its statements.
    let bytes = usage.read_bytes;
    assert!(bytes <= by_kernel && bytes * 10 >= by_kernel * 9, "{told}: {bytes} of {by_kernel}");
    let [read, cpu, queue] =
        [TimeClass::DiskRead, TimeClass::Cpu, TimeClass::RunQueue].map(|class| parts.get(class));
    let off = parts.total() - cpu - queue;
    assert!(read > 0 && read * 10 >= off * 8, "{told}");
}

on_each_server!(
    cold_reads_are_disk_reads_with_their_bytes: mysql_9 Mysql9, mariadb_11_4 Mariadb114
);

fn fill(client: &mut Client) {
    run(client, "CREATE TABLE cold (id INT PRIMARY KEY, body VARCHAR(4000)) ENGINE=InnoDB");
    run(client, "INSERT INTO cold VALUES (0, REPEAT('x', 4000))");
    let doublings = ROWS.ilog2();
    for rows in (0..doublings).map(|doubling| 1 << doubling) {
        run(client, &format!("INSERT INTO cold SELECT id + {rows}, body FROM cold"));
    }
}

/// Bytes that a thread made the block layer read (proc_pid_io(5)).
fn bytes_read(task: &str) -> u64 {
    let counted = fs::read_to_string(format!("{task}/io")).unwrap();
    let read = counted.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    read.unwrap().parse().unwrap()
}
