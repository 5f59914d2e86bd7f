use waggle_model::{DigestKey, DigestName, StatementKey, TimeClass};

use super::*;

const PID: u32 = 10;

fn key(thd: u64, start: u64) -> StatementKey {
    StatementKey { thd, connection_id: 1, noted_start_us: start }
}

fn digest(text: &str) -> (DigestKey, DigestName) {
    let key = DigestKey { text: text.bytes().map(u64::from).sum(), schema: 0 };
    (key, DigestName { text: text.into(), schema: None, cut: false })
}

fn taken<'a>(statement: Option<StatementKey>, user: &'a [u64]) -> Taken<'a> {
    Taken {
        pid: PID,
        statement,
        runs: true,
        thread: "worker",
        user,
        kernel: &[],
        is_cut: false,
        waited: None,
    }
}

fn end(collector: &mut Collector, statement: StatementKey, text: &str) {
    let (key, name) = digest(text);
    collector.ended(PID, statement, key, || name);
}

fn function(name: &str, file: &str) -> Option<Function> {
    let is_named = !name.contains('+');
    Some(Function { name: name.into(), file: file.into(), is_named, is_kernel: false })
}

/// The addresses of the functions in these tests.
fn named(collector: &mut Collector) {
    while let Some((pid, addresses)) = collector.take_new(2) {
        assert!(addresses.len() <= 2);
        for address in addresses {
            let function = match address / 100 {
                1 => function("start_thread", "libc.so.6"),
                2 => function("do_command(THD*)", "mysqld"),
                3 => function("mysqld+0x300", "mysqld"),
                4 => function("SHA512_Update", "libcrypto.so.3"),
                5 => function("my_convert(char*)", "mysqld"),
                6 => function("my_mb_wc_utf8mb4", "mysqld"),
                7 => function("my_strnncoll_utf8", "mysqld"),
                8 => function("my_charset; odd\n", "mysqld"),
                9 => function(
                    "String::copy(char*, CHARSET_INFO const*, CHARSET_INFO const*)",
                    "mysqld",
                ),
                _ => None,
            };
            collector.name(pid, address, function);
        }
    }
}

fn finished(mut collector: Collector) -> Profile {
    named(&mut collector);
    collector.finish(&|address| (address == 70).then(|| "do_syscall_64".to_owned()))
}

fn owners(profile: &Profile) -> Vec<(String, u64)> {
    profile.by_owner().into_iter().map(|(owner, count)| (owner.title().to_owned(), count)).collect()
}

#[test]
fn a_sample_belongs_to_the_statement_that_ends_later_or_has_just_ended() {
    let mut collector = Collector::default();
    let whole = [400, 201, 101];
    collector.sample(&taken(Some(key(1, 5)), &whole));
    collector.sample(&taken(Some(key(2, 5)), &whole));
    end(&mut collector, key(1, 5), "select ?");
    // Behind its reply, and of the next statement.
    collector.sample(&taken(Some(key(1, 5)), &whole));
    collector.sample(&taken(Some(key(1, 6)), &whole));
    end(&mut collector, key(2, 5), "update t");
    collector.sample(&taken(None, &whole));
    let profile = finished(collector);
    let unmatched = Owner { pid: PID, work: Work::Unmatched };
    let expected = [("select ?", 2), ("worker", 1), (unmatched.title(), 1), ("update t", 1)];
    let mut expected = expected.map(|(title, count)| (title.to_owned(), count)).to_vec();
    let mut told = owners(&profile);
    told.sort();
    expected.sort();
    assert_eq!(told, expected);
    assert_eq!((profile.samples(), profile.left_out), (5, 0));
}

#[test]
fn a_session_that_runs_nothing_is_its_thread() {
    let mut collector = Collector::default();
    collector.sample(&Taken { runs: false, ..taken(Some(key(1, 0)), &[400]) });
    assert_eq!(owners(&finished(collector)), [("worker".to_owned(), 1)]);
}

#[test]
fn digests_are_called_by_their_names_once_and_kept_apart_by_server() {
    let mut collector = Collector::default();
    for pid in [10, 11] {
        for start in [1, 2] {
            collector.sample(&Taken { pid, ..taken(Some(key(1, start)), &[400]) });
            let (key_of_digest, name) = digest("select ?");
            let mut calls = 0;
            collector.ended(pid, key(1, start), key_of_digest, || {
                calls += 1;
                name
            });
            assert_eq!(calls, u64::from(start == 1));
        }
    }
    let profile = finished(collector);
    assert_eq!(owners(&profile), [("select ?".to_owned(), 2), ("select ?".to_owned(), 2)]);
    assert_eq!(profile.only(|owner| owner.pid == 11).samples(), 2);
}

