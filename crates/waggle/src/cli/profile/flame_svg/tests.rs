use std::sync::Arc;

use waggle_model::{DigestKey, DigestName};
use waggle_profile::{Function, Owner, Profile, Stack, Work};

use super::*;

/// What ends an element, an attribute, a comment or a block of the picture, or the look of a terminal.
const EVIL: &str = "</text></title><script>alert(1)</script>]]>\"' onload='x' &amp;<!-- \u{1b}[2J\u{0}\
                    \u{9b}\u{202e}\u{2066}\u{fffe}\u{ffff}\r\n";

fn function(name: &str, file: &str) -> Function {
    Function { name: name.into(), file: file.into(), is_named: true, is_kernel: false }
}

/// A profile of one digest and of a thread whose names are these.
fn profile(name: &str) -> Profile {
    let key = DigestKey { text: 0x31_849a_d4e9_d06d, schema: 0 };
    let digest = Arc::new(DigestName { text: name.into(), schema: None, cut: false });
    let owners = vec![
        Owner { pid: 1, work: Work::Digest { key, name: Some(digest) } },
        Owner { pid: 1, work: Work::Thread(name.into()) },
    ];
    let functions = vec![function("main", "mysqld"), function(name, name)];
    let stack = |owner, functions: &[usize], count| Stack {
        owner,
        functions: functions.to_vec(),
        chain: Chain::Broken,
        count,
    };
    let stacks = vec![stack(0, &[0, 1], 600), stack(1, &[0, 1], 400), stack(1, &[1], 1)];
    Profile { owners, functions, stacks, ..Profile::default() }
}

fn picture(profile: &Profile) -> String {
    let lines = [EVIL.to_owned(), "callers unknown".to_owned()];
    let head = Head { title: "waggle profile: processor time", lines };
    drawn(&Flame::of(profile, NARROWEST), profile.counts, &head)
}

/// The elements of a picture by their names, sorted, each once.
fn elements(document: &roxmltree::Document<'_>) -> Vec<String> {
    let elements = document.descendants().filter(|node| node.is_element());
    let mut names: Vec<String> = elements.map(|node| node.tag_name().name().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn no_name_breaks_out_of_its_place_in_the_picture() {
    let picture = picture(&profile(EVIL));
    let harmless = self::picture(&profile("harmless"));
    let document = roxmltree::Document::parse(&picture).unwrap();
    let plain = roxmltree::Document::parse(&harmless).unwrap();
    assert_eq!(elements(&document), elements(&plain));
    let count = |document: &roxmltree::Document<'_>, name: &str| {
        document
            .descendants()
            .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name)))
            .count()
    };
    for name in ["script", "title", "g", "rect"] {
        assert_eq!(count(&document, name), count(&plain, name), "{name}");
    }
    for node in document.descendants() {
        for attribute in node.attributes() {
            let known = [
                "class",
                "data-cell",
                "data-label",
                "data-left",
                "data-width",
                "height",
                "id",
                "width",
                "x",
                "y",
            ];
            let more = ["patternTransform", "patternUnits", "rx", "space", "viewBox"];
            let is_known = known.contains(&attribute.name()) || more.contains(&attribute.name());
            assert!(is_known, "{}", attribute.name());
        }
    }
    // Nothing that is not seen or turns what stands beside it, as characters or as what stands for them.
    let is_shown = |c: char| c == '\n' || waggle_model::visible::visible(c) == c && c < '\u{fffe}';
    assert!(picture.chars().all(is_shown), "{picture}");
    let texts = document.descendants().filter_map(|node| node.text());
    assert!(texts.flat_map(str::chars).all(is_shown), "{picture}");
    // And it is told as it is.
    let titles: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title")))
        .filter_map(|node| node.text())
        .collect();
    let told = "</text></title><script>alert(1)</script>]]>\"' onload='x' &amp;<!-- \u{fffd}[2J";
    assert!(titles.iter().filter(|title| title.starts_with(told)).count() >= 4, "{titles:?}");
}

