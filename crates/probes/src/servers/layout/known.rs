//! Builds that we checked by hand: we compared their fields with what the server said.
//!
//! They confirm a decoded layout and never replace it. An unknown build works as well as a known
//! one.

use super::{CurrentThd, Field, Layout};

/// What the list of known builds says of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The build is not in the list.
    Unlisted,
    /// Every field is where a person found it.
    Confirmed,
    /// These (fields by their name, or `current_thd`) were decoded differently from what a person
    /// found: report it.
    Contradicted(Vec<&'static str>),
}

struct Known {
    build: &'static str,
    current_thd: CurrentThd,
    /// In the order of [`Field::ALL`].
    offsets: [u32; Field::ALL.len()],
}

const KNOWN: &[Known] = &[
    // MySQL 5.7.22, Oracle, Linux x86-64 generic.
    Known {
        build: "6937b2d474ad4cf841db252edbfd9c28c0a1b37f",
        current_thd: CurrentThd::PthreadKey { key_address: 0x1e4_b20c },
        offsets: [
            0x1d8, 0x1e0, 0x218, 0x220, 0x1ec0, 0x1ec8, 0x12b8, 0x12f8, 0x1300, 0x1bb8, 0x1bc0,
            0x1050, 0x398, 0x5a8, 0x1f34, 0x3498, 0x1048, 0x90, 0x94, 0x2a8, 0x2a0, 0x0, 0x20,
            0x40,
        ],
    },
    // MySQL 8.0.12, Oracle, Linux x86-64 generic.
    Known {
        build: "dynsym-e9342f43c2445db1-49943480",
        current_thd: CurrentThd::ThreadLocal { offset: -0xc8 },
        offsets: [
            0x218, 0x220, 0x258, 0x260, 0x1fe0, 0x1fe8, 0x13e8, 0x1420, 0x1428, 0x1cf0, 0x1cf8,
            0x11b0, 0x410, 0x600, 0x2054, 0x2b88, 0x1190, 0x88, 0x8c, 0x2a0, 0x298, 0x0, 0x20,
            0x40,
        ],
    },
    // MySQL 9.7.4, Debian sid.
    Known {
        build: "cc8a18826385d7182761a4a8f41044748267244d",
        current_thd: CurrentThd::ThreadLocal { offset: -0x1d8 },
        offsets: [
            0x510, 0x518, 0x558, 0x560, 0x25d0, 0x25d8, 0x19b4, 0x19f0, 0x19f8, 0x22a0, 0x22a8,
            0x1878, 0x758, 0x970, 0x2634, 0x33a0, 0x1800, 0x88, 0x8c, 0x2a0, 0x29c, 0x0, 0x20,
            0x40,
        ],
    },
    // MariaDB 10.11.19, Debian 12.
    Known {
        build: "439da8d94412de2c7eb3e2c5554bc0f31f438dc3",
        current_thd: CurrentThd::ThreadLocal { offset: -0x68 },
        offsets: [
            0x68, 0x70, 0xa0, 0xa8, 0x3f18, 0x3f34, 0x27d8, 0x2810, 0x2818, 0x3b98, 0x3ba0, 0x2600,
            0x898, 0xb98, 0x3f9c, 0x62e0, 0x25f8, 0x18, 0x234, 0x220, 0x8, 0x8, 0x0, 0x10,
        ],
    },
    // MariaDB 11.4.5, MariaDB plc, Linux x86-64 systemd.
    Known {
        build: "df9ed6c416aa0cd2e07169c3b5e3cf1bf966c72c",
        current_thd: CurrentThd::ThreadLocal { offset: -0x90 },
        offsets: [
            0x68, 0x70, 0xa0, 0xa8, 0x3fb0, 0x3fcc, 0x2860, 0x2898, 0x28a0, 0x3c20, 0x3c30, 0x2688,
            0x890, 0xbf8, 0x4034, 0x6288, 0x2680, 0x18, 0x234, 0x220, 0x8, 0x8, 0x0, 0x10,
        ],
    },
    // MariaDB 11.8.9, Debian sid.
    Known {
        build: "e1821821a892eac33ee9f1fdbd865b01195881aa",
        current_thd: CurrentThd::ThreadLocal { offset: -0xb8 },
        offsets: [
            0x68, 0x70, 0xa0, 0xa8, 0x4058, 0x4074, 0x2900, 0x2938, 0x2940, 0x3cc0, 0x3cd0, 0x2728,
            0x8a0, 0xc28, 0x40dc, 0x63d0, 0x2720, 0x18, 0x234, 0x220, 0x8, 0x8, 0x0, 0x10,
        ],
    },
];

impl Layout {
    /// Whether a person confirmed this build.
    pub fn confirmation(&self) -> Confirmation {
        let Some(known) = KNOWN.iter().find(|known| known.build == self.build.0) else {
            return Confirmation::Unlisted;
        };
        let differs = |(field, offset): &(Field, u32)| {
            self.offset(*field).is_some_and(|decoded| decoded != *offset)
        };
        let fields = Field::ALL.into_iter().zip(known.offsets).filter(differs);
        let mut different: Vec<_> = fields.map(|(field, _)| field.name()).collect();
        if self.current_thd.value().is_some_and(|decoded| *decoded != known.current_thd) {
            different.push("current_thd");
        }
        if different.is_empty() {
            Confirmation::Confirmed
        } else {
            Confirmation::Contradicted(different)
        }
    }
}