#[test]
fn each_function_has_what_it_used_itself_and_with_what_it_called() {
    let mut collector = Collector::default();
    // An address to which a call returns lies behind the call: 201 is in the function that begins at 200, 300 as
    // well in the one before.
    for user in [&[400, 350, 250, 101][..], &[401, 250, 101], &[350, 250, 250, 101]] {
        collector.sample(&taken(None, user));
    }
    let profile = finished(collector);
    let told = |one: &Used| {
        let name = |at: usize| profile.functions[at].name.to_string();
        (name(one.function), one.itself, one.total, one.caller.map(name))
    };
    let used: Vec<_> = profile.used().iter().map(told).collect();
    let do_command = || "do_command(THD*)".to_owned();
    assert_eq!(
        used,
        [
            ("SHA512_Update".into(), 2, 2, None),
            ("mysqld+0x300".into(), 1, 2, Some(do_command())),
            (do_command(), 0, 3, None),
            ("start_thread".to_owned(), 0, 3, None),
        ]
    );
    assert_eq!(profile.with_chain(Chain::Whole), 3);
}

#[test]
fn chains_that_are_lost_or_cut_are_counted() {
    let mut collector = Collector::default();
    let cut = Taken { is_cut: true, ..taken(None, &[400, 250]) };
    collector.sample(&cut);
    for user in [&[][..], &[120], &[400, 250], &[400, 99_999, 101], &[99_999]] {
        collector.sample(&taken(None, user));
    }
    collector.sample(&taken(None, &[400, 250, 101]));
    let profile = finished(collector);
    let counts = [Chain::Whole, Chain::Broken, Chain::Cut].map(|chain| profile.with_chain(chain));
    assert_eq!(counts, [1, 5, 1]);
    // What lies behind an address that is in no file is left out.
    let folded = folded(&profile);
    assert!(folded.contains("worker;(callers lost);SHA512_Update 1\n"), "{folded}");
    assert!(folded.contains("(callers lost);[unknown]+0x18000 1\n"), "{folded}");
    assert!(folded.contains("worker;(callers cut);do_command(THD*);SHA512_Update 1\n"), "{folded}");
    assert!(folded.contains("worker;start_thread;do_command(THD*);SHA512_Update 1\n"), "{folded}");
}

#[test]
fn conversion_is_what_runs_below_it_and_not_what_compares() {
    let mut collector = Collector::default();
    collector.sample(&taken(None, &[650, 550, 250, 101]));
    collector.sample(&taken(None, &[650, 250, 101]));
    // Copied with conversion, and without.
    collector.sample(&taken(None, &[350, 950, 250, 101]));
    collector.sample(&taken(None, &[120, 950, 250, 101]));
    // A comparison reads characters, too.
    collector.sample(&taken(None, &[650, 750, 250, 101]));
    collector.sample(&taken(None, &[400, 250, 101]));
    let profile = finished(collector);
    let conversion = profile.conversion();
    let name = |at: &(usize, u64)| (profile.functions[at.0].name.to_string(), at.1);
    let functions: Vec<_> = conversion.functions.iter().map(name).collect();
    assert_eq!(conversion.samples, 3);
    let mut sorted = functions;
    sorted.sort();
    let copy = "String::copy(char*, CHARSET_INFO const*, CHARSET_INFO const*)";
    let expected = [copy, "my_convert(char*)", "my_mb_wc_utf8mb4"].map(|name| (name.to_owned(), 1));
    assert_eq!(sorted, expected);
    let is = |name: &str, file| is_conversion(&function(name, file).unwrap());
    assert!(is("String::copy_and_convert(char const*, unsigned long)", "mariadbd"));
    assert!(!is("my_convert_other+0x1", "mysqld"), "it has no name");
    assert!(!is("do_command", "mysqld"));
}

#[test]
fn folded_lines_hold_nothing_that_a_reader_would_take_for_something_else() {
    let mut collector = Collector::default();
    let kernel = Taken { kernel: &[70, 81], ..taken(Some(key(1, 1)), &[850, 101]) };
    collector.sample(&kernel);
    end(&mut collector, key(1, 1), "select ?; \u{1b}[2J");
    let profile = finished(collector);
    let line = folded(&profile);
    assert_eq!(
        line,
        "select ?: <U+001B>[2J;start_thread;my_charset: odd ;[kernel]_[k];do_syscall_64_[k] 1\n"
    );
    assert_eq!(profile.in_kernel(), 1);
}

