//! Pictures of every view, and what holds of all of them.

mod ends;
mod followed;
mod incidents;
mod times;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Color;
use waggle_model::{DigestKey, DigestName, DigestsMax, Ending, LastLook, Loss, Reading};

use super::{Look, draw, picture};
use crate::input::Key;
use crate::state::tests::{
    KINDS, held_up, measured_second_of, measuring, run_the_busiest, running, second_of, watching,
};
use crate::state::{App, Missed, Options};

const ALL: Look = Look { colour: true, unicode: true };
const SIZES: [(u16, u16); 4] = [(40, 30), (80, 30), (120, 40), (300, 50)];

fn drawn(app: &App, look: Look, width: u16, height: u16) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    draw(app, look, area, &mut buffer);
    buffer
}

/// The picture in characters; what follows a wide one is no character of its own.
fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let mut text = String::new();
    for cells in buffer.content.chunks(width) {
        let mut line = String::new();
        let mut hidden = 0;
        for cell in cells {
            if hidden > 0 {
                hidden -= 1;
                continue;
            }
            line.push_str(cell.symbol());
            hidden = super::text::columns(cell.symbol()).saturating_sub(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn golden(name: &str, app: &mut App) {
    for (width, height) in SIZES {
        app.set_size(width, height);
        let picture = text(&drawn(app, ALL, width, height));
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("{name}_{width}"), picture);
        });
    }
}

fn press(app: &mut App, keys: &[Key]) {
    for key in keys {
        app.on_key(*key);
    }
}

fn type_in(app: &mut App, keys: &str) {
    keys.chars().for_each(|c| drop(app.on_key(Key::Char(c))));
}

#[test]
fn both_lists() {
    golden("lists", &mut watching(&[2], 200));
}

#[test]
fn two_servers_of_which_one_ended_and_the_sessions_in_front() {
    let mut app = watching(&[2, 3], 5);
    let mut last = second_of(3, 5, &KINDS);
    let running = std::mem::replace(&mut last.record.running, Reading::absent(""));
    let look = LastLook {
        wall_ns: last.record.begin_wall_ns,
        at_end: false,
        ran: running.value().cloned().unwrap_or_default(),
    };
    let why = "the server has ended".to_owned();
    last.record.ended = Some(Ending { why, signal: None, last_look: Some(look) });
    last.record.interval.losses.add(Loss::RingFull, 12);
    app.take(last);
    app.on_key(Key::Char('r'));
    golden("sessions", &mut app);
    app.on_key(Key::Tab);
    golden("ended", &mut app);
}

#[test]
fn of_many_servers_those_around_the_one_in_front_are_named() {
    let pids: Vec<u32> = (100..130).collect();
    let mut app = watching(&pids, 1);
    for (presses, named, first, more) in [
        (0, "[1 mysql 100]", "[", true),
        (14, "[mysql 114]", "<", true),
        (15, "[mariadb 129]", "<", false),
    ] {
        (0..presses).for_each(|_| drop(app.on_key(Key::Tab)));
        let screen = text(&drawn(&app, ALL, 80, 30));
        let tabs = screen.lines().next().unwrap();
        assert!(tabs.contains(named) && tabs.starts_with(first), "{tabs}");
        assert_eq!(tabs.ends_with('>'), more, "{tabs}");
    }
}

#[test]
fn a_digest() {
    let mut app = watching(&[2], 200);
    app.on_key(Key::Enter);
    golden("digest", &mut app);
}

#[test]
fn a_digest_has_the_hash_of_the_server_where_it_was_asked() {
    let hash = "e025bfc912fc89a0477fadddf785bb135fda13117cf276e79d28a690bac96b54";
    let mut app = watching(&[2], 1);
    app.on_key(Key::Enter);
    let shown = |app: &App| text(&drawn(app, ALL, 120, 60));
    assert!(!shown(&app).contains("Server's digest"), "{}", shown(&app));
    for (nth, known, line) in [
        (2, Reading::absent("not answered yet"), "Server's digest     absent: not answered yet\n"),
        (3, Reading::Value(hash.into()), &*format!("Server's digest     {hash}\n")),
    ] {
        let mut snapshot = second_of(2, nth, &KINDS);
        for totals in snapshot.record.interval.digests.values_mut() {
            totals.server_digest = Some(known.clone());
        }
        app.take(snapshot);
        assert!(shown(&app).contains(line), "{}", shown(&app));
    }
    // Where the digest does not run any more, too.
    app.take(second_of(2, 4, &[]));
    assert!(shown(&app).contains(hash), "{}", shown(&app));
}

