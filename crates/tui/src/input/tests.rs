//! Keys, one after the other.

use super::{Action, App, Key};
use crate::state::tests::{KINDS, second_of, watching};
use crate::state::{Opened, Pane, Sort};

fn type_in(app: &mut App, keys: &str) {
    for c in keys.chars() {
        assert_eq!(app.on_key(Key::Char(c)), Action::None, "{c}");
    }
}

fn at(app: &App) -> usize {
    app.server().unwrap().digest.at
}

fn shown(app: &App) -> &str {
    &app.server().unwrap().shown().unwrap().time
}

#[test]
fn the_selection_moves_and_stops_at_both_ends() {
    let mut app = watching(&[2], 1);
    for (key, to) in [
        (Key::Up, 0),
        (Key::Down, 1),
        (Key::Char('j'), 2),
        (Key::Char('k'), 1),
        (Key::End, 4),
        (Key::Down, 4),
        (Key::PageUp, 0),
        (Key::PageDown, 4),
        (Key::Home, 0),
    ] {
        assert_eq!(app.on_key(key), Action::None);
        assert_eq!(at(&app), to, "{key:?}");
    }
}

#[test]
fn the_selection_follows_its_digest_when_the_order_changes() {
    let mut app = watching(&[2], 1);
    app.on_key(Key::Down);
    app.on_key(Key::Up);
    app.on_key(Key::Char('s'));
    assert_eq!(app.sort, Sort::Calls);
    assert!(at(&app) > 0, "the digest with the most load has few calls");
    app.on_key(Key::Char('<'));
    assert_eq!((app.sort, at(&app)), (Sort::Load, 0));
    app.on_key(Key::Char('S'));
    assert_eq!(app.sort, Sort::Errors);
}

#[test]
fn a_filter_is_typed_and_a_bad_one_leaves_the_old_one() {
    let mut app = watching(&[2], 1);
    type_in(&mut app, "/kind:update q");
    app.on_key(Key::Backspace);
    assert_eq!(app.on_key(Key::Enter), Action::None);
    assert_eq!(app.filter.typed(), "kind:update");
    assert_eq!(app.server().unwrap().listed.len(), 1);
    type_in(&mut app, "/");
    app.on_key(Key::Ctrl('u'));
    type_in(&mut app, "re:(");
    app.on_key(Key::Enter);
    assert!(app.messages.shown().unwrap().0.contains("re:("), "{:?}", app.messages);
    assert_eq!(app.typing.as_deref(), Some("re:("), "it can be mended");
    app.on_key(Key::Esc);
    assert_eq!(app.filter.typed(), "kind:update");
    app.on_key(Key::Esc);
    assert_eq!(app.server().unwrap().listed.len(), KINDS.len());
}

#[test]
fn a_pause_holds_the_interval_while_others_come() {
    let mut app = watching(&[2], 3);
    app.on_key(Key::Char(' '));
    app.take(second_of(2, 3, &KINDS));
    assert_eq!(shown(&app), "14:00:02");
    app.on_key(Key::Char(' '));
    assert_eq!(shown(&app), "14:00:03");
}

#[test]
fn one_steps_back_and_forth_and_home_is_live() {
    let mut app = watching(&[2], 100);
    app.on_key(Key::Char('['));
    app.on_key(Key::Left);
    assert_eq!(shown(&app), "14:01:37");
    app.on_key(Key::Char(']'));
    assert_eq!(shown(&app), "14:01:38");
    app.on_key(Key::Char('{'));
    assert_eq!(shown(&app), "14:00:38");
    app.on_key(Key::Char('{'));
    assert_eq!(shown(&app), "14:00:00", "no further than it reaches");
    app.on_key(Key::Home);
    app.take(second_of(2, 100, &KINDS));
    assert_eq!(shown(&app), "14:01:40");
}

