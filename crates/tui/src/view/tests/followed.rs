//! What is opened, while the intervals go on.

use waggle_model::Reading;

use super::*;

#[test]
fn an_opened_session_is_followed_while_it_runs_and_then_said_to_be_past() {
    let mut app = watching(&[2], 1);
    let waits = |app: &mut App, nth, is_running: bool| {
        let mut second = measured_second_of(2, nth, &KINDS);
        if let Reading::Value(running) = &mut second.record.running {
            running.retain(|one| is_running || one.connection_id != 30);
            // It began before the first of these seconds ended.
            let later = (nth - 2) * 1_000_000_000;
            let starts = running.iter_mut().filter_map(|one| one.start_ns.as_mut());
            starts.for_each(|start| *start -= later);
        }
        app.take(second);
    };
    waits(&mut app, 2, true);
    press(&mut app, &[Key::Char('r')]);
    let shown = |app: &App| text(&drawn(app, ALL, 120, 80));
    press(&mut app, &[Key::Enter]);
    for _ in 0..20 {
        if !shown(&app).contains("SESSION 30") {
            press(&mut app, &[Key::Esc, Key::Down, Key::Enter]);
        }
    }
    assert!(shown(&app).contains("SESSION 30"), "{}", shown(&app));
    let runs_for = |app: &App| {
        let screen = shown(app);
        let line = screen.lines().find(|line| line.starts_with("Runs for")).map(str::to_owned);
        (line.unwrap(), screen.contains("It does not run this statement now"))
    };
    let (first, is_past) = runs_for(&app);
    assert!(!is_past, "{}", shown(&app));
    waits(&mut app, 3, true);
    assert_ne!(runs_for(&app), (first, false), "{}", shown(&app));
    assert!(!runs_for(&app).1, "{}", shown(&app));
    waits(&mut app, 4, false);
    let words = "It does not run this statement now. What follows is as it was 1.0 s before.";
    assert!(shown(&app).contains(words), "{}", shown(&app));
}