#[test]
fn a_session() {
    let mut app = watching(&[2], 3);
    press(&mut app, &[Key::Char('r'), Key::Enter]);
    golden("session", &mut app);
}

#[test]
fn sessions_tell_what_they_wait_for_and_who_holds_it() {
    let mut app = measuring(3);
    press(&mut app, &[Key::Char('r')]);
    golden("waits", &mut app);
    press(&mut app, &[Key::Enter]);
    golden("waits_row", &mut app);
    press(&mut app, &[Key::Esc, Key::Down, Key::Enter]);
    golden("waits_unknown", &mut app);
}

#[test]
fn a_digest_has_its_longest_wait_for_a_lock_and_what_the_holder_ran() {
    let mut app = watching(&[2], 1);
    app.on_key(Key::Enter);
    for (nth, length_ms) in [(2, 790), (3, 300), (4, 400)] {
        let mut snapshot = second_of(2, nth, &KINDS);
        held_up(&mut snapshot, length_ms * 1_000_000);
        app.take(snapshot);
    }
    let screen = text(&drawn(&app, ALL, 120, 70));
    for line in [
        "Longest lock wait   790.0 ms in session 30: row lock\n",
        "Held by             session 12 on shop.t\n",
        "  Session 12        app@10.1.2.4, idle for 42 s\n",
        "  Ran last          SELECT v FROM t WHERE id = ?\n",
        "  Wrote first       UPDATE t SET v = ? WHERE id = ?\n",
    ] {
        assert!(screen.contains(line), "{line}{screen}");
    }
}

#[test]
fn a_digest_tells_first_the_longest_wait_that_goes_on_and_then_the_longest_that_has_ended() {
    let mut app = watching(&[2], 1);
    app.on_key(Key::Enter);
    let mut ended = second_of(2, 2, &KINDS);
    held_up(&mut ended, 790_000_000);
    app.take(ended);
    let shown = |app: &App| text(&drawn(app, ALL, 120, 80));
    assert!(!shown(&app).contains("Waits now"), "{}", shown(&app));
    let mut waits = measured_second_of(2, 3, &KINDS);
    run_the_busiest(&mut waits, &[22, 21, 30, 29]);
    app.take(waits);
    let screen = shown(&app);
    let mut rest = screen.as_str();
    for line in [
        "Waits now           session 30, app@10.1.2.3: row lock, for 0.8 s; 1 more session waits\n",
        "Held by             all of 12, 15 on shop.t\n",
        "  Session 12        app@10.1.2.4, idle for 42 s\n",
        "  Ran last          SELECT v FROM t WHERE id = ?\n",
        "  Wrote first       UPDATE t SET v = ? WHERE id = ?\n",
        "Longest lock wait   790.0 ms in session 30: row lock\n",
        "Held by             session 12 on shop.t\n",
    ] {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line}{screen}"));
        rest = &rest[at + line.len()..];
    }
    golden("digest_waits", &mut app);
    // Who held it then is still known when a later interval is shown, and it is looked back.
    app.take(second_of(2, 4, &KINDS));
    app.take(second_of(2, 5, &KINDS));
    assert!(!shown(&app).contains("Waits now"), "{}", shown(&app));
    press(&mut app, &[Key::Esc, Key::Char('['), Key::Char('['), Key::Enter]);
    assert!(shown(&app).contains("Held by             all of 12, 15 on shop.t\n"), "{screen}");
}

