//! How frames look: colours on light and on dark ground. Where functions are in the kernel, in libraries or have no name, is
//! seen without reading; the classes of waits have the colours that they have everywhere in waggle.

use waggle_model::TimeClass;
use waggle_profile::Kind;

/// What a frame is filled with, and what is written on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    pub(super) fill: &'static str,
    pub(super) ink: &'static str,
}

/// A class of the style sheet: how it looks on light and on dark ground.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) class: &'static str,
    pub(super) light: Paint,
    pub(super) dark: Paint,
}

pub(super) const DARK_INK: &str = "#14181f";
pub(super) const LIGHT_INK: &str = "#f4f6f9";

const fn look(
    class: &'static str,
    light: (&'static str, &'static str),
    dark: (&'static str, &'static str),
) -> Look {
    let light = Paint { fill: light.0, ink: light.1 };
    Look { class, light, dark: Paint { fill: dark.0, ink: dark.1 } }
}

/// Every class. Families of functions have three shades, so that frames beside each other are told apart.
pub(super) const LOOKS: [Look; 26] = [
    look("all", ("#dfe4ea", DARK_INK), ("#2b343e", LIGHT_INK)),
    look("server", ("#c9cfd8", DARK_INK), ("#3b4550", LIGHT_INK)),
    look("digest", ("#324359", LIGHT_INK), ("#c5d1df", DARK_INK)),
    look("thread", ("#5b6b82", LIGHT_INK), ("#9fafc4", DARK_INK)),
    look("unmatched", ("#b4c0d0", DARK_INK), ("#55657a", LIGHT_INK)),
    look("gap", ("#eef1f4", DARK_INK), ("#20272f", LIGHT_INK)),
    look("p0", ("#b5d2ef", DARK_INK), ("#2a4d70", LIGHT_INK)),
    look("p1", ("#c6ddf4", DARK_INK), ("#31587f", LIGHT_INK)),
    look("p2", ("#a5c7e9", DARK_INK), ("#244363", LIGHT_INK)),
    look("l0", ("#b2dfcb", DARK_INK), ("#1e5948", LIGHT_INK)),
    look("l1", ("#c4e8d8", DARK_INK), ("#246855", LIGHT_INK)),
    look("l2", ("#a0d4bd", DARK_INK), ("#184c3d", LIGHT_INK)),
    look("k0", ("#f2c79c", DARK_INK), ("#74481e", LIGHT_INK)),
    look("k1", ("#f6d5b3", DARK_INK), ("#835324", LIGHT_INK)),
    look("k2", ("#ecba88", DARK_INK), ("#643d18", LIGHT_INK)),
    look("n0", ("#dde2e9", DARK_INK), ("#38414c", LIGHT_INK)),
    look("n1", ("#e7ebf0", DARK_INK), ("#424d59", LIGHT_INK)),
    look("n2", ("#d2d9e1", DARK_INK), ("#2f3740", LIGHT_INK)),
    look("cpu", ("#0c7251", LIGHT_INK), ("#1f7f1f", "#ffffff")),
    look("queue", ("#b38d10", "#000000"), ("#f7da59", DARK_INK)),
    look("disk", ("#0e2fad", LIGHT_INK), ("#2288ff", "#000000")),
    look("commit", ("#009fcf", "#000000"), ("#81d6da", DARK_INK)),
    look("network", ("#7842d9", "#ffffff"), ("#8761bd", "#ffffff")),
    look("row-lock", ("#c61211", "#ffffff"), ("#fd834c", DARK_INK)),
    look("meta-lock", ("#72104d", LIGHT_INK), ("#b53b7f", "#ffffff")),
    look("rest", ("#82858a", "#000000"), ("#9da2aa", DARK_INK)),
];

/// The class of a frame. The shade of a function comes from its name: it is the same everywhere.
pub(super) fn class(kind: Kind, name: &str) -> &'static str {
    let shade = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte)) % 3;
    let of = |shades: [&'static str; 3]| shades.get(shade as usize).copied().unwrap_or(shades[0]);
    match kind {
        Kind::All => "all",
        Kind::Server => "server",
        Kind::Digest => "digest",
        Kind::Thread => "thread",
        Kind::Unmatched => "unmatched",
        Kind::Gap => "gap",
        Kind::Program => of(["p0", "p1", "p2"]),
        Kind::Library => of(["l0", "l1", "l2"]),
        Kind::Kernel => of(["k0", "k1", "k2"]),
        Kind::Nameless => of(["n0", "n1", "n2"]),
        Kind::Wait(class) => of_wait(class),
    }
}

