//! Which sessions are logins under way, and since when.
//!
//! A thread of MariaDB whose client left before it was in keeps the session of that client in the thread cache: with its
//! command, its state and its start. What tells the two apart is what the thread waits for: in the cache for another
//! thread, in a login for the client or for a name server.

use std::time::{Duration, Instant};

use waggle_host::{Process, ThreadCall};
use waggle_model::{Age, Logins, Reading};

use super::head::Head;
use super::read::{Doing, Login, Seen};

/// Threads of which one look asks what they wait for.
const ASKED_MAX: usize = 1_000;
/// How long one look asks: the kernel may sleep for a tick until a thread is off its processor.
const ASKED_FOR: Duration = Duration::from_millis(20);

/// Marks the threads of the thread cache as no logins. `seen` has the threads that ran since the look before.
pub(super) fn leave_out_cached(pid: u32, seen: &mut [Seen]) {
    let begun = Instant::now();
    leave_out_cached_while(pid, seen, |nth| nth < ASKED_MAX && begun.elapsed() < ASKED_FOR);
}

/// Of threads that are not asked it is not known.
fn leave_out_cached_while(pid: u32, seen: &mut [Seen], asks: impl Fn(usize) -> bool) {
    let process = Process::of(pid);
    let is_login = |seen: &&mut Seen| matches!(seen.doing, Doing::LoggingIn(_));
    for (nth, seen) in seen.iter_mut().filter(is_login).enumerate() {
        let call = match asks(nth) {
            true => process.thread_call(seen.thread.tid).into_value(),
            false => None,
        };
        match call.map(ThreadCall::waits_for_thread) {
            Some(true) => seen.doing = Doing::Nothing,
            Some(false) => {}
            None => seen.doing = Doing::MayLogIn,
        }
    }
}

/// The sessions that log in.
pub(super) fn sessions(seen: &[Seen]) -> Vec<u64> {
    let log_in = seen.iter().filter(|seen| matches!(seen.doing, Doing::LoggingIn(_)));
    log_in.map(|seen| seen.thd).collect()
}

/// Doubts the logins whose session is not as before by now: a thread of the cache that was woken after its session was
/// read waits for its new client like a login. `heads` are those of `sessions`.
pub(super) fn doubt_changed(seen: &mut [Seen], heads: &[Option<Head>]) {
    let mut heads = heads.iter();
    for seen in seen {
        let Doing::LoggingIn(login) = &seen.doing else { continue };
        let is_it =
            |head: &Head| (head.id, head.start_us) == (login.connection_id, login.noted_start_us);
        if !heads.next().and_then(Option::as_ref).is_some_and(is_it) {
            seen.doing = Doing::MayLogIn;
        }
    }
}

/// A login that another look saw goes on.
pub(super) fn go_on(login: &mut Login, before: Option<&Login>) {
    if let Some(before) = before.filter(|before| before.connection_id == login.connection_id) {
        *login = Login { start_ns: login.start_ns.or(before.start_ns), ..*before };
    }
}

/// How many of the sessions log in, each of which is there once.
pub(super) fn count<'a>(seen: impl Iterator<Item = &'a Seen>, now_ns: u64) -> Reading<Logins> {
    let mut ages: Vec<Age> = Vec::new();
    for seen in seen {
        match &seen.doing {
            Doing::LoggingIn(login) => ages.push(login.age(now_ns)),
            Doing::MayLogIn => {
                return Reading::absent(format!(
                    "thread {} may log in or wait in the thread cache: its system call is not known \
                     (/proc/PID/task/TID/syscall; {ASKED_MAX} threads are asked at most, for {} ms), or its session changed meanwhile",
                    seen.thread.tid,
                    ASKED_FOR.as_millis()
                ));
            }
            _ => {}
        }
    }
    Reading::Value(Logins { under_way: ages.len(), oldest: Age::oldest(ages) })
}

#[cfg(test)]
mod tests {
    use super::super::threads::Thread;
    use super::*;

    fn seen(tid: u32, doing: Doing) -> Seen {
        let thread = Thread { pointer: 1, switches: 1, started: 1, tid, tgid: 1, asleep: true };
        Seen { thread, thd: tid.into(), doing, changed: false }
    }