#[test]
fn the_script_and_the_style_sheet_do_not_end_their_blocks() {
    assert!(!SCRIPT.contains("]]>") && !look::style_sheet().contains("]]>"));
    assert!(SCRIPT.lines().count() < 120);
    // It works from what is in the file.
    for word in ["fetch(", "XMLHttpRequest", "import", "eval", "innerHTML", "localStorage", "src="]
    {
        assert!(!SCRIPT.contains(word), "{word}");
    }
}

#[test]
fn a_frame_says_what_it_is_and_how_wide() {
    let picture = picture(&profile("SELECT `a` FROM `t`"));
    let document = roxmltree::Document::parse(&picture).unwrap();
    let frames = document.descendants().find(|node| node.attribute("class") == Some("frames"));
    let of = |name: &str| {
        let is_it = |node: &roxmltree::Node<'_, '_>| {
            node.first_element_child()
                .and_then(|title| title.text())
                .is_some_and(|title| title.starts_with(name))
        };
        let frame =
            frames.unwrap().children().filter(roxmltree::Node::is_element).find(is_it).unwrap();
        let rect = frame
            .children()
            .find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "rect")))
            .unwrap();
        let number = |name: &str| rect.attribute(name).unwrap().parse::<f64>().unwrap();
        (frame, number("x"), number("width"), number("y"))
    };
    let (root, x, width, y) = of("all");
    assert_eq!((x, width), (MARGIN, WHOLE));
    let top = y;
    assert_eq!(root.first_element_child().unwrap().text(), Some("all\n1001 samples, 100.0 %"));
    let (digest, x, width, y) = of("SELECT `a` FROM `t`\ndigest 0031849ad4e9d06d");
    // The thread has the same name, and no id behind it.
    assert!((x - MARGIN - WHOLE * 401.0 / 1001.0).abs() < 0.001, "{x}");
    assert_eq!(y, top + ROW);
    assert!((width - WHOLE * 600.0 / 1001.0).abs() < 0.001, "{width}");
    assert_eq!(digest.attribute("class"), Some("digest"));
    assert!(
        digest.children().any(|node| node.text() == Some("SELECT `a` FROM `t`   0031849ad4e9d06d"))
    );
    assert!(root.children().any(|node| node.text() == Some("all   1001 samples")));
    // One sample of 1001 is too narrow.
    assert!(picture.contains("1 frame narrower than 0.1 % not shown"), "{picture}");
}

#[test]
fn a_profile_without_samples_is_a_picture_that_says_so() {
    let picture = picture(&Profile::default());
    let document = roxmltree::Document::parse(&picture).unwrap();
    let told = document.descendants().find(|node| node.attribute("class") == Some("told")).unwrap();
    assert_eq!(told.text(), Some("There are no samples."));
    assert!(!picture.contains("not shown"));
}

#[test]
fn texts_are_as_short_as_their_place() {
    assert_eq!(fitted("do_command", 10), "do_command");
    assert_eq!(fitted("do_command", 9), "do_comma…");
    assert_eq!(fitted("do_command", 2), "");
    assert_eq!(fitted("数据库", 6), "数据库");
    assert_eq!(fitted("数据库", 5), "数据…");
    for (name, short) in [
        ("JOIN::exec()", "JOIN::exec"),
        ("(anonymous namespace)::run(int (*)(int))", "(anonymous namespace)::run"),
        ("std::less<int>::operator()(int, int) const", "std::less<int>::operator()"),
        ("main", "main"),
        ("(", "("),
    ] {
        assert_eq!(words::without_arguments(name), short);
    }
}

#[test]
fn amounts_have_three_figures() {
    let time = |us| amount(us, Counts::Waits);
    assert_eq!(
        [time(7), time(999), time(1000), time(48_900)],
        ["7 µs", "999 µs", "1.00 ms", "48.9 ms"]
    );
    assert_eq!([time(123_400), time(12_340_000), time(1 << 30)], ["123 ms", "12.3 s", "1074 s"]);
    assert_eq!([amount(1, Counts::Ticks), amount(2, Counts::Ticks)], ["1 sample", "2 samples"]);
}
