//! The words that go with secrets, and those of the servers that only look like one.
//!
//! A part of a word is enough for a mark: a column `user_password` may hold one. So the list of words
//! that are no secret has whole words, each from the servers' own manuals.

use crate::lexer::is_word;

/// What a text mentions, the stronger the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    None,
    /// `PREPARE`, `EXECUTE IMMEDIATE`: a string that is a statement.
    Nested,
    /// A word that goes with secrets.
    Secret,
    /// `IDENTIFIED`, `CHALLENGE_RESPONSE`: accounts, where a secret may stand unquoted.
    Account,
}

/// A part of a word that goes with secrets.
struct Part {
    letters: &'static [u8],
    /// Which of its letters is looked for: a rare one, so that most bytes are passed by one look.
    anchor: usize,
    mark: Mark,
}

const fn part(letters: &'static str, anchor: usize, mark: Mark) -> Part {
    Part { letters: letters.as_bytes(), anchor, mark }
}

/// Every part of a word that goes with secrets.
const PARTS: [Part; 23] = [
    // Statements of accounts: `CREATE USER`, `ALTER USER`, `GRANT`, `CLONE INSTANCE`. A part of the
    // word is enough, for who mistypes it (`INDENTIFIED`) has typed a password all the same.
    part("DENTIF", 5, Mark::Account),
    // `ALTER USER … FINISH REGISTRATION SET CHALLENGE_RESPONSE AS` (MySQL).
    part("CHALLENGE_RESPONSE", 1, Mark::Account),
    // `SET PASSWORD`, `MASTER_PASSWORD`, `SOURCE_PASSWORD`, `CREATE SERVER`, `START REPLICA`, the
    // functions `PASSWORD` and `OLD_PASSWORD`, and columns.
    part("PASSW", 4, Mark::Secret),
    // `authentication_ldap_simple_bind_root_pwd` (MySQL), and columns.
    part("PWD", 1, Mark::Secret),
    // `ssl_passphrase` (MariaDB).
    part("PASSPH", 5, Mark::Secret),
    // `AES_ENCRYPT`, `DES_ENCRYPT`, `ENCRYPT`, `AES_DECRYPT` …: a key is among the arguments.
    part("CRYPT", 2, Mark::Secret),
    // `ENCODE(text, password)`, `DECODE` (MySQL 5.7, MariaDB).
    part("ENCODE", 4, Mark::Secret),
    part("DECODE", 4, Mark::Secret),
    // The column of `mysql.user` that holds hashes.
    part("AUTHENTICATION_STRING", 3, Mark::Secret),
    part("AUTH_STRING", 3, Mark::Secret),
    // `hashicorp_key_management_token` (MariaDB), and columns.
    part("TOKEN", 2, Mark::Secret),
    part("SECRET", 2, Mark::Secret),
    part("CREDENTIAL", 3, Mark::Secret),
    // `wsrep_sst_auth = 'user:password'` (MariaDB).
    part("SST_AUTH", 3, Mark::Secret),
    // `keyring_key_store` (MySQL); columns, options and headers: `api_key`, `x-api-key`, `accessKey`; the first
    // line of a key in PEM (RFC 7468).
    part("KEY", 2, Mark::Secret),
    // `pass=…`, `db_pass`.
    part("PASS", 0, Mark::Secret),
    // `Authorization: Bearer …` (RFC 6750).
    part("BEARER", 0, Mark::Secret),
    // `Authorization: Basic …` (RFC 7617).
    part("AUTHORIZATION:", 7, Mark::Secret),
    // A password among the arguments: `mysql.rds_set_external_master` and its kin (Amazon),
    // `mysql.az_replication_change_master` (Azure).
    part("SET_EXTERNAL", 5, Mark::Secret),
    part("AZ_REPLICATION", 1, Mark::Secret),
    // `CONNECTION = 'mysql://user:password@host/…'` of FEDERATED, and other addresses.
    part("://", 0, Mark::Secret),
    // A string that is a statement.
    part("PREPARE", 0, Mark::Nested),
    part("IMMEDIATE", 1, Mark::Nested),
];

