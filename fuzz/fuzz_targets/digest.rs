//! Any bytes have a digest in every dialect, and a redacted text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use waggle_sql::Dialect;
use waggle_sql::Normaliser;
use waggle_sql::kind;
use waggle_sql::redact;
use waggle_sql::stable_hash;

thread_local! {
    static NORMALISERS: std::cell::RefCell<[Normaliser; 4]> = std::cell::RefCell::new(
        [Dialect::Mysql9, Dialect::Mysql80, Dialect::Mysql57, Dialect::Mariadb]
            .map(Normaliser::new),
    );
}

fuzz_target!(|sql: &[u8]| {
    NORMALISERS.with_borrow_mut(|normalisers| {
        for normaliser in normalisers {
            let digest = normaliser.digest(sql);
            assert_eq!(digest.hash, stable_hash(digest.text()));
            let hash = digest.hash;
            assert_eq!(normaliser.digest(sql).hash, hash, "the second time is like the first");
            assert!(!normaliser.digest_truncated(sql).complete);
        }
    });
    let mut out = Vec::new();
    redact(sql, None, &mut out);
    let _ = kind(sql);
});
