//! What is kept of a run, and what is refused.

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn window(number: u32) -> Window {
    let void = Some("it was a test".to_owned());
    Window { number, server_start: number, void, ..Window::default() }
}

#[test]
fn what_was_kept_stays_byte_for_byte_and_a_line_that_was_cut_is_made_anew() {
    let place = tempfile::TempDir::new().unwrap();
    let path = place.path().join("run");
    let mut run_dir = RunDir::create(&path, &"asked").unwrap();
    run_dir.append(&[window(1), window(0)]).unwrap();
    drop(run_dir);
    let file = path.join(WINDOWS);
    let before = fs::read(&file).unwrap();
    let mut cut = before.clone();
    cut.extend(br#"{"number":2,"blo"#);
    fs::write(&file, &cut).unwrap();

    let mut run_dir = RunDir::open(&path).unwrap();
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(run_dir.has(0) && run_dir.has(1) && !run_dir.has(2));
    assert_eq!((run_dir.next_start(), run_dir.part()), (2, 1));
    run_dir.append(&[window(2)]).unwrap();
    let numbers: Vec<u32> = read_windows(&path).unwrap().iter().map(|w| w.number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert_eq!(read_run::<String>(&path).unwrap(), "asked");
}

#[test]
fn a_run_that_ended_before_its_first_window_has_none_and_can_be_taken_up() {
    let place = tempfile::TempDir::new().unwrap();
    let path = place.path().join("run");
    drop(RunDir::create(&path, &"asked").unwrap());
    fs::remove_file(path.join(WINDOWS)).unwrap();
    assert_eq!(read_windows(&path).unwrap(), []);
    let run_dir = RunDir::open(&path).unwrap();
    assert_eq!((run_dir.count(), run_dir.part()), (0, 0));
}

#[test]
fn windows_that_are_packed_are_read_and_never_added_to() {
    let place = tempfile::TempDir::new().unwrap();
    let path = place.path().join("run");
    RunDir::create(&path, &"asked").unwrap().append(&[window(0), window(1)]).unwrap();
    let (plain, packed) = (path.join(WINDOWS), path.join(PACKED_WINDOWS));
    let before = read_windows(&path).unwrap();
    let text = fs::read(&plain).unwrap();
    let mut packer = GzEncoder::new(File::create(&packed).unwrap(), Compression::best());
    packer.write_all(&text).unwrap();
    packer.finish().unwrap();
    fs::remove_file(&plain).unwrap();
    assert_eq!(read_windows(&path).unwrap(), before);
    assert!(matches!(RunDir::open(&path), Err(RunDirError::Packed { .. })));
    assert!(!plain.exists());
    // A part of it, as a copy leaves it for which the disk was too small.
    fs::write(&packed, &fs::read(&packed).unwrap()[..20]).unwrap();
    let cut = read_windows(&path).unwrap_err().to_string();
    assert!(cut.contains("cannot unpack") && cut.contains(PACKED_WINDOWS), "{cut}");
}

#[test]
fn what_was_asked_is_replaced_whole() {
    let place = tempfile::TempDir::new().unwrap();
    let path = place.path().join("run");
    let run_dir = RunDir::create(&path, &"asked, and at some length").unwrap();
    // As a process leaves it that was killed while it wrote.
    fs::write(path.join("run.part"), "\"as").unwrap();
    write_json(&path.join(RUN), &"resumed").unwrap();
    assert_eq!(read_run::<String>(&path).unwrap(), "resumed");
    let names: BTreeSet<String> = fs::read_dir(run_dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, [RUN, WINDOWS].map(str::to_owned).into());
}

#[test]
fn a_run_has_one_writer_and_a_spoiled_line_is_named() {
    let place = tempfile::TempDir::new().unwrap();
    let path = place.path().join("run");
    let mut run_dir = RunDir::create(&path, &"asked").unwrap();
    assert!(matches!(RunDir::open(&path), Err(RunDirError::InUse { .. })));
    run_dir.append(&[window(0)]).unwrap();
    run_dir.append(&[window(0)]).unwrap();
    drop(run_dir);
    let twice = RunDir::open(&path).unwrap_err().to_string();
    assert!(twice.contains("line 2") && twice.contains("twice"), "{twice}");
    fs::write(path.join(WINDOWS), "{}\n").unwrap();
    let spoiled = read_windows(&path).unwrap_err().to_string();
    assert!(spoiled.contains("line 1"), "{spoiled}");
}

#[test]
fn files_without_end_and_files_that_are_none_are_refused() {
    let place = tempfile::TempDir::new().unwrap();
    let path = place.path().join("run");
    drop(RunDir::create(&path, &"asked").unwrap());
    let (plain, packed) = (path.join(WINDOWS), path.join(PACKED_WINDOWS));
    let refused = || read_windows(&path).unwrap_err().to_string();
    let long = vec![b' '; 2 * WINDOWS_BYTES_MAX as usize];
    fs::write(&plain, &long).unwrap();
    assert!(refused().contains("more than 1 MiB"), "{}", refused());
    assert!(matches!(RunDir::open(&path), Err(RunDirError::TooLarge { .. })));
    fs::remove_file(&plain).unwrap();
    // A little that is much.
    let mut packer = GzEncoder::new(File::create(&packed).unwrap(), Compression::best());
    packer.write_all(&long).unwrap();
    packer.finish().unwrap();
    assert!(fs::metadata(&packed).unwrap().len() < 10_000);
    assert!(refused().contains("more than 1 MiB"), "{}", refused());
    std::os::unix::fs::symlink("/dev/zero", &plain).unwrap();
    assert!(refused().contains("no regular file"), "{}", refused());
    for file in [&plain, &path.join(RUN)] {
        fs::remove_file(file).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    assert!(refused().contains("no regular file"), "{}", refused());
    let run = read_run::<String>(&path).unwrap_err().to_string();
    assert!(run.contains("no regular file"), "{run}");
    assert!(RunDir::open(&path).is_err());
}
