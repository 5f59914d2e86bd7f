//! Patterns for names, as in the server's own options.

/// Whether a name matches a pattern in which `%` matches any characters. `_` is an ordinary
/// character, because most names contain it.
pub fn fits(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('%') else { return name == pattern };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('%').collect();
    let Some(last) = parts.pop() else { return true };
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_sign_stands_for_anything_and_nothing_else_does() {
        for (name, pattern) in [
            ("wait/io/file/sql/binlog", "wait/io/%"),
            ("wait/io/file", "%file"),
            ("wait/io/file", "w%/%e"),
            ("a", "%"),
            ("", "%"),
            ("", ""),
            ("ab", "a%b"),
            ("aXbXb", "a%b"),
        ] {
            assert!(fits(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in
            [("abc", "a%b"), ("a", "a%a"), ("ax", "a_"), ("wait", "wait/%"), ("x", "")]
        {
            assert!(!fits(name, pattern), "{name} {pattern}");
        }
    }
}
