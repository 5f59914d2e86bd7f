//! Elements of HTML and of SVG. What is written is well formed, and every text in it is escaped.

use std::fmt::{self, Display, Formatter, Write as _};

use waggle_model::visible::visible;

/// Elements of HTML that hold nothing and have no end.
const WITHOUT_END: [&str; 3] = ["br", "col", "meta"];

/// An element with its attributes and what is inside it.
#[derive(Clone, Debug)]
pub(super) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    inside: Vec<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    Element(Element),
    Text(String),
    /// Rules of style, which are our own and stand as they are.
    Style(&'static str),
}

impl Element {
    pub(super) fn new(name: &'static str) -> Element {
        Element { name, attributes: Vec::new(), inside: Vec::new() }
    }

    /// A `style` with rules of ours.
    pub(super) fn style(rules: &'static str) -> Element {
        Element { inside: vec![Node::Style(rules)], ..Element::new("style") }
    }

    pub(super) fn with(mut self, attribute: &'static str, value: impl Display) -> Element {
        self.attributes.push((attribute, value.to_string()));
        self
    }

    /// An attribute in pixels, to a tenth.
    pub(super) fn at(self, attribute: &'static str, pixels: f64) -> Element {
        self.with(attribute, Pixels(pixels))
    }

    pub(super) fn class(self, class: impl Display) -> Element {
        self.with("class", class)
    }

    pub(super) fn text(mut self, text: impl Into<String>) -> Element {
        self.inside.push(Node::Text(text.into()));
        self
    }

    /// What is shown while the pointer rests on it.
    pub(super) fn tip(self, text: impl Into<String>) -> Element {
        self.add(Element::new("title").text(text))
    }

    pub(super) fn add(mut self, element: Element) -> Element {
        self.inside.push(Node::Element(element));
        self
    }

    pub(super) fn all(mut self, elements: impl IntoIterator<Item = Element>) -> Element {
        self.inside.extend(elements.into_iter().map(Node::Element));
        self
    }
}

impl Display for Element {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "<{}", self.name)?;
        for (name, value) in &self.attributes {
            write!(to, " {name}=\"{}\"", Escaped(value))?;
        }
        if WITHOUT_END.contains(&self.name) {
            return to.write_str(" />");
        }
        to.write_char('>')?;
        for node in &self.inside {
            match node {
                Node::Element(element) => element.fmt(to)?,
                Node::Text(text) => Escaped(text).fmt(to)?,
                Node::Style(rules) => to.write_str(rules)?,
            }
        }
        write!(to, "</{}>", self.name)
    }
}

/// A length in pixels, to a tenth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pixels(pub(super) f64);

impl Display for Pixels {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        // A scale never gives one that is not finite; no file may hold one if it did.
        let tenths = if self.0.is_finite() { (self.0 * 10.0).round() / 10.0 } else { 0.0 };
        // Not the zero with a sign.
        write!(to, "{}", tenths + 0.0)
    }
}

/// A text as it may stand between tags and in quotes, without characters that XML does not allow.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => to.write_str("&amp;"),
            '<' => to.write_str("&lt;"),
            '>' => to.write_str("&gt;"),
            '"' => to.write_str("&quot;"),
            '\'' => to.write_str("&#39;"),
            '\n' | '\t' => to.write_char(c),
            c => to.write_char(visible(c)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_outside_cannot_end_its_element_or_its_attribute() {
        let hostile = "</td><script>alert('x')</script> \" onload=\"y & \u{0}";
        let element = Element::new("td").with("title", hostile).text(hostile);
        let escaped = "&lt;/td&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &quot; \
                       onload=&quot;y &amp; \u{fffd}";
        assert_eq!(element.to_string(), format!("<td title=\"{escaped}\">{escaped}</td>"));
    }

    #[test]
    fn an_element_without_end_is_closed_and_an_empty_one_has_an_end() {
        let meta = Element::new("meta").with("charset", "utf-8");
        assert_eq!(meta.to_string(), "<meta charset=\"utf-8\" />");
        assert_eq!(Element::new("td").to_string(), "<td></td>");
    }

    #[test]
    fn a_length_has_one_digit_and_is_always_a_number() {
        let lengths = [1.25, 3.0, -0.01, f64::NAN, f64::INFINITY];
        assert_eq!(lengths.map(|it| Pixels(it).to_string()), ["1.3", "3", "0", "0", "0"]);
    }
}