#[test]
fn whoever_holds_what_a_digest_waits_for_is_unknown_with_the_reason_or_not_read_yet() {
    let mut app = watching(&[2], 1);
    app.on_key(Key::Enter);
    for (nth, was_read, told) in [
        (2, true, "unknown: a transaction without a session may hold it"),
        (3, false, "not read yet"),
    ] {
        let mut waits = measured_second_of(2, nth, &KINDS);
        run_the_busiest(&mut waits, &[29]);
        if let Reading::Value(running) = &mut waits.record.running {
            running.iter_mut().filter(|_| !was_read).for_each(|one| one.blocked = None);
        }
        app.take(waits);
        let screen = text(&drawn(&app, ALL, 120, 80));
        let waits = "Waits now           session 29, app@10.1.2.3: metadata lock, for 0.3 s\n";
        let told = format!("{waits}Held by             {told}\n");
        assert!(screen.contains(&told), "{told}{screen}");
    }
}

#[test]
fn who_only_stands_before_in_the_queue_is_not_said_to_hold_the_lock() {
    let mut app = watching(&[2], 1);
    app.on_key(Key::Enter);
    let mut waits = measured_second_of(2, 2, &KINDS);
    run_the_busiest(&mut waits, &[30]);
    if let Reading::Value(running) = &mut waits.record.running {
        for one in running.iter_mut().filter_map(|one| one.blocked.as_mut()) {
            for blocker in &mut one.blockers {
                let blocker = std::sync::Arc::make_mut(blocker);
                (blocker.is_idle, blocker.waits) = (Some(false), true);
            }
        }
    }
    app.take(waits);
    let screen = text(&drawn(&app, ALL, 120, 80));
    assert!(screen.contains("Waits behind        "), "{screen}");
    assert!(screen.contains("waits for a lock itself, running for"), "{screen}");
    assert!(!screen.contains("Held by"), "{screen}");
}

#[test]
fn the_list_of_sessions_tells_since_when_each_waits_and_by_whom_it_is_blocked() {
    let app = measuring(1);
    let screen = text(&drawn(&app, ALL, 160, 40));
    let line = |id: &str| {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines = screen.lines().skip_while(|line| !line.starts_with("RUNNING")).map(words);
        let found = lines.skip(1).find(|words| words.iter().any(|word| word == id));
        found.unwrap_or_else(|| panic!("{id}: {screen}")).join(" ")
    };
    assert!(line("30").starts_with("row lock 0.8 s 12+1 30 0.8 s app 10.1.2.3 "), "{screen}");
    assert!(line("29").starts_with("metadata 0.3 s ? 29 0.3 s "), "{screen}");
    assert!(line("22").starts_with("sleep 1.4 s 22 1.4 s "), "{screen}");
    assert!(line("21").starts_with("CPU 21 0.1 s "), "{screen}");
    // Where waits are not measured, and nobody has looked.
    let screen = text(&drawn(&watching(&[2], 1), ALL, 160, 40));
    assert!(screen.contains("row?             - -               30    0.8 s"), "{screen}");
}

#[test]
fn a_filter_while_it_is_typed_and_a_look_back() {
    let mut app = watching(&[2], 30);
    press(&mut app, &[Key::Char('['), Key::Left]);
    type_in(&mut app, "/kind:select");
    app.on_key(Key::Enter);
    type_in(&mut app, "/");
    app.on_key(Key::Ctrl('u'));
    type_in(&mut app, "re:(");
    app.on_key(Key::Enter);
    golden("filter", &mut app);
}

#[test]
fn the_keys() {
    let mut app = watching(&[2], 1);
    app.on_key(Key::Char('?'));
    golden("help", &mut app);
}

#[test]
fn before_the_first_interval() {
    golden("waiting", &mut watching(&[], 0));
}

#[test]
fn intervals_that_the_view_lacks_and_sentences_that_follow_are_counted_on_the_screen() {
    let mut app = watching(&[2], 1);
    app.miss(&Missed::of(&second_of(2, 2, &[]).record));
    app.tell("pid 3: watched from now on");
    app.tell("pid 4: watched from now on");
    for (width, height) in SIZES {
        let screen = text(&drawn(&app, ALL, width, height));
        assert!(screen.contains("1 interval not shown"), "{screen}");
        assert!(screen.contains("\npid 3: watched from now on (1 more)\n"), "{screen}");
    }
}

