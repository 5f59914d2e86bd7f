use std::collections::BTreeMap;

use waggle_model::{DigestKey, DigestName};

use super::*;
use crate::{Counts, Stack};

fn function(name: &str, file: &str) -> Function {
    let is_named = !name.contains('+');
    Function { name: name.into(), file: file.into(), is_named, is_kernel: file == "[kernel]" }
}

fn digest(pid: u32, text: &str) -> Owner {
    let key = DigestKey { text: 0xab, schema: 0 };
    let name = DigestName { text: text.into(), schema: None, cut: false };
    Owner { pid, work: Work::Digest { key, name: Some(Arc::new(name)) } }
}

fn stack(owner: usize, functions: &[usize], count: u64) -> Stack {
    Stack { owner, functions: functions.to_vec(), chain: Chain::Whole, count }
}

/// A digest and a thread, in functions of each kind.
fn profile() -> Profile {
    let thread = Owner { pid: 1, work: Work::Thread("purge".into()) };
    let functions = vec![
        function("start_thread", "libc.so.6"),
        function("do_command(THD*)", "mysqld"),
        function("mysqld+0x300", "mysqld"),
        function("do_syscall_64", "[kernel]"),
        function("a_scan(char*)", "mysqld"),
    ];
    let stacks = vec![
        stack(0, &[0, 1, 4], 50),
        stack(0, &[0, 1, 2, 3], 30),
        stack(1, &[0, 2], 12),
        stack(0, &[0, 1], 7),
        Stack { chain: Chain::Broken, ..stack(1, &[4], 1) },
    ];
    let owners = vec![digest(1, "SELECT ?"), thread];
    Profile { owners, functions, stacks, ..Profile::default() }
}

/// Frames as depth, name, begin, samples and samples of their own.
fn told(flame: &Flame) -> Vec<(usize, String, u64, u64, u64)> {
    let one = |frame: &Frame| {
        let name = flame.labels[frame.label].name.to_string();
        (frame.depth, name, frame.begin, frame.samples, frame.itself)
    };
    flame.frames.iter().map(one).collect()
}

/// The frames below each that is drawn, with it.
fn below(flame: &Flame) -> BTreeMap<usize, Vec<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, frame) in flame.frames.iter().enumerate() {
        open.truncate(frame.depth);
        assert_eq!(open.len(), frame.depth, "a frame follows that above it");
        if let Some(above) = open.last() {
            below.entry(*above).or_default().push(at);
        }
        open.push(at);
    }
    below
}

#[test]
fn frames_stand_in_the_order_of_names_with_all_that_is_below_them() {
    let flame = Flame::of(&profile(), 0.0);
    let expected = [
        (0, "all", 0, 100, 0),
        (1, "SELECT ?", 0, 87, 0),
        (2, "start_thread", 0, 87, 0),
        (3, "do_command(THD*)", 0, 87, 7),
        (4, "a_scan(char*)", 7, 50, 50),
        (4, "mysqld+0x300", 57, 30, 0),
        (5, "do_syscall_64", 57, 30, 30),
        (1, "purge", 87, 13, 0),
        (2, "(callers lost)", 87, 1, 0),
        (3, "a_scan(char*)", 87, 1, 1),
        (2, "start_thread", 88, 12, 0),
        (3, "mysqld+0x300", 88, 12, 12),
    ];
    let expected = expected.map(|(depth, name, begin, all, itself)| {
        let name: String = name.to_owned();
        (depth, name, begin, all, itself)
    });
    assert_eq!(told(&flame), expected);
    assert_eq!((flame.samples, flame.narrow, flame.rows()), (100, 0, 6));
    assert_eq!((flame.x(&flame.frames[5]), flame.width(&flame.frames[5])), (0.57, 0.30));
    // What came first is no part of the picture.
    let mut other = profile();
    other.stacks.reverse();
    assert_eq!(Flame::of(&other, 0.0), flame);
}