/// Words of the servers that hold such a part and are no secret; a star stands for any end. System
/// variables: "Server System Variable Reference" of the MySQL 5.7, 8.0 and 9 manuals, "Full List of
/// MariaDB Options, System and Status Variables". Options and columns: "CREATE TABLE", "CREATE
/// TABLESPACE", "CREATE USER", "Grant Tables" and "Privileges" of both. In capitals.
const HARMLESS: &[&str] = &[
    // Encryption at rest: whether, how, with how many threads.
    "ENCRYPTION",
    "ENCRYPTED",
    "ENCRYPTION_KEY_ID",
    "ENCRYPTION_KEY_ADMIN",
    "BINLOG_ENCRYPTION",
    "BINLOG_ENCRYPTION_ADMIN",
    "BINLOG_ROTATE_ENCRYPTION_MASTER_KEY_AT_STARTUP",
    "BLOCK_ENCRYPTION_MODE",
    "DEFAULT_TABLE_ENCRYPTION",
    "DEFAULT_ENCRYPTION",
    "TABLE_ENCRYPTION_ADMIN",
    "TABLE_ENCRYPTION_PRIVILEGE_CHECK",
    "INNODB_REDO_LOG_ENCRYPT",
    "INNODB_UNDO_LOG_ENCRYPT",
    "INNODB_ENCRYPT_LOG",
    "INNODB_ENCRYPT_TABLES",
    "INNODB_ENCRYPT_TEMPORARY_TABLES",
    "INNODB_ENCRYPTION_ROTATE_KEY_AGE",
    "INNODB_ENCRYPTION_ROTATION_IOPS",
    "INNODB_ENCRYPTION_THREADS",
    "INNODB_DEFAULT_ENCRYPTION_KEY_ID",
    "INNODB_TABLESPACES_ENCRYPTION",
    "ARIA_ENCRYPT_TABLES",
    "ENCRYPT_BINLOG",
    "ENCRYPT_TMP_DISK_TABLES",
    "ENCRYPT_TMP_FILES",
    "FILE_KEY_MANAGEMENT_ENCRYPTION_ALGORITHM",
    "HAVE_CRYPT",
    // Rules for passwords.
    "VALIDATE_PASSWORD",
    "VALIDATE_PASSWORD_CH*",
    "VALIDATE_PASSWORD_DICTIONARY*",
    "VALIDATE_PASSWORD_LENGTH",
    "VALIDATE_PASSWORD_MIXED*",
    "VALIDATE_PASSWORD_NUMBER*",
    "VALIDATE_PASSWORD_POLICY",
    "VALIDATE_PASSWORD_SPECIAL*",
    "COMPONENT_VALIDATE_PASSWORD*",
    "SIMPLE_PASSWORD_CHECK*",
    "CRACKLIB_PASSWORD_CHECK*",
    "PASSWORD_REUSE_CHECK*",
    "STRICT_PASSWORD_VALIDATION",
    "DEFAULT_PASSWORD_LIFETIME",
    "DISCONNECT_ON_EXPIRED_PASSWORD",
    "GENERATED_RANDOM_PASSWORD_LENGTH",
    "MAX_PASSWORD_ERRORS",
    "OLD_PASSWORDS",
    "PASSWORD_EXPIRED",
    "PASSWORD_HISTORY",
    "PASSWORD_LAST_CHANGED",
    "PASSWORD_LIFETIME",
    "PASSWORD_LOCK_TIME",
    "PASSWORD_REQUIRE_CURRENT",
    "PASSWORD_REUSE_*",
    "PASSWORDLESS_USER_ADMIN",
    "LOG_BUILTIN_AS_IDENTIFIED_BY_PASSWORD",
    // Plugins, and their variables.
    "CACHING_SHA2_PASSWORD*",
    "SHA256_PASSWORD*",
    "MYSQL_NATIVE_PASSWORD*",
    "MYSQL_OLD_PASSWORD",
    "KEYRING_ENCRYPTED_FILE",
    "KEYRING_ENCRYPTED_FILE_DATA",
    "COMPONENT_KEYRING_ENCRYPTED_FILE",
    // Others.
    "*_TOKEN_SIZE",
];

/// The statements in which a word like `password_history` is the server's. In others it may be a table
/// or a column that somebody else named, and holds secrets.
const ADMINISTRATIVE: [&str; 7] =
    ["SET", "SHOW", "ALTER", "CREATE", "GRANT", "INSTALL", "UNINSTALL"];

