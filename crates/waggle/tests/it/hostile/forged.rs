//! Programs that look like servers, made byte by byte. Each only waits when it runs; what it says of itself is made for
//! who reads it.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program.
pub(crate) struct Forged {
    pub(crate) name: &'static str,
    /// What it exports.
    symbols: &'static [&'static str],
    /// Its list of symbols has no end.
    is_endless: bool,
    /// Bytes of its constants, most of which no disk holds.
    constants: u64,
}

/// `movl $34, %eax; syscall; jmp` to the start: pause(2).
const CODE: [u8; 9] = [0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7];
/// Where it is loaded.
const BASE: u64 = 0x40_0000;
const CONSTANTS: u64 = 1 << 40;

impl Forged {
    pub(crate) const ALL: [Forged; 3] = [
        // It says nothing.
        Forged { name: "silent", symbols: &[], is_endless: false, constants: 0 },
        Forged {
            name: "endless",
            symbols: &["thd_get_thread_ie", "current"],
            is_endless: true,
            constants: 0,
        },
        // Its version is looked for in all constants.
        Forged {
            name: "sparse",
            symbols: &["thd_get_thread_id", "THR_THD"],
            is_endless: false,
            constants: 1 << 43,
        },
    ];

    /// Writes it.
    pub(crate) fn write(&self, path: &Path) -> PathBuf {
        Forged::write_bytes(path, &self.bytes());
        if self.constants > 0 {
            // A file system takes a little less.
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(self.constants - (1 << 20)).unwrap();
        }
        path.to_owned()
    }

    /// Writes a program that everybody may run. Another process does: what another test starts meanwhile would inherit the
    /// file that is written, and the kernel runs none that somebody may write (ETXTBSY, execve(2)).
    pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) {
        let draft = path.with_extension("draft");
        fs::write(&draft, bytes).unwrap();
        assert!(Command::new("cp").arg(&draft).arg(path).status().unwrap().success());
        fs::remove_file(draft).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn bytes(&self) -> Vec<u8> {
        let headers = 3 + usize::from(self.constants > 0);
        let code_at = (64 + 56 * headers).next_multiple_of(16);
        let mut names = vec![0];
        let mut symbols = vec![0; 24];
        for name in self.symbols {
            let numbers = [BASE + code_at as u64, CODE.len() as u64];
            symbols.extend((names.len() as u32).to_le_bytes());
            // A global function of the first section.
            symbols.extend([0x12, 0, 1, 0]);
            symbols.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            names.extend([name.as_bytes(), &[0]].concat());
        }
        // One bucket; each symbol leads to the next (System V ABI, chapter 5).
        let count = self.symbols.len() as u32 + 1;
        let after_last = u32::from(self.is_endless);
        let next = (1..count).map(|at| if at + 1 < count { at + 1 } else { after_last });
        let hash = [1, count, u32::from(count > 1), 0].into_iter().chain(next);
        let hash: Vec<u8> = hash.flat_map(u32::to_le_bytes).collect();

        let mut file = vec![0; code_at];
        let mut put = |part: &[u8]| {
            file.resize(file.len().next_multiple_of(16), 0);
            let at = file.len() as u64;
            file.extend(part);
            at
        };
        let code_at = put(&CODE);
        let [symbols_at, names_at, hash_at] = [symbols, names, hash].map(|part| BASE + put(&part));
        // DT_HASH, DT_STRTAB, DT_SYMTAB, DT_NULL.
        let dynamic: Vec<u64> = vec![4, hash_at, 5, names_at, 6, symbols_at, 0, 0];
        let dynamic: Vec<u8> = dynamic.into_iter().flat_map(u64::to_le_bytes).collect();
        let dynamic_at = put(&dynamic);
        let length = file.len() as u64;

        let mut start = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        start.extend([2_u16, 62].map(u16::to_le_bytes).concat());
        start.extend(1_u32.to_le_bytes());
        start.extend([BASE + code_at, 64, 0].map(u64::to_le_bytes).concat());
        start.extend(0_u32.to_le_bytes());
        start.extend([64, 56, headers as u16, 0, 0, 0].map(u16::to_le_bytes).concat());
        // Type, flags, offset, address, size, alignment: PT_LOAD, PT_DYNAMIC, PT_GNU_STACK.
        let mut parts = vec![
            (1_u32, 5_u32, 0, BASE, length, 0x1000),
            (2, 4, dynamic_at, BASE + dynamic_at, dynamic.len() as u64, 8),
            (0x6474_e551, 6, 0, 0, 0, 16),
        ];
        if self.constants > 0 {
            parts.push((1, 4, 0, CONSTANTS, self.constants, 0x1000));
        }
        for (kind, flags, offset, address, size, align) in parts {
            start.extend([kind, flags].map(u32::to_le_bytes).concat());
            let numbers = [offset, address, address, size, size, align];
            start.extend(numbers.map(u64::to_le_bytes).concat());
        }
        file[..start.len()].copy_from_slice(&start);
        file
    }
}
