use super::*;

/// The bytes of a record as the program writes it.
fn record(change: fn(&mut types::sample)) -> Vec<u8> {
    let mut raw = types::sample::default();
    raw.head.tgid = 10;
    raw.head.thd = 0x7f00;
    raw.id = 8;
    raw.start = 99;
    raw.tid = 12;
    raw.command = 3;
    raw.thread_name[..6].copy_from_slice(b"mysqld");
    raw.user[..3].copy_from_slice(&[1, 2, 3]);
    raw.user_bytes = 24;
    change(&mut raw);
    // SAFETY: the structure consists of integers and was made by `Default`; the slice is copied while it lives.
    let bytes = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(&raw).cast::<u8>(), size_of_val(&raw))
    };
    bytes.to_vec()
}

#[test]
fn a_record_tells_who_ran_and_where() {
    let sample = sample_of(&record(|_| {})).unwrap();
    let key = StatementKey { thd: 0x7f00, connection_id: 8, noted_start_us: 99 };
    assert_eq!((sample.pid, sample.tid, sample.statement), (10, 12, Some(key)));
    assert_eq!((&sample.thread[..], sample.command), ("mysqld", Some(Command::QUERY)));
    assert_eq!((sample.user, sample.kernel, sample.is_cut), (vec![1, 2, 3], vec![], false));
}

#[test]
fn a_record_that_lies_about_its_lengths_is_bounded() {
    let sample = sample_of(&record(|raw| (raw.user_bytes, raw.kernel_bytes) = (-14, i32::MAX)));
    assert_eq!(sample.map(|sample| (sample.user, sample.kernel)), Some((vec![], vec![])));
    let sample =
        sample_of(&record(|raw| (raw.user_bytes, raw.user) = (i32::MAX, [7; USER_FRAMES])));
    let sample = sample.unwrap();
    assert_eq!((sample.user.len(), sample.is_cut), (USER_FRAMES, true));
    let whole = record(|raw| raw.thread_name = [b'x'; 16]);
    assert_eq!(sample_of(&whole).unwrap().thread, "x".repeat(16));
    for end in 0..whole.len() {
        assert!(sample_of(&whole[..end]).is_none());
    }
}

#[test]
fn a_server_that_is_not_sampled_has_no_samples() {
    let mut probe = Probe::new(Some(99));
    assert_eq!(probe.read(&record(|_| {})), None);
    probe.outcome.insert(10, None);
    assert!(probe.read(&record(|_| {})).is_some());
    probe.outcome.insert(10, Some("no right".to_owned()));
    assert_eq!((probe.refusal(10), probe.refusal(11)), (Some("no right"), None));
    probe.detach(10);
    assert_eq!(probe.read(&record(|_| {})), None);
}

#[test]
fn the_limits_are_those_of_the_kernels_half() {
    let shared = include_str!("shared.h");
    assert!(shared.contains(&format!("#define USER_FRAMES {USER_FRAMES}\n")));
}
