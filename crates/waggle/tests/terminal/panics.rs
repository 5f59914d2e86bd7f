//! A panic while the terminal is ours.
//!
//! Nothing makes the binary panic, so this program takes its place: it runs itself once more in a
//! terminal, takes that over by the code of the binary, and panics there.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, thread};

use waggle_tui::{App, Options};

use crate::screen::Screen;
use crate::tmux::Tmux;

/// Says to the one in the terminal what is to panic.
const WHO: &str = "WHO_PANICS";
/// The file for which it waits before it does.
const NOW: &str = "now";

#[test]
fn a_panic_leaves_the_terminal_as_it_was_and_its_message_to_be_read() {
    if let Ok(who) = env::var(WHO) {
        return panic_in_the_terminal(&who);
    }
    let program = env::current_exe().unwrap();
    let name = "panics::a_panic_leaves_the_terminal_as_it_was_and_its_message_to_be_read";
    for who in ["view", "capture"] {
        let tmux = Tmux::start(200, 40);
        let before = tmux.state();
        let program = program.display();
        tmux.command(&format!("{WHO}={who} {program} --exact {name} --nocapture; echo ended"));
        tmux.wait_for("the view", |screen| screen.contains("waiting for the first interval"));
        assert_eq!(tmux.variable("alternate_on"), "1");
        assert_eq!(tmux.variable("cursor_flag"), "0");
        assert!(!tmux.screen().contains("echo ended"), "the shell's lines are away");
        fs::write(tmux.dir().join(NOW), "").unwrap();
        let screen = tmux.wait_for("the end", |screen| screen.contains("\nended"));
        assert!(screen.contains("echo ended"), "the shell's lines are back:\n{screen}");
        // Each line begins at the left: the terminal adds the return again.
        let mut lines = screen.lines().skip_while(|line| !line.starts_with("thread '"));
        assert!(lines.next().is_some_and(|line| line.contains("panicked at")), "{screen}");
        assert_eq!(lines.next(), Some(&*format!("the {who} fell over")), "{screen}");
        assert_eq!(tmux.state(), before, "{who}: the terminal is as it was");
    }
}

/// As in the binary: the screen belongs to the thread of the view, the capture is another.
fn panic_in_the_terminal(who: &str) {
    let mut screen = Screen::enter(Arc::default()).unwrap();
    let is_view = who == "view";
    let view = thread::Builder::new().name("terminal".to_owned()).spawn(move || {
        let mut app = App::new(Options { cpus: 2, literals: false });
        while screen.draw(&mut app).is_ok() {
            assert!(!(is_view && Path::new(NOW).exists()), "the view fell over");
            thread::sleep(Duration::from_millis(20));
        }
    });
    let view = view.unwrap();
    while !view.is_finished() {
        assert!(is_view || !Path::new(NOW).exists(), "the capture fell over");
        thread::sleep(Duration::from_millis(20));
    }
}
