//! Every key, filter and view, in one session.

use std::time::Duration;
use std::{fs, thread};

use waggle_testkit::{Server, Version, wait_until};

use crate::tmux::Tmux;
use crate::{busy, digests, selected, watch};

#[test]
fn every_key_does_what_the_page_of_keys_says() {
    let (server, _load) = busy(Version::Mysql9);
    let tmux = Tmux::start(120, 40);
    let before = tmux.state();
    watch(&tmux, &server, "--no-waits");
    let screen = tmux.wait_for("a busy interval", |screen| digests(screen).len() > 10);
    for word in
        ["mysql 9.", "statements/s", " CPUs [", "RUNNING", "kept ", "per statement", "? help"]
    {
        assert!(screen.contains(word), "{word}:\n{screen}");
    }
    sorting_and_moving(&tmux);
    filtering(&tmux);
    pausing_and_stepping(&tmux);
    opening_copying_and_writing(&tmux, &server);
    sizes(&tmux);
    tmux.quit();
    assert_eq!(tmux.state(), before, "the terminal is as it was");
}

fn sorting_and_moving(tmux: &Tmux) {
    for (key, order) in [
        ("s", "calls"),
        (">", "p95"),
        ("s", "p99"),
        ("s", "rows examined"),
        ("s", "errors"),
        ("<", "rows examined"),
        (">", "errors"),
        ("s", "load"),
    ] {
        tmux.press(&[key]);
        tmux.wait_for(order, |screen| screen.contains(&format!("DIGESTS by {order}:")));
    }
    // Held, so that nothing but keys changes the screen.
    tmux.press(&["Space"]);
    let paused = tmux.wait_for("the pause", |screen| screen.contains("PAUSED"));
    let first = selected(&paused).to_owned();
    let line_at = |at: usize| digests(&paused)[at].trim_start_matches("> ").trim().to_owned();
    let is_at = |screen: &str, at: usize| selected(screen).contains(&line_at(at));
    for (keys, at) in [
        (["Down", "j"], 2),
        (["Up", "k"], 0),
        (["End", "Home"], 0),
        (["PageDown", "PageUp"], 0),
        (["Down", "Down"], 2),
    ] {
        // Home, while the view is held, would be live: so it is held anew.
        tmux.press(&keys);
        if keys.contains(&"Home") {
            tmux.wait_for("live", |screen| screen.contains("live "));
            return moving_while_live(tmux);
        }
        tmux.wait_for(&format!("{keys:?}"), |screen| is_at(screen, at));
    }
    assert!(!first.is_empty());
}

fn moving_while_live(tmux: &Tmux) {
    tmux.press(&["Home"]);
    let is_first = |screen: &str| digests(screen).first().is_some_and(|line| line.starts_with('>'));
    tmux.wait_for("the first line", is_first);
    tmux.press(&["PageDown"]);
    tmux.wait_for("another line", |screen| !is_first(screen) && !selected(screen).is_empty());
    tmux.press(&["PageUp"]);
    tmux.wait_for("a line further up", |screen| !selected(screen).is_empty());
    tmux.press(&["Home"]);
    tmux.wait_for("the first line", is_first);
}

fn filter(tmux: &Tmux, typed: &str) {
    tmux.press(&["/", "C-u"]);
    tmux.type_in(typed);
    tmux.press(&["Enter"]);
}

fn filtering(tmux: &Tmux) {
    let all_hold = |word: &'static str| {
        move |screen: &str| {
            let lines = digests(screen);
            !lines.is_empty() && lines.iter().all(|line| line.contains(word))
        }
    };
    for (typed, word) in [
        ("kind:select", "SELECT"),
        ("sbtest1", "`sbtest1`"),
        ("kind:update", "UPDATE"),
        ("re:^delete", "DELETE"),
        ("db:test user:app commit", "COMMIT"),
    ] {
        filter(tmux, typed);
        let title = format!("filter: {typed}");
        let holds = all_hold(word);
        tmux.wait_for(typed, |screen| screen.contains(&title) && holds(screen));
    }
    filter(tmux, "user:nobody");
    tmux.wait_for("nothing", |screen| screen.contains("no digest passes the filter"));
    filter(tmux, "re:(");
    tmux.wait_for("what is wrong", |screen| screen.contains("re:(:"));
    tmux.press(&["Escape"]);
    tmux.wait_for("the old filter", |screen| screen.contains("filter: user:nobody"));
    filter(tmux, "kind:selekt");
    tmux.wait_for("what is wrong", |screen| screen.contains("no such kind"));
    tmux.press(&["Escape"]);
    // A terminal sends Esc and what follows at once as one key with Alt.
    thread::sleep(Duration::from_millis(100));
    tmux.press(&["Escape"]);
    tmux.wait_for("no filter", |screen| !screen.contains("filter: ") && digests(screen).len() > 10);
}

