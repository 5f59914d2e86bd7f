//! Any bytes have a fingerprint and tables, and any text a layout with the same digest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use waggle_sql::Dialect;
use waggle_sql::Fingerprinter;
use waggle_sql::Normaliser;
use waggle_sql::SessionSettings;
use waggle_sql::SqlModes;
use waggle_sql::Tables;
use waggle_sql::format;

fuzz_target!(|sql: &[u8]| {
    let mut fingerprinter = Fingerprinter::new();
    assert!(fingerprinter.fingerprint(sql).len() <= 3 * sql.len() + 20);
    let reading = Dialect::Mysql9.reading();
    assert!(Tables::of(sql, reading, SessionSettings::default()).names.len() <= 32);
    if let Ok(text) = std::str::from_utf8(sql) {
        let laid = format(text, reading, SqlModes::default(), 80);
        let mut normaliser = Normaliser::new(Dialect::Mysql9);
        let hash = normaliser.digest(sql).hash;
        assert_eq!(normaliser.digest(laid.as_bytes()).hash, hash);
    }
});
