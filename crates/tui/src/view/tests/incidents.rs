//! What is seen at a glance of a server that is held up by something outside of it.

use waggle_model::{ProcessState, Reading};

use super::*;

/// The first lines of the screen.
fn head(app: &App, width: u16) -> String {
    text(&drawn(app, ALL, width, 24)).lines().take(8).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_server_that_stands_still_says_so_before_its_numbers_and_in_its_tab() {
    let mut app = watching(&[2, 3], 2);
    for (state, words) in [
        (ProcessState::Stopped, "the process is stopped (SIGSTOP); kill -CONT 3 goes on\n"),
        (ProcessState::Traced { by: 77 }, "a debugger (pid 77) holds the process; let it"),
    ] {
        let mut last = second_of(3, 3, &KINDS);
        last.record.state = Reading::Value(state);
        app.take(last);
        let seen = head(&app, 80);
        assert!(seen.contains("2 mysql 3 STOPPED"), "{seen}");
        assert!(!seen.contains("\nSTOPPED"), "the other one is in front: {seen}");
        app.on_key(Key::Tab);
        let seen = head(&app, 80);
        assert!(seen.contains(&format!("\nSTOPPED: {words}")), "{seen}");
        app.on_key(Key::Tab);
    }
    app.take(second_of(3, 4, &KINDS));
    app.on_key(Key::Tab);
    let seen = head(&app, 80);
    assert!(!seen.contains("STOPPED"), "it goes on: {seen}");
}

#[test]
fn a_server_whose_group_is_frozen_names_the_file_as_far_as_there_is_room() {
    let mut app = watching(&[2], 1);
    let by = "/sys/fs/cgroup/system.slice/docker-0123456789abcdef.scope/cgroup.freeze";
    let mut last = second_of(2, 2, &KINDS);
    last.record.state = Reading::Value(ProcessState::Frozen { by: by.into() });
    app.take(last);
    let words =
        "\nFROZEN by its control group; 0 goes on, in /sys/fs/cgroup/system.slice/docker-0…\n";
    assert!(head(&app, 80).contains(words), "{}", head(&app, 80));
    assert!(head(&app, 200).contains(&format!(" in {by}\n")), "{}", head(&app, 200));
}