#[test]
fn a_held_interval_stays_when_the_history_has_forgotten_it() {
    let mut app = watching(&[2], 2).with_budget(1);
    app.on_key(Key::Char(' '));
    for nth in 2..5 {
        app.take(second_of(2, nth, &KINDS));
    }
    assert_eq!(shown(&app), "14:00:01");
    app.on_key(Key::Right);
    assert_eq!(shown(&app), "14:00:04");
}

#[test]
fn servers_are_switched_by_tab_and_by_number() {
    let mut app = watching(&[2, 3, 4], 1);
    let pid = |app: &App| app.server().unwrap().server.pid;
    app.on_key(Key::Tab);
    assert_eq!(pid(&app), 3);
    app.on_key(Key::BackTab);
    app.on_key(Key::BackTab);
    assert_eq!(pid(&app), 4);
    app.on_key(Key::Char('1'));
    assert_eq!(pid(&app), 2);
    app.on_key(Key::Char('9'));
    assert_eq!(pid(&app), 2, "there is no ninth");
}

#[test]
fn a_digest_is_opened_scrolled_and_left() {
    let mut app = watching(&[2], 3);
    app.set_size(80, 20);
    app.on_key(Key::Enter);
    assert!(matches!(app.server().unwrap().opened, Some(Opened::Digest(_))));
    app.on_key(Key::End);
    let end = app.server().unwrap().scrolled;
    assert!(end > 5, "{end}");
    app.on_key(Key::Down);
    assert_eq!(app.server().unwrap().scrolled, end, "not beyond the end");
    app.on_key(Key::Up);
    assert_eq!(app.server().unwrap().scrolled, end - 1);
    app.on_key(Key::Esc);
    assert!(app.server().unwrap().opened.is_none());
    assert_eq!(at(&app), 0, "scrolling did not move the list");
}

#[test]
fn a_session_is_opened_as_it_was() {
    let mut app = watching(&[2], 1);
    app.on_key(Key::Char('r'));
    assert_eq!(app.pane, Pane::Sessions);
    app.on_key(Key::Down);
    app.on_key(Key::Enter);
    let Some(Opened::Session(session, _)) = &app.server().unwrap().opened else {
        panic!("not open")
    };
    assert_eq!(session.connection_id, 30);
}

#[test]
fn what_is_copied_is_what_is_selected_without_literals() {
    let mut app = watching(&[2], 1);
    let copied = |app: &mut App| match app.on_key(Key::Char('c')) {
        Action::Copy(text) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(copied(&mut app), KINDS[1].text);
    app.on_key(Key::Enter);
    assert_eq!(copied(&mut app), KINDS[1].text);
    app.on_key(Key::Esc);
    app.on_key(Key::Char('r'));
    app.on_key(Key::Down);
    assert_eq!(copied(&mut app), "UPDATE t SET v = ? WHERE id = ?");
}

#[test]
fn keys_that_leave_the_view_are_actions() {
    let mut app = watching(&[2], 1);
    assert_eq!(app.on_key(Key::Char('w')), Action::Write);
    assert_eq!(app.on_key(Key::Ctrl('l')), Action::Redraw);
    assert_eq!(app.on_key(Key::Char('q')), Action::Quit);
    app.on_key(Key::Char('/'));
    assert_eq!(app.on_key(Key::Char('q')), Action::None, "q is a letter of the filter");
    assert_eq!(app.on_key(Key::Ctrl('c')), Action::Quit);
    app.on_key(Key::Esc);
    app.on_key(Key::Char('?'));
    app.set_size(40, 20);
    app.on_key(Key::Down);
    assert_eq!(app.help, Some(1));
    app.on_key(Key::End);
    assert!(app.help.unwrap() > 10);
    assert_eq!(app.on_key(Key::Char('x')), Action::None);
    assert_eq!(app.help, None);
}

#[test]
fn every_key_is_harmless_before_the_first_interval() {
    let keys = "qjk/x\rs<>r []{}w?c19".chars().map(Key::Char);
    let more = [Key::Up, Key::PageDown, Key::Home, Key::End, Key::Enter, Key::Esc, Key::Tab];
    let mut app = watching(&[], 0);
    for key in keys.chain(more) {
        app.on_key(key);
    }
}