/// The longest of them, beside which any word is none.
const HARMLESS_MAX: usize = 64;

/// For each byte, as bits, the parts that it is the anchor of.
static ANCHORED: [u32; 256] = anchored();

const fn anchored() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < PARTS.len() {
        let letter = PARTS[at].letters[PARTS[at].anchor];
        table[letter as usize] |= 1 << at;
        if letter.is_ascii_alphabetic() {
            table[letter.to_ascii_lowercase() as usize] |= 1 << at;
        }
        at += 1;
    }
    table
}

/// The strongest mark of a text.
pub(super) fn strongest_mark(sql: &[u8]) -> Mark {
    let mut strongest = Mark::None;
    for (at, byte) in sql.iter().enumerate() {
        let parts = ANCHORED[usize::from(*byte)];
        if parts != 0 {
            strongest = strongest.max(mark_at(sql, at, parts));
        }
    }
    strongest
}

pub(super) fn mentions_secret(sql: &[u8]) -> bool {
    strongest_mark(sql) >= Mark::Secret
}

/// The mark of those parts of a word that have their anchor at `at`: a bit for each.
fn mark_at(sql: &[u8], at: usize, mut parts: u32) -> Mark {
    let mut strongest = Mark::None;
    while let Some(part) = PARTS.get(parts.trailing_zeros() as usize) {
        parts &= parts - 1;
        if part.mark > strongest && stands_at(sql, at, part) {
            strongest = part.mark;
        }
    }
    strongest
}

/// Whether a part of a secret's word stands with its anchor at `at`.
fn stands_at(sql: &[u8], at: usize, part: &Part) -> bool {
    let Some(from) = at.checked_sub(part.anchor) else { return false };
    let text = sql.get(from..from + part.letters.len());
    text.is_some_and(|text| text.eq_ignore_ascii_case(part.letters)) && is_one(sql, from, part)
}

/// Whether the part that stands at `from` belongs to a secret.
fn is_one(sql: &[u8], from: usize, part: &Part) -> bool {
    let rest = sql.get(from + part.letters.len()..).unwrap_or_default();
    match part.letters {
        b"://" => has_account(rest),
        b"PASSW" => !(is_harmless(word_around(sql, from)) && is_of_server(sql, from)),
        b"KEY" => is_of_secret_key(sql, from),
        b"PASS" => is_pass(sql, from),
        b"DENTIF" => !is_column_identifier(sql, from),
        _ => !is_harmless(word_around(sql, from)),
    }
}

/// Whether the `KEY` at `from` opens something: `api_key`, `x-api-key`, `accessKey`, `PRIVATE KEY`.
fn is_of_secret_key(sql: &[u8], from: usize) -> bool {
    const KINDS: [&[u8]; 10] = [
        b"API", b"PRIVATE", b"ACCESS", b"ACCOUNT", b"SHARED", b"SIGNING", b"AUTH", b"KEYRING",
        b"SSH", b"PASS",
    ];
    let before = sql.get(..from).unwrap_or_default();
    let before = before.strip_suffix(b"_").or(before.strip_suffix(b"-")).unwrap_or(before);
    let before = before.strip_suffix(b" ").unwrap_or(before);
    let ends_with = |kind: &[u8]| {
        let start = before.len().checked_sub(kind.len());
        start
            .and_then(|start| before.get(start..))
            .is_some_and(|end| end.eq_ignore_ascii_case(kind))
    };
    KINDS.into_iter().any(ends_with) && !is_harmless(word_around(sql, from))
}

/// Whether the `PASS` at `from` is a word, or the last part of one: `pass`, `db_pass`, and no `passenger` or
/// `bypass`.
fn is_pass(sql: &[u8], from: usize) -> bool {
    let is_behind_word = sql.get(from + 4).is_none_or(|byte| !is_word(*byte));
    let before = from.checked_sub(1).and_then(|at| sql.get(at));
    is_behind_word && before.is_none_or(|byte| !is_word(*byte) || *byte == b'_')
}

