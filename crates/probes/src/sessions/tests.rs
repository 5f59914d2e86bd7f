use waggle_model::Command;

use super::*;

fn thread(tid: u32, switches: u64) -> Thread {
    Thread { pointer: 0x1000, switches, started: 1, tid, tgid: 1, asleep: true }
}

fn seen(tid: u32, thd: u64, doing: Doing) -> Seen {
    Seen { thread: thread(tid, 5), thd, doing, changed: false }
}

fn running(id: u64) -> Doing {
    Doing::Running(Box::new(RunningStatement {
        thd: id,
        connection_id: id,
        command: Command::QUERY,
        ..RunningStatement::default()
    }))
}

#[test]
fn a_session_on_two_threads_is_counted_once() {
    let seen = [
        seen(1, 0xa, running(9)),
        seen(2, 0xa, running(9)),
        seen(3, 0xb, Doing::Idle { context: None }),
        seen(4, 0xc, running(7)),
        seen(5, 0xd, Doing::Nothing),
        seen(6, 0xe, Doing::Unknown),
        seen(7, 0, Doing::Nothing),
    ];
    let sample = count(&seen, 0);
    let ids: Vec<u64> = sample.running.iter().map(|running| running.connection_id).collect();
    assert_eq!(ids, [7, 9]);
    assert_eq!((sample.sessions, sample.unreadable, sample.threads), (3, 1, 7));
}

#[test]
fn only_threads_that_ran_or_could_not_be_read_are_read_again() {
    let changed = Seen { changed: true, ..seen(5, 0xe, running(5)) };
    let known = vec![
        seen(1, 0xa, Doing::Idle { context: None }),
        seen(2, 0xb, Doing::Idle { context: None }),
        seen(3, 0xc, running(3)),
        seen(4, 0xd, Doing::Unknown),
        changed,
    ];
    let threads = [(1, 5), (2, 6), (3, 5), (4, 5), (5, 5), (6, 5)];
    let threads = threads.into_iter().map(|(tid, switches)| thread(tid, switches)).collect();
    let Split { kept, ran, interrupted, .. } = Split::of(threads, known);
    assert_eq!(interrupted.into_keys().collect::<Vec<_>>(), [5], "statements that went on");
    let [_, Seen { doing: Doing::Running(slept), .. }] = &*kept else { panic!("{kept:?}") };
    assert_eq!(slept.has_slept, Some(true));
    let tids: Vec<u32> = kept.iter().map(|seen| seen.thread.tid).collect();
    assert_eq!(tids, [1, 3]);
    let tids: Vec<u32> = ran.iter().map(|thread| thread.tid).collect();
    assert_eq!(tids, [2, 4, 5, 6]);
}

/// The texts that are kept of texts of these lengths.
fn shared(lengths: &[u64], budget: u64) -> Vec<u64> {
    let longest = texts::longest(lengths.to_vec(), budget);
    lengths.iter().map(|length| *length.min(&longest)).collect()
}

#[test]
fn texts_that_are_too_long_together_share_a_budget_and_short_ones_stay_whole() {
    assert_eq!(shared(&[5, 90, 5], 100), [5, 90, 5], "all fit");
    assert_eq!(shared(&[90, 5, 90, 5], 100), [45, 5, 45, 5]);
    assert_eq!(shared(&[100, 30, 100], 100), [35, 30, 35]);
    assert_eq!(shared(&[7, 7, 7], 2), [0, 0, 0]);
    let pile_up = shared(&[16 << 10; 10_000], TEXTS_LIMIT);
    assert_eq!(pile_up, [838; 10_000], "8 MiB of 160");
}

#[test]
fn a_text_that_was_read_before_is_cut_and_says_so() {
    let with_text = |tid, text: &str| {
        let statement = RunningStatement {
            text: Some(text.into()),
            text_length: text.len() as u64,
            ..RunningStatement::default()
        };
        seen(tid, tid.into(), Doing::Running(Box::new(statement)))
    };
    let mut kept = [with_text(1, "SELECT 1"), with_text(2, "DO 1"), seen(3, 0, Doing::Nothing)];
    assert_eq!(texts::lengths(&kept).collect::<Vec<_>>(), [8, 4]);
    texts::cut(&mut kept, 6);
    let texts = kept.iter().filter_map(|seen| match &seen.doing {
        Doing::Running(statement) => statement.text(),
        _ => None,
    });
    let texts: Vec<_> = texts.map(|text| (text.bytes, text.is_truncated())).collect();
    assert_eq!(texts, [(&b"SELECT"[..], true), (&b"DO 1"[..], false)]);
}