    const LOGIN: Login =
        Login { connection_id: 7, noted_start_us: Some(3), start_ns: Some(3_000), seen_ns: 5_000 };

    #[test]
    fn the_oldest_login_is_told_by_its_start_else_by_the_first_look_at_it() {
        let unnoted = Login { start_ns: None, ..LOGIN };
        let told = |logins: &[Login]| {
            let seen: Vec<Seen> =
                logins.iter().map(|one| seen(1, Doing::LoggingIn(*one))).collect();
            count(seen.iter(), 9_000).into_value().unwrap()
        };
        let oldest = |ns, is_at_least| Some(Age { ns, is_at_least });
        assert_eq!(told(&[]), Logins { under_way: 0, oldest: None });
        assert_eq!(told(&[LOGIN]), Logins { under_way: 1, oldest: oldest(6_000, false) });
        assert_eq!(told(&[unnoted]), Logins { under_way: 1, oldest: oldest(4_000, true) });
        assert_eq!(told(&[LOGIN, unnoted]), Logins { under_way: 2, oldest: oldest(6_000, true) });
    }

    #[test]
    fn one_that_cannot_be_told_makes_the_number_unknown() {
        let all = [seen(1, Doing::LoggingIn(LOGIN)), seen(2, Doing::MayLogIn)];
        assert!(count(all.iter(), 9_000).why().unwrap().contains("thread 2 "));
    }

    #[test]
    fn a_session_that_is_another_by_now_or_cannot_be_read_may_be_a_login() {
        let head = |id, start_us| {
            let (command, text, database) = (None, None, None);
            let (state, context, is_killed) = (None, None, None);
            Some(Head { id, command, start_us, text, database, state, context, is_killed })
        };
        let mut seen: Vec<Seen> = (0..4).map(|tid| seen(tid, Doing::LoggingIn(LOGIN))).collect();
        seen[0].doing = Doing::Nothing;
        assert_eq!(sessions(&seen), [1, 2, 3]);
        doubt_changed(&mut seen, &[head(7, Some(3)), head(8, Some(3)), head(7, Some(4))]);
        assert!(matches!(
            [&seen[0].doing, &seen[1].doing, &seen[2].doing, &seen[3].doing],
            [Doing::Nothing, Doing::LoggingIn(LOGIN), Doing::MayLogIn, Doing::MayLogIn]
        ));
        doubt_changed(&mut seen, &[None]);
        assert!(matches!(seen[1].doing, Doing::MayLogIn));
    }

    #[test]
    fn a_login_goes_on_from_look_to_look_and_another_of_the_thread_begins() {
        let unnoted = Login { start_ns: None, seen_ns: 8_000, ..LOGIN };
        for (before, expected) in [
            (Some(LOGIN), LOGIN),
            (None, unnoted),
            (Some(Login { connection_id: 6, ..LOGIN }), unnoted),
        ] {
            let mut login = unnoted;
            go_on(&mut login, before.as_ref());
            assert_eq!(login, expected);
        }
    }

    #[test]
    fn a_thread_that_cannot_be_asked_and_one_that_is_not_are_not_known() {
        let may_log_in = |seen: &Seen| matches!(seen.doing, Doing::MayLogIn);
        let mut gone: Vec<Seen> =
            (0..2).map(|tid| seen(u32::MAX - tid, Doing::LoggingIn(LOGIN))).collect();
        gone.push(seen(1, Doing::Nothing));
        leave_out_cached(std::process::id(), &mut gone);
        assert_eq!(gone.iter().map(may_log_in).collect::<Vec<_>>(), [true, true, false]);
        let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let mut ours: Vec<Seen> = (0..3).map(|_| seen(tid, Doing::LoggingIn(LOGIN))).collect();
        ours.insert(0, seen(tid, Doing::Nothing));
        leave_out_cached_while(std::process::id(), &mut ours, |nth| nth < 2);
        assert_eq!(ours.iter().map(may_log_in).collect::<Vec<_>>(), [false, false, false, true]);
        let mut many: Vec<Seen> =
            (0..=ASKED_MAX).map(|_| seen(tid, Doing::LoggingIn(LOGIN))).collect();
        leave_out_cached(std::process::id(), &mut many);
        assert!(may_log_in(many.last().unwrap()));
    }
}