/// Whether the word that goes on at `from` is a column like `identifier`, and not `IDENTIFIED` mistyped.
fn is_column_identifier(sql: &[u8], from: usize) -> bool {
    const COLUMNS: [&[u8]; 2] = [b"DENTIFIER", b"DENTIFICATION"];
    let behind = sql.get(from..).unwrap_or_default();
    let length = behind.iter().position(|byte| !is_word(*byte)).unwrap_or(behind.len());
    let (word, rest) = behind.split_at(length);
    let is_column =
        |one: &[u8]| word.get(..one.len()).is_some_and(|it| it.eq_ignore_ascii_case(one));
    let next = rest.trim_ascii_start().split(|byte| !is_word(*byte)).next().unwrap_or_default();
    COLUMNS.into_iter().any(is_column)
        && ![&b"BY"[..], b"WITH", b"VIA"].iter().any(|it| next.eq_ignore_ascii_case(it))
}

/// Whether a word at `from` is one of the server's own: a variable, or the name of a plugin as the
/// whole of a string.
fn is_of_server(sql: &[u8], from: usize) -> bool {
    let start = from - word_before(sql, from);
    let is_string = start.checked_sub(1).and_then(|at| sql.get(at)) == Some(&b'\'')
        && sql.get(start + word_around(sql, from).len()) == Some(&b'\'');
    let scope = sql.get(..start).unwrap_or_default().trim_ascii_end();
    let first = sql.trim_ascii_start();
    let length = first.iter().position(|byte| !is_word(*byte)).unwrap_or(first.len());
    let first = first.get(..length).unwrap_or_default();
    is_string
        || scope.ends_with(b"@@")
        || scope.to_ascii_uppercase().ends_with(b"@@GLOBAL.")
        || ADMINISTRATIVE.iter().any(|one| first.eq_ignore_ascii_case(one.as_bytes()))
}

/// Whether the address that begins like this holds a user, or may where it is cut.
fn has_account(address: &[u8]) -> bool {
    let end = end_of_address(address);
    let until_blank = address.get(..end.unwrap_or(address.len())).unwrap_or_default();
    // A password may hold quotes and blanks, but what follows a host's colon is a number.
    let authority = address.split(|byte| *byte == b'/').next().unwrap_or_default();
    let mut behind_colons = authority.split(|byte| *byte == b':').skip(1);
    until_blank.contains(&b'@')
        || (end.is_none() && until_blank.contains(&b':'))
        || behind_colons.any(|behind| behind.first().is_none_or(|byte| !byte.is_ascii_digit()))
}

/// Where a blank or a quote ends an address; a doubled quote does not.
fn end_of_address(address: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let byte = *address.get(at)?;
        let is_quote = matches!(byte, b'\'' | b'"' | b'`');
        match is_quote && address.get(at + 1) == Some(&byte) {
            true => at += 2,
            false if is_quote || byte.is_ascii_whitespace() => return Some(at),
            false => at += 1,
        }
    }
}

/// The word that the byte at `at` is a part of.
fn word_around(sql: &[u8], at: usize) -> &[u8] {
    let behind = sql.get(at..).unwrap_or_default();
    let length = behind.iter().take(HARMLESS_MAX).take_while(|byte| is_word(**byte)).count();
    sql.get(at - word_before(sql, at)..at + length).unwrap_or_default()
}

/// How many bytes of a word stand before the byte at `at`. Beyond [`HARMLESS_MAX`] it does not matter.
fn word_before(sql: &[u8], at: usize) -> usize {
    let before = sql.get(..at).unwrap_or_default();
    before.iter().rev().take(HARMLESS_MAX).take_while(|byte| is_word(**byte)).count()
}