#[test]
fn frames_below_another_are_within_it_and_all_add_up_to_the_samples() {
    for narrowest in [0.0, 0.02, 0.1] {
        let flame = Flame::of(&profile(), narrowest);
        for (above, below) in below(&flame) {
            let above = &flame.frames[above];
            let mut end = above.begin + above.itself;
            for frame in below.iter().map(|at| &flame.frames[*at]) {
                assert!(frame.begin >= end, "{frame:?} lies on the one left of it");
                end = frame.begin + frame.samples;
            }
            assert!(end <= above.begin + above.samples, "{above:?} is narrower than what is below");
        }
        let root = &flame.frames[0];
        assert_eq!((root.samples, flame.width(root)), (profile().samples(), 1.0));
    }
    let whole = Flame::of(&profile(), 0.0);
    let own: u64 = whole.frames.iter().map(|frame| frame.itself).sum();
    assert_eq!(own, profile().samples());
    assert_eq!(whole.innermost.iter().map(|(_, sum)| sum).sum::<u64>(), own);
}

#[test]
fn frames_that_are_too_narrow_are_counted_and_nothing_else_moves() {
    let flame = Flame::of(&profile(), 0.13);
    // Of the thread the callers that are lost with what is below, and two functions with 12 of 100.
    assert_eq!(flame.narrow, 4);
    let whole = told(&Flame::of(&profile(), 0.0));
    let wide: Vec<_> = whole.into_iter().filter(|(_, _, _, samples, _)| *samples >= 13).collect();
    assert_eq!(told(&flame), wide);
    assert_eq!(flame.innermost, Flame::of(&profile(), 0.0).innermost, "it is of all samples");
}

#[test]
fn each_frame_has_its_kind_and_what_else_is_known() {
    let flame = Flame::of(&profile(), 0.0);
    let of = |name: &str| {
        let label = flame.labels.iter().find(|label| &*label.name == name).unwrap();
        (label.kind, label.note.to_string())
    };
    assert_eq!(of("SELECT ?"), (Kind::Digest, "00000000000000ab".to_owned()));
    assert_eq!(of("purge"), (Kind::Thread, String::new()));
    assert_eq!(of("start_thread"), (Kind::Library, "libc.so.6".to_owned()));
    assert_eq!(of("do_command(THD*)"), (Kind::Program, "mysqld".to_owned()));
    assert_eq!(of("mysqld+0x300"), (Kind::Nameless, String::new()));
    assert_eq!(of("do_syscall_64"), (Kind::Kernel, String::new()));
    assert_eq!(of("(callers lost)"), (Kind::Gap, String::new()));
    let ends = [(Kind::Program, 58), (Kind::Kernel, 30), (Kind::Nameless, 12)];
    assert_eq!(flame.innermost, ends);
    assert_eq!((profile().without_name(), profile().in_kernel()), (12, 30));
    for class in TimeClass::ALL {
        assert_eq!(Kind::of(&Function::of_wait(class)), Kind::Wait(class));
    }
}

#[test]
fn several_servers_have_a_row_of_their_own() {
    let mut profile = profile();
    profile.counts = Counts::Waits;
    profile.owners[1].pid = 20;
    let flame = Flame::of(&profile, 0.0);
    let rows: Vec<_> = told(&flame).into_iter().filter(|frame| frame.0 == 1).collect();
    let expected = [("server 1", 0, 87), ("server 20", 87, 13)];
    assert_eq!(rows, expected.map(|(name, begin, all)| (1, name.to_owned(), begin, all, 0)));
}

#[test]
fn a_profile_without_samples_has_no_frames() {
    let nothing = Flame::of(&Profile::default(), 0.001);
    assert_eq!((nothing.frames.len(), nothing.samples, nothing.rows()), (0, 0, 0));
    assert_eq!(nothing.share(0), 0.0);
}

#[test]
fn a_stack_of_five_thousand_functions_is_as_good_as_any() {
    let functions: Vec<Function> =
        (0..5000).map(|at| function(&format!("f{at:04}"), "mysqld")).collect();
    let deep: Vec<usize> = (0..5000).collect();
    let stacks = vec![stack(0, &deep, 3), stack(0, &deep[..4000], 2)];
    let owners = vec![digest(1, "SELECT ?")];
    let flame = Flame::of(&Profile { owners, functions, stacks, ..Profile::default() }, 0.5);
    assert_eq!((flame.frames.len(), flame.rows(), flame.narrow), (5002, 5002, 0));
    let last = flame.frames[5001];
    assert_eq!((last.begin, last.samples, last.itself), (2, 3, 3));
}