/// Classes of waits share the colours of eight groups, as on the page and in the terminal.
fn of_wait(class: TimeClass) -> &'static str {
    match class {
        TimeClass::Cpu => "cpu",
        TimeClass::RunQueue | TimeClass::Stopped => "queue",
        TimeClass::DiskRead | TimeClass::DiskWrite => "disk",
        TimeClass::Sync | TimeClass::Commit | TimeClass::Parked => "commit",
        TimeClass::NetworkRead | TimeClass::NetworkWrite => "network",
        TimeClass::RowLock => "row-lock",
        TimeClass::MetadataLock | TimeClass::TableLock | TimeClass::UserLock => "meta-lock",
        TimeClass::Sleep
        | TimeClass::InnodbTicket
        | TimeClass::Latch
        | TimeClass::Other
        | TimeClass::BeforeAttach => "rest",
    }
}

/// The rest of the page, of light and of dark ground: ground, ink, ink of what is less important, lines of a hatch.
const GROUNDS: [[&str; 4]; 2] =
    [["#f5f6f8", "#14181f", "#505a68", "#c9cfd8"], ["#0d1013", "#e9edf2", "#a0aab7", "#3b4550"]];

/// The style sheet: what is the same on any ground, then light, then dark where the reader prefers it.
pub(super) fn style_sheet() -> String {
    let rules = |[ground, ink, less, hatch]: [&str; 4], paint: fn(&Look) -> Paint| {
        let mut rules = format!(
            "svg{{background:{ground}}}.ground,.hatch0{{fill:{ground}}}.hatch1{{fill:{hatch}}}\
             text{{fill:{ink}}}.line,.told{{fill:{less}}}\
             .frames rect{{stroke:{ground}}}.frames g:hover rect{{stroke:{ink}}}\
             input{{background:{ground};color:{ink};border-color:{hatch}}}\n"
        );
        for look in &LOOKS {
            let (class, Paint { fill, ink }) = (look.class, paint(look));
            // What is hatched lets its ground be seen.
            let fill = if class == "gap" { "url(#hatch)" } else { fill };
            rules += &format!(".{class} rect{{fill:{fill}}}.{class} text{{fill:{ink}}}\n");
        }
        rules
    };
    let light = rules(GROUNDS[0], |look| look.light);
    let dark = rules(GROUNDS[1], |look| look.dark);
    let always = include_str!("flame.css");
    format!("{always}{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        let of = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
        let linear = [1, 3, 5].map(|at| match f64::from(of(at)) / 255.0 {
            low if low <= 0.04045 => low / 12.92,
            high => ((high + 0.055) / 1.055_f64).powf(2.4),
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn what_is_written_stands_out_from_what_is_below_it() {
        for look in &LOOKS {
            for Paint { fill, ink } in [look.light, look.dark] {
                let contrast = contrast(fill, ink);
                assert!(contrast >= 4.5, "{}: {fill} {ink}: {contrast:.1}", look.class);
            }
        }
        for [ground, ink, less, _] in GROUNDS {
            assert!(contrast(ground, ink) >= 7.0 && contrast(ground, less) >= 4.5, "{ground}");
        }
    }

    #[test]
    fn every_kind_has_a_look() {
        let kinds =
            [Kind::All, Kind::Server, Kind::Digest, Kind::Thread, Kind::Unmatched, Kind::Gap];
        let functions = [Kind::Program, Kind::Library, Kind::Kernel, Kind::Nameless];
        let waits = TimeClass::ALL.map(Kind::Wait);
        for kind in kinds.iter().chain(&functions).chain(&waits) {
            for name in ["", "a", "b", "c", "do_command(THD*)"] {
                let class = class(*kind, name);
                let has = |look: &Look| look.class == class;
                assert!(LOOKS.iter().any(has), "{kind:?}: {class}");
            }
        }
    }
}