fn is_harmless(word: &[u8]) -> bool {
    let mut upper = [0; HARMLESS_MAX];
    let Some(upper) = upper.get_mut(..word.len()) else { return false };
    upper.copy_from_slice(word);
    upper.make_ascii_uppercase();
    HARMLESS.iter().map(|entry| entry.as_bytes()).any(|entry| match entry {
        [b'*', end @ ..] => upper.ends_with(end),
        [start @ .., b'*'] => upper.starts_with(start),
        _ => entry == upper,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_harmless_word_would_be_a_mark_and_none_is_longer_than_is_looked_at() {
        for entry in HARMLESS {
            let word = entry.trim_matches('*').as_bytes();
            let is_part = |part: &Part| memchr::memmem::find(word, part.letters).is_some();
            assert!(PARTS.iter().any(is_part), "{entry} holds no part of the list");
            assert!(word.len() < HARMLESS_MAX, "{entry}");
            assert_eq!(*entry, entry.to_ascii_uppercase());
        }
    }

    #[test]
    fn a_word_of_the_servers_may_be_a_table_or_a_column_of_somebody_else() {
        for (text, mark) in [
            ("SET GLOBAL password_history = 5", Mark::None),
            ("SELECT @@GLOBAL.password_history, @@old_passwords", Mark::None),
            ("INSERT INTO password_history VALUES (7, 'hash')", Mark::Secret),
            ("UPDATE users SET sha256_password = '5e88'", Mark::Secret),
            ("SELECT * FROM mysql.user WHERE plugin = 'sha256_password'", Mark::None),
            ("CREATE USER u IDENTIFIER BY hunter2", Mark::Account),
            ("CREATE USER u IDENTIFED BY hunter2", Mark::Account),
            ("CREATE USER u INDENTIFIED BY hunter2", Mark::Account),
            ("SELECT identifiers FROM t GROUP BY identifier", Mark::None),
            ("SET @x = VALIDATE_PASSWORD_STRENGTH('x')", Mark::Secret),
            ("SET GLOBAL validate_password_check_user_name = ON", Mark::None),
            ("INSERT INTO t VALUES ('Authorization: Basic abc')", Mark::Secret),
            ("CREATE SCHEMA AUTHORIZATION x", Mark::None),
            ("CALL mysql.rds_set_external_master('h', 3306, 'u', 'p')", Mark::Secret),
            ("SET GLOBAL wsrep_sst_auth = 'u:p'", Mark::Secret),
            ("SELECT keyring_key_store('k', 'AES', 'x')", Mark::Secret),
            ("INSERT INTO t (apiKey) VALUES ('x')", Mark::Secret),
            ("UPDATE t SET headers = 'x-api-key: k', private_key = 'x'", Mark::Secret),
            ("INSERT INTO t VALUES ('-----BEGIN RSA PRIVATE KEY-----')", Mark::Secret),
            ("INSERT INTO t VALUES ('Authorization: Bearer abc')", Mark::Secret),
            ("UPDATE t SET dsn = 'user=u;pass=p'", Mark::Secret),
            ("UPDATE t SET db_pass = 'p'", Mark::Secret),
            ("SELECT passenger, bypass FROM t WHERE pass_rate > 1", Mark::None),
            ("CREATE TABLE t (id INT PRIMARY KEY, KEY a (a)) KEY_BLOCK_SIZE = 8", Mark::None),
            ("SELECT MONKEY FROM t FORCE KEY (access) WHERE hotkey = 1", Mark::None),
        ] {
            assert_eq!(strongest_mark(text.as_bytes()), mark, "{text}");
        }
        let long = "token".repeat(20_000);
        assert_eq!(strongest_mark(long.as_bytes()), Mark::Secret);
    }

    #[test]
    fn the_anchor_of_each_part_finds_it() {
        for part in PARTS.iter().filter(|part| !matches!(part.letters, b"://" | b"KEY")) {
            assert_eq!(strongest_mark(part.letters), part.mark);
            assert!(strongest_mark(&part.letters.to_ascii_lowercase()) >= part.mark);
        }
    }

    #[test]
    fn an_address_is_a_mark_where_it_names_a_user() {
        for (text, mark) in [
            ("'mysql://u:p@h/d'", Mark::Secret),
            ("'mysql://u:p", Mark::Secret),
            ("'https://example.com/a:b'", Mark::None),
            ("'https://example.com/' '@'", Mark::None),
            ("'http://example.com:8080/a'", Mark::None),
            ("'mysql://u:se\"cret@h/d/t'", Mark::Secret),
            ("'mysql://u:p w@h/d/t'", Mark::Secret),
            ("'mysql://u:1''2@h/d/t'", Mark::Secret),
        ] {
            assert_eq!(strongest_mark(text.as_bytes()), mark, "{text}");
        }
    }
}
