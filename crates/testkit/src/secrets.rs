//! Statements that hold a secret, in every form in which one is written: `secrets.txt`.

/// The secret of every statement; nothing else has five of these letters in a row.
pub const SECRET: &str = "kV7qWz3xPd";
/// As much of it is a secret as well; less may be chance.
const PART: usize = 5;

const LIST: &str = include_str!("secrets.txt");
const WRITTEN_IN_EVERY_WAY: &str = "[written in every way]";
const AS_THEY_STAND: &str = "[as they stand]";
const TOLD_BEHIND: &str = "[told by a word behind the secret]";

/// Those of which every word may be written in every way: the words are one blank apart. `$` is a literal that
/// holds the secret, `§` the secret inside of one, and accounts in braces have to stay.
pub fn templates() -> impl Iterator<Item = &'static str> {
    part(WRITTEN_IN_EVERY_WAY)
}

/// All of them, each in one way.
pub fn statements() -> Vec<String> {
    told_before().into_iter().chain(told_behind()).collect()
}

/// Those in which a word before the secret tells that it is one, so that it is hidden wherever the text is cut.
pub fn told_before() -> Vec<String> {
    let plain = |one: &str| {
        let one = one.replace(['{', '}'], "").replace(" ( ", "(").replace(" )", ")");
        with_secret(&one.replace('$', "'§'"))
    };
    templates().map(plain).chain(part(AS_THEY_STAND).map(with_secret)).collect()
}

/// Those in which only a word behind the secret does.
pub fn told_behind() -> Vec<String> {
    part(TOLD_BEHIND).map(with_secret).collect()
}

fn with_secret(one: &str) -> String {
    one.replace('§', SECRET).replace('¤', &in_hexadecimal(SECRET)).replace('␤', "\n")
}

/// Where a text shows the secret, a part of it, or its bytes: what stands around that.
pub fn shown(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let secret = SECRET.to_ascii_lowercase();
    let hex = in_hexadecimal(SECRET).to_ascii_lowercase();
    let bytes = (0..=secret.len() - PART).map(|at| &secret[at..at + PART]);
    let at = bytes.chain([&hex[..2 * PART]]).find_map(|part| lower.find(part))?;
    let from = text.floor_char_boundary(at.saturating_sub(200));
    let to = text.floor_char_boundary(text.len().min(at + 60));
    Some(text[from..to].to_owned())
}

fn in_hexadecimal(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}

fn part(head: &'static str) -> impl Iterator<Item = &'static str> {
    let begin = LIST.lines().skip_while(move |line| *line != head).skip(1);
    let lines = begin.take_while(|line| !line.starts_with('['));
    lines.filter(|line| !line.is_empty() && !line.starts_with("# ") || line.contains('␤'))
}
