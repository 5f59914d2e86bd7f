//! The end of a server.

use waggle_model::{Ending, FatalSignal, LastLook, Reading, Sender};

use super::*;

#[test]
fn a_server_that_a_signal_ended_with_what_ran_then() {
    let mut app = watching(&[3], 5);
    let mut last = second_of(3, 5, &KINDS);
    let running = std::mem::replace(&mut last.record.running, Reading::absent(""));
    let ran = running.value().cloned().unwrap_or_default();
    let sender = Sender::Thread { connection_id: Some(ran[0].connection_id), name: "".into() };
    let signal = Some(FatalSignal { number: 11, sender });
    let look = LastLook { wall_ns: last.record.end_wall_ns, at_end: true, ran };
    last.record.ended = Some(Ending { why: String::new(), signal, last_look: Some(look) });
    app.take(last);
    app.on_key(Key::Char('r'));
    golden("killed", &mut app);
}
