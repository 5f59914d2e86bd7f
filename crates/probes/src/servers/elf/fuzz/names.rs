//! The reader of the names of functions, which is another's and trusts some numbers.

use std::fs::File;
use std::io::Write;
use std::panic;

use blazesym::symbolize::Symbolizer;
use rustix::fs::{MemfdFlags, memfd_create};
use waggle_fuzz_frame::Counts;

use crate::servers::names::Opened;

/// Places of a file that are asked for.
const PLACES: usize = 32;

/// Says nothing of panics in that reader: they are caught.
pub(super) fn expect_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let is_expected = panic.location().is_some_and(|place| place.file().contains("blazesym"));
        if !is_expected {
            before(panic);
        }
    }));
}

/// Asks for the names at many places of a file.
pub(super) fn check(bytes: &[u8], counts: &mut Counts) {
    let mut file = File::from(memfd_create("changed", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    let mut symbolizer = Symbolizer::builder().enable_auto_reload(false).build();
    let Some(opened) = Opened::of(file, &mut symbolizer) else { return };
    let places = (0..PLACES).map(|place| (bytes.len() * place / PLACES) as u64);
    let offsets: Vec<u64> = places.chain([u64::MAX]).collect();
    let names = opened.names(&symbolizer, &offsets);
    assert!(names.len() == offsets.len() || names.is_empty());
    let begins = opened.begins(&offsets);
    assert!(begins.len() == offsets.len() || begins.is_empty());
    counts.add_to("names", names.iter().flatten().count() as u64);
    counts.add_to("nameless", u64::from(names.is_empty()));
}