/// The fields of a message: a number with each, or bytes.
fn fields(mut message: &[u8]) -> Vec<(u64, Result<u64, &[u8]>)> {
    fn number(from: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = from.split_first().unwrap();
            *from = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = number(&mut message);
        let value = number(&mut message);
        fields.push(match tag & 7 {
            0 => (tag >> 3, Ok(value)),
            2 => {
                let (bytes, rest) = message.split_at(value as usize);
                message = rest;
                (tag >> 3, Err(bytes))
            }
            other => panic!("wire type {other}"),
        });
    }
    fields
}

#[test]
fn the_format_of_pprof_can_be_read_again() {
    let mut collector = Collector::default();
    collector.sample(&taken(Some(key(1, 1)), &[400, 250, 101]));
    collector.sample(&taken(Some(key(1, 1)), &[400, 250, 101]));
    end(&mut collector, key(1, 1), "select ?");
    let profile = finished(collector);
    let span = Span { begin_ns: 5, length_ns: 1 << 40, period_ns: 10_000_000 };
    let bytes = pprof(&profile, &span);
    let all = fields(&bytes);
    let of = |field: u64| all.iter().filter(move |(number, _)| *number == field).map(|(_, it)| *it);
    let texts: Vec<&str> = of(6).map(|it| std::str::from_utf8(it.unwrap_err()).unwrap()).collect();
    assert_eq!(texts[0], "");
    let text = |number: u64| texts[number as usize];
    let kinds: Vec<_> = of(1)
        .map(|it| {
            fields(it.unwrap_err()).iter().map(|(_, it)| text(it.unwrap())).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(kinds, [["samples", "count"], ["cpu", "nanoseconds"]]);
    let sample = fields(of(2).next().unwrap().unwrap_err());
    assert_eq!(sample[0].1.unwrap_err().len(), 3, "three functions");
    assert_eq!(sample[1].1.unwrap_err()[0], 2, "two samples");
    let label: Vec<_> =
        fields(sample[2].1.unwrap_err()).iter().map(|(_, it)| text(it.unwrap())).collect();
    assert_eq!(label, ["work", "select ?"]);
    let innermost = u64::from(sample[0].1.unwrap_err()[0]);
    let functions: Vec<_> = of(5).map(|it| fields(it.unwrap_err())).collect();
    let found = functions.iter().find(|one| one[0].1 == Ok(innermost)).unwrap();
    assert_eq!(text(found[1].1.unwrap()), "SHA512_Update");
    assert_eq!(text(found[3].1.unwrap()), "libcrypto.so.3");
    assert_eq!(
        (of(9).next(), of(10).next(), of(12).next()),
        (Some(Ok(5)), Some(Ok(1 << 40)), Some(Ok(10_000_000)))
    );
}

#[test]
fn a_wait_counts_by_its_length_and_its_class_is_innermost() {
    let mut collector = Collector::default();
    let waits =
        |class, us| Taken { waited: Some((class, us)), ..taken(Some(key(1, 1)), &[250, 101]) };
    collector.sample(&waits(TimeClass::RowLock, 500));
    collector.sample(&waits(TimeClass::RowLock, 250));
    collector.sample(&waits(TimeClass::RunQueue, 50));
    end(&mut collector, key(1, 1), "update t");
    collector.sample(&waits(TimeClass::Sync, 200));
    let profile = finished(collector);
    assert_eq!((profile.samples(), profile.counts), (1000, Counts::Waits));
    assert_eq!(owners(&profile), [("update t".to_owned(), 1000)]);
    let used = profile.used();
    let name = |at: usize| (profile.functions[used[at].function].name.to_string(), used[at].itself);
    let expected = [("[row lock]", 750), ("[sync]", 200), ("[run queue]", 50)];
    assert_eq!([0, 1, 2].map(name), expected.map(|(name, us)| (name.to_owned(), us)));
    assert!(profile.functions[used[0].function].is_wait());
    let folded = folded(&profile);
    assert!(folded.contains("update t;start_thread;do_command(THD*);[row lock] 750\n"), "{folded}");
}

#[test]
fn what_has_no_room_is_counted() {
    let mut table = crate::table::Table::with_room(2);
    assert_eq!(
        (table.number("a"), table.number("b"), table.number("a")),
        (Some(0), Some(1), Some(0))
    );
    assert_eq!((table.number("c"), table.has("c"), table.has("b")), (None, false, true));
    let mut collector = Collector::default();
    for thread in 0..20_001 {
        collector.sample(&Taken { thread: &thread.to_string(), ..taken(None, &[400]) });
    }
    assert_eq!(collector.samples(), 20_001);
    let profile = finished(collector);
    assert_eq!((profile.samples(), profile.left_out), (20_000, 1));
}
