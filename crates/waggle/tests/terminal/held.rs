//! Who holds what a statement waits for, while it waits.

use std::thread;

use waggle_testkit::{Client, Server, Version};

use crate::tmux::Tmux;
use crate::{load, selected, watch};

/// The words of the line of a running session.
fn line_of(screen: &str, id: u32) -> Vec<&str> {
    let lines = screen.lines().skip_while(|line| !line.starts_with("RUNNING")).skip(2);
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let id = id.to_string();
    words.into_iter().find(|words| words.contains(&id.as_str())).unwrap_or_default()
}

/// A session that waits for a row until the server ends, or until it gets it. Its id.
fn wait_for_the_row(server: &Server) -> u32 {
    let mut session = load::session(server);
    let id = session.connection_id();
    thread::spawn(move || session.run("UPDATE held SET v = v + 1 WHERE id = 1").map(drop));
    id
}

/// A transaction that has changed the row, read something else, and goes on no more.
fn hold_the_row(holder: &mut Client) {
    for sql in
        ["BEGIN", "UPDATE held SET v = 7 WHERE id = 1", "SELECT COUNT(*) FROM held WHERE v = 3"]
    {
        holder.run(sql).unwrap();
    }
}

fn told_while_it_waits(server: &Server, version: Version) {
    let mut holder = load::session(server);
    holder.run("CREATE TABLE held (id INT PRIMARY KEY, v INT) ENGINE = InnoDB").unwrap();
    holder.run("INSERT INTO held VALUES (1, 0)").unwrap();
    let tmux = Tmux::start(160, 70);
    watch(&tmux, server, "");
    hold_the_row(&mut holder);
    let (by, first) = (holder.connection_id(), wait_for_the_row(server));
    let id = by.to_string();
    let waits = |screen: &str| {
        let line = line_of(screen, first);
        // WAIT is of two words, and WAITED of a number and its unit.
        line.starts_with(&["row", "lock"]) && line.get(4) == Some(&id.as_str())
    };
    tmux.wait_for(&format!("{version}: who holds the row, in the list"), waits);
    // Behind the first, so that this one waits longest.
    let second = wait_for_the_row(server);
    let both = |screen: &str| {
        !line_of(screen, second).is_empty() && selected(screen).contains("UPDATE `held`")
    };
    tmux.press(&["Home"]);
    tmux.wait_for(&format!("{version}: both of them"), both);
    tmux.press(&["Enter"]);
    let told = [
        &format!("Waits now           session {first}, root@localhost: row lock, for "),
        "; 1 more session waits\n",
        &format!("Held by             session {by} on test.held\n"),
        &format!("  Session {by:<10}root@localhost, idle for "),
        "  Ran last          SELECT COUNT(*) FROM held WHERE v = ?\n",
        "  Wrote first       UPDATE held SET v = ? WHERE id = ?\n",
    ];
    let is_told = |screen: &str| told.iter().all(|words| screen.contains(words));
    tmux.wait_for(&format!("{version}: {told:#?}"), is_told);
    holder.run("COMMIT").unwrap();
    let is_over =
        |screen: &str| !screen.contains("Waits now") && screen.contains("Longest lock wait   ");
    tmux.wait_for(&format!("{version}: the wait that is over"), is_over);
    tmux.press(&["Escape"]);
    tmux.quit();
}

#[test]
fn an_opened_digest_that_still_waits_shows_who_holds_the_lock_and_what_that_session_ran() {
    Version::each(|version| {
        told_while_it_waits(&Server::start(version).unwrap(), version);
    });
}