#[test]
fn nothing_is_said_by_a_colour_alone() {
    let mut lost = second_of(2, 3, &KINDS);
    lost.record.interval.losses.add(Loss::RingFull, 3);
    let mut app = watching(&[2], 3);
    app.take(lost);
    colours_repeat_what_is_said(&mut app);
    colours_repeat_what_is_said(&mut measuring(3));
}

fn colours_repeat_what_is_said(app: &mut App) {
    for keys in [[].as_slice(), &[Key::Enter], &[Key::Esc, Key::Char('r')], &[Key::Enter]] {
        press(app, keys);
        let coloured = drawn(app, ALL, 120, 40);
        let plain = drawn(app, Look { colour: false, unicode: true }, 120, 40);
        assert_eq!(text(&coloured), text(&plain));
        assert!(coloured.content.iter().any(|cell| cell.fg != Color::Reset));
        assert!(
            plain.content.iter().all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset))
        );
    }
}

#[test]
fn a_terminal_without_unicode_gets_ascii_only() {
    for (mut app, bars) in [(watching(&[2], 30), ["#", "#"]), (measuring(30), ["CCC", "RRR"])] {
        for (key, bar) in [None, Some(Key::Enter)].into_iter().zip(bars) {
            key.map(|key| app.on_key(key));
            let buffer = drawn(&app, Look { colour: true, unicode: false }, 120, 60);
            assert!(buffer.content.iter().all(|cell| cell.symbol().is_ascii()));
            assert!(text(&buffer).contains(bar), "bars are still there");
        }
    }
}

#[test]
fn every_size_can_be_drawn_in_every_view() {
    let mut app = watching(&[2, 3], 4);
    let views: [&[Key]; 6] = [
        &[],
        &[Key::Enter],
        &[Key::End],
        &[Key::Esc, Key::Char('r'), Key::Enter],
        &[Key::Esc, Key::Char('?')],
        &[Key::Esc, Key::Char('/')],
    ];
    for keys in views {
        press(&mut app, keys);
        for width in (0..60).chain([131, 1_000]) {
            for height in (0..30).chain([200]) {
                app.set_size(width, height);
                drawn(&app, ALL, width, height);
            }
            picture(&app, width);
        }
    }
}

/// What a client may send, and what must not reach a terminal.
const EVIL: &str =
    "SELECT '\x1b]0;owned\x07\x1b[2J\u{9b}31m\r\n\t\u{202e}evil\u{200b}' FROM `t\u{301}`";

#[test]
fn no_escape_sequence_of_a_statement_reaches_the_terminal() {
    let mut app = App::new(Options { cpus: 2, literals: true });
    let mut snapshot = second_of(2, 0, &KINDS);
    let end_ns = snapshot.record.interval.end_ns;
    snapshot.record.server.version = EVIL.to_owned();
    let mut session = running(1, 9_000, EVIL, EVIL, end_ns);
    session.identity.user = Some(EVIL.as_bytes().to_vec());
    session.identity.host = session.identity.user.clone();
    session.identity.database = Some(b"\xff\xfe\x1b[31m".to_vec());
    snapshot.record.running = Reading::Value(vec![session]);
    let name = DigestName { text: EVIL.into(), schema: Some(EVIL.into()), cut: false };
    let key = DigestKey { text: 0, schema: 0 };
    snapshot.record.interval.book_time(Some(0), end_ns * 9, key, DigestsMax(100), || name);
    app.take(snapshot);
    type_in(&mut app, "/\u{9b}\u{202e}");
    app.on_key(Key::Enter);
    app.on_key(Key::Esc);
    let mut seen = 0;
    for keys in [[].as_slice(), &[Key::Enter], &[Key::Esc, Key::Char('r')], &[Key::Enter]] {
        press(&mut app, keys);
        app.tell(EVIL);
        for (width, height) in SIZES {
            let buffer = drawn(&app, ALL, width, height);
            let symbols = buffer.content.iter().flat_map(|cell| cell.symbol().chars());
            let bad = |c: &char| c.is_control() || matches!(c, '\u{202e}' | '\u{200b}' | '\u{301}');
            assert_eq!(symbols.filter(bad).collect::<String>(), "");
            seen += usize::from(text(&buffer).contains("evil"));
        }
        let picture = picture(&app, 200);
        assert!(!picture.contains('\x1b') && !picture.contains('\u{202e}'), "{picture:?}");
    }
    assert!(seen >= 8, "the text itself is shown: {seen}");
}