fn pausing_and_stepping(tmux: &Tmux) {
    let time = |screen: &str| {
        let line = screen.lines().find(|line| line.contains("pid ")).unwrap();
        line.split_ascii_whitespace()
            .find(|word| word.matches(':').count() == 2)
            .unwrap()
            .to_owned()
    };
    // So that there are some to step to.
    let kept = |screen: &str| {
        let rest = screen.split_once("  kept ").map_or("", |(_, rest)| rest);
        rest.split([' ', '.']).next().and_then(|seconds| seconds.parse::<u32>().ok()).unwrap_or(0)
    };
    tmux.wait_for("some intervals", |screen| kept(screen) >= 5);
    tmux.press(&["Space"]);
    let paused = tmux.wait_for("the pause", |screen| screen.contains("PAUSED at "));
    let later = tmux.wait_for("later intervals", |screen| screen.contains("BACK "));
    assert_eq!(time(&paused), time(&later), "it is the interval at which it was paused");
    tmux.press(&["["]);
    let back = tmux.wait_for("the interval before", |screen| time(screen) < time(&paused));
    tmux.press(&["]"]);
    tmux.wait_for("the one behind it", |screen| time(screen) > time(&back));
    tmux.press(&["Left"]);
    tmux.wait_for("the interval before", |screen| time(screen) == time(&back));
    tmux.press(&["{"]);
    tmux.wait_for("the first interval", |screen| time(screen) < time(&back));
    tmux.press(&["}", "Right"]);
    tmux.wait_for("a late interval", |screen| time(screen) > time(&paused));
    tmux.press(&["Home"]);
    tmux.wait_for("the newest interval", |screen| screen.contains("live "));
}

fn opening_copying_and_writing(tmux: &Tmux, server: &Server) {
    filter(tmux, "kind:commit");
    tmux.wait_for("one digest", |screen| digests(screen).len() == 1);
    tmux.press(&["Enter"]);
    let page = tmux.wait_for("the digest", |screen| screen.contains("A recent one"));
    for word in
        ["  commit  database test", "Latency", "Calls by user", "app ", "Slowest kept", "Flags"]
    {
        assert!(page.contains(word), "{word}:\n{page}");
    }
    tmux.press(&["c"]);
    tmux.wait_for("the message", |screen| screen.contains("6 characters sent to the clipboard"));
    wait_until("the clipboard", || tmux.clipboard() == "COMMIT");
    tmux.resize(80, 14);
    tmux.press(&["End"]);
    tmux.wait_for("the end of the page", |screen| screen.contains("A recent one"));
    tmux.press(&["Home"]);
    tmux.wait_for("its beginning", |screen| screen.contains("DIGEST "));
    tmux.resize(120, 40);
    tmux.press(&["Escape"]);
    tmux.wait_for("the lists", |screen| screen.contains("filter: kind:commit"));
    tmux.press(&["w"]);
    tmux.wait_for("the name of the file", |screen| screen.contains("written to waggle-"));
    let files = tmux.files("waggle-");
    let written = fs::read_to_string(&files[0]).unwrap();
    assert!(written.contains(&format!("pid {}", server.pid())), "{written}");
    assert!(written.contains("filter: kind:commit") && written.contains("COMMIT"), "{written}");
    tmux.press(&["?"]);
    tmux.wait_for("the page of keys", |screen| screen.contains("take the filter away"));
    tmux.press(&["x"]);
    tmux.wait_for("the lists", |screen| screen.contains("DIGESTS by"));
    tmux.press(&["Escape"]);
    tmux.wait_for("no filter", |screen| !screen.contains("filter: "));
    tmux.press(&["C-l"]);
}

fn sizes(tmux: &Tmux) {
    for (columns, head) in [
        (
            300,
            "LOAD SHARE        LOAD 3 MIN    CALLS/S   AVG ms   P95 ms   P99 ms EXAM/CALL SENT/CALL  ERR/S DATABASE",
        ),
        (40, "    LOAD  CALLS/S DIGEST"),
        (80, "LOAD LOAD 3 MIN    CALLS/S   P99 ms  ERR/S DIGEST"),
    ] {
        tmux.resize(columns, 30);
        tmux.wait_for(head, |screen| screen.lines().any(|line| line.contains(head)));
    }
    // Sizes that come while it draws.
    for columns in (20..200).step_by(7).chain([2, 1, 120]) {
        tmux.resize(columns, columns / 4 + 1);
    }
    tmux.resize(120, 40);
    tmux.wait_for("all of it", |screen| digests(screen).len() > 10);
}
