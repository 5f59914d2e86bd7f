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
    let sample = count(&seen);
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
    let Split { kept, ran, interrupted } = Split::of(threads, known);
    assert_eq!(interrupted.into_keys().collect::<Vec<_>>(), [5], "statements that went on");
    let [_, Seen { doing: Doing::Running(slept), .. }] = &*kept else { panic!("{kept:?}") };
    assert_eq!(slept.has_slept, Some(true));
    let tids: Vec<u32> = kept.iter().map(|seen| seen.thread.tid).collect();
    assert_eq!(tids, [1, 3]);
    let tids: Vec<u32> = ran.iter().map(|thread| thread.tid).collect();
    assert_eq!(tids, [2, 4, 5, 6]);
}
