//! The flame graph as whoever opens it reads it.

use std::fs;
use std::path::Path;

use roxmltree::{Document, Node};

/// A frame.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) class: String,
    /// Its name, what else is known, and how much it is.
    pub(crate) title: Vec<String>,
    pub(crate) x: f64,
    pub(crate) width: f64,
    pub(crate) y: f64,
}

/// All frames of a picture, each before those that are below it.
pub(crate) fn frames(path: &Path) -> Vec<Frame> {
    let picture = fs::read_to_string(path).unwrap();
    let document = Document::parse(&picture).unwrap();
    let with_class = |node: &Node<'_, '_>| node.attribute("class") == Some("frames");
    let all = document.descendants().find(with_class).unwrap();
    all.children().filter(Node::is_element).map(frame).collect()
}

fn frame(group: Node<'_, '_>) -> Frame {
    let of = |name: &str| group.children().find(|node| node.tag_name().name() == name).unwrap();
    let number = |name: &str| of("rect").attribute(name).unwrap().parse().unwrap();
    Frame {
        class: group.attribute("class").unwrap().to_owned(),
        title: of("title").text().unwrap().lines().map(str::to_owned).collect(),
        x: number("x"),
        width: number("width"),
        y: number("y"),
    }
}

/// Asserts that every frame lies below the one that called it and beside its neighbours, from the first row on.
pub(crate) fn fits_together(frames: &[Frame]) {
    /// Places are rounded.
    const NEARLY: f64 = 0.002;
    let mut open: Vec<&Frame> = Vec::new();
    for frame in frames {
        let left = open.iter().rfind(|one| one.y == frame.y);
        assert!(
            left.is_none_or(|left| left.x + left.width <= frame.x + NEARLY),
            "{left:?}: {frame:?}"
        );
        open.retain(|one| one.y < frame.y);
        if let Some(above) = open.last() {
            let end = above.x + above.width + NEARLY;
            assert!(
                above.x <= frame.x + NEARLY && frame.x + frame.width <= end,
                "{above:?}: {frame:?}"
            );
            assert!(frame.y - above.y < frames[1].y - frames[0].y + NEARLY, "{above:?}: {frame:?}");
        }
        open.push(frame);
    }
    assert!(frames.iter().all(|frame| frame.y >= frames[0].y && frame.width > 0.0));
    assert!(frames.iter().filter(|frame| frame.y == frames[0].y).count() == 1, "one is all");
}