#[test]
fn wide_characters_keep_the_columns_in_line() {
    let mut app = App::new(Options { cpus: 2, literals: true });
    let mut snapshot = second_of(2, 0, &[]);
    let end_ns = snapshot.record.interval.end_ns;
    let mut wide = running(1, 9_000, "状态状态状态状态状态状态", "SELECT 1", end_ns);
    wide.identity.user = Some("用户用户用户用户".as_bytes().to_vec());
    let narrow = running(2, 8_000, "executing", "SELECT 1", end_ns);
    snapshot.record.running = Reading::Value(vec![wide, narrow]);
    app.take(snapshot);
    let buffer = drawn(&app, ALL, 120, 30);
    let column = |y: u16| {
        (0..120).find(|x| {
            buffer[(*x, y)].symbol() == "S"
                && buffer[(x + 6, y)].symbol() == " "
                && buffer[(x + 7, y)].symbol() == "1"
        })
    };
    let places: Vec<u16> = (0..30).filter_map(column).collect();
    assert_eq!(places.len(), 2, "{}", text(&buffer));
    assert_eq!(places[0], places[1], "{}", text(&buffer));
}

#[test]
fn a_hundred_thousand_digests_are_ranked_and_searched_and_only_those_in_sight_are_drawn() {
    let mut app = App::new(Options { cpus: 2, literals: false });
    for nth in 0..2 {
        let mut snapshot = second_of(2, nth, &[]);
        for at in 0..100_000_u64 {
            let name = || DigestName {
                text: format!("SELECT {at} FROM t{at}").into(),
                schema: None,
                cut: false,
            };
            let key = DigestKey { text: at, schema: 1 };
            let start_ns = snapshot.record.interval.end_ns - 1 - at;
            snapshot.record.interval.book_time(
                Some(start_ns),
                snapshot.record.interval.end_ns,
                key,
                DigestsMax(100_000),
                name,
            );
        }
        app.take(snapshot);
    }
    app.on_key(Key::End);
    let last = text(&drawn(&app, ALL, 120, 40));
    assert!(last.contains("> ") && last.contains("FROM t0\n"), "{last}");
    type_in(&mut app, "/t99999");
    app.on_key(Key::Enter);
    assert!(text(&drawn(&app, ALL, 120, 40)).contains("1 of 100000"));
    assert!(picture(&app, 120).lines().count() < 60);
    app.on_key(Key::Esc);
    assert!(picture(&app, 120).lines().count() < super::PICTURE_ROWS_MAX + 20);
}

#[test]
fn a_table_is_one_server_in_characters_that_can_be_shown() {
    let mut app = watching(&[2, 3], 5);
    let mut of =
        |unicode, digests| super::table(&mut app, 3, Look { colour: false, unicode }, 160, digests);
    let all = of(true, 20);
    for word in ["mariadb", "pid 3", "SENT/CALL", "RUNNING: 4", "lost 0", "cost ", "█"] {
        assert!(all.contains(word), "{word}: {all}");
    }
    assert!(!all.contains("pid 2"), "{all}");
    assert!(all.lines().all(|line| !line.starts_with('>')), "nothing is selected: {all}");
    assert!(all.lines().all(|line| super::text::columns(line) <= 160), "{all}");
    let two = of(false, 2);
    assert!(two.is_ascii(), "{two}");
    let digests = two.lines().skip_while(|line| !line.starts_with("DIGESTS by load: 5"));
    let digests = digests.take_while(|line| !line.starts_with("RUNNING"));
    assert_eq!(digests.count(), 4, "title, heads and two digests: {two}");
}
