//! How the caller of a place in the code is found: the call frame information of `.eh_frame`.
//!
//! Formats: DWARF 4, section 6.4, and Linux Standard Base 5.0, chapter 10.6 (`.eh_frame_hdr`). Only what is asked of it is
//! read: the stack pointer of the caller, and where the frame pointer is saved.

use std::ops::Range;

use super::Elf;

/// Functions of a file; the largest server has 130,000.
const FUNCTIONS_MAX: u32 = 1_000_000;
/// Bytes of the description of one function, and of what several have in common.
const ENTRY_MAX: u32 = 1 << 16;
/// What a function may remember at once.
const STATES_MAX: usize = 16;

// `DW_EH_PE_…`: how `.eh_frame` and its table write addresses.
const RELATIVE_TO_PLACE_4: u8 = 0x1b;
const RELATIVE_TO_TABLE_4: u8 = 0x3b;
const UNSIGNED_4: u8 = 0x03;

/// The numbers of the registers of x86-64 in this information.
const FRAME_POINTER: u64 = 6;
const STACK_POINTER: u64 = 7;

/// How the frame of a caller is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::servers) struct Frame {
    /// Whether the offset counts from the frame pointer.
    pub(in crate::servers) from_frame_pointer: bool,
    /// To the stack pointer of the caller, bytes. Its return address stands right below.
    pub(in crate::servers) offset: u64,
    /// From there down to the saved frame pointer, bytes; `None` where the function has not touched it.
    pub(in crate::servers) saved: Option<u64>,
}

/// The functions of a file.
pub(in crate::servers) struct Unwind<'a> {
    elf: &'a Elf,
    /// Begin and description, sorted.
    table: Vec<(u64, u64)>,
}

impl<'a> Unwind<'a> {
    /// Reads the table of a file.
    ///
    /// # Errors
    ///
    /// In words, if the file has none, or one of an unknown kind.
    pub(in crate::servers) fn of(elf: &'a Elf) -> Result<Unwind<'a>, String> {
        let name = elf.name();
        let at = elf.frames.ok_or_else(|| format!("{name} has no .eh_frame_hdr"))?;
        let head = elf.bytes(at, 12).filter(|head| head.len() == 12);
        let head = head.ok_or_else(|| format!("{name}: .eh_frame_hdr is cut short"))?;
        if head[..4] != [1, RELATIVE_TO_PLACE_4, UNSIGNED_4, RELATIVE_TO_TABLE_4] {
            return Err(format!("{name}: .eh_frame_hdr is of an unknown kind"));
        }
        let count = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let bytes = (count <= FUNCTIONS_MAX).then_some(count as usize * 8);
        let table = bytes.and_then(|length| elf.bytes(at.checked_add(12)?, length));
        let table = table.filter(|table| table.len() == count as usize * 8);
        let table = table.ok_or_else(|| format!("{name}: .eh_frame_hdr is damaged"))?;
        let address = |word: &[u8]| {
            let distance = i32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            at.wrapping_add_signed(distance.into())
        };
        let mut table: Vec<(u64, u64)> =
            table.chunks_exact(8).map(|row| (address(&row[..4]), address(&row[4..]))).collect();
        table.sort_unstable();
        if table.is_empty() {
            return Err(format!("{name} describes no function"));
        }
        Ok(Unwind { elf, table })
    }

    /// The begins of all functions.
    pub(in crate::servers) fn begins(&self) -> impl Iterator<Item = u64> {
        self.table.iter().map(|(begin, _)| *begin)
    }

    /// The function around an address.
    pub(in crate::servers) fn function(&self, address: u64) -> Option<Range<u64>> {
        let next = self.table.partition_point(|(begin, _)| *begin <= address);
        let (begin, at) = *self.table.get(next.checked_sub(1)?)?;
        let length = Description::read(self.elf, at)?.length;
        let range = begin..begin.checked_add(length)?;
        range.contains(&address).then_some(range)
    }

    /// How the caller is found in a function that begins here, from each address on; `None` where nothing says it. The last
    /// address is the end of the function.
    pub(in crate::servers) fn rows(&self, begin: u64) -> Option<Vec<(u64, Option<Frame>)>> {
        let index = self.table.binary_search_by_key(&begin, |(begin, _)| *begin).ok()?;
        let description = Description::read(self.elf, self.table[index].1)?;
        let mut rows = description.rows(begin)?;
        rows.push((begin.checked_add(description.length)?, None));
        Some(rows)
    }
}

/// What is said of one function.
struct Description {
    length: u64,
    code_factor: u64,
    data_factor: i64,
    /// What holds at the begin of every function, then what changes in this one.
    programs: [Vec<u8>; 2],
}

impl Description {
    fn read(elf: &Elf, at: u64) -> Option<Description> {
        let own = entry(elf, at)?;
        // The distance to what it has in common with others counts from its own place.
        let distance = u32::from_le_bytes(own.get(..4)?.try_into().ok()?);
        let common = entry(elf, at.checked_add(4)?.checked_sub(distance.into())?)?;
        let mut common = Bytes(common.get(4..)?);
        let version = common.byte()?;
        let augmentation = common.text()?;
        let code_factor = common.number()?;
        let data_factor = common.signed()?;
        let _return_address = if version == 1 { common.byte()?.into() } else { common.number()? };
        let mut has_size = false;
        for letter in augmentation {
            match letter {
                b'z' => has_size = common.number().map(|_| true)?,
                b'R' if common.byte()? != RELATIVE_TO_PLACE_4 => return None,
                b'R' | b'S' | b'B' => {}
                b'L' => drop(common.byte()?),
                b'P' => match common.byte()? & 0x0f {
                    0x03 | 0x0b => drop(common.take(4)?),
                    _ => drop(common.take(8)?),
                },
                _ => return None,
            }
        }
        let mut own = Bytes(own.get(8..)?);
        let length = u32::from_le_bytes(own.take(4)?.try_into().ok()?).into();
        if has_size {
            let size = own.number()?;
            own.take(usize::try_from(size).ok()?)?;
        }
        let programs = [common.0.to_vec(), own.0.to_vec()];
        Some(Description { length, code_factor, data_factor, programs })
    }

    fn rows(&self, begin: u64) -> Option<Vec<(u64, Option<Frame>)>> {
        let mut machine = Machine { at: begin, ..Machine::default() };
        machine.run(&self.programs[0], self)?;
        machine.initial = machine.state;
        machine.rows.clear();
        machine.run(&self.programs[1], self)?;
        machine.finish_row();
        Some(machine.rows)
    }
}

/// The bytes of an entry behind its length.
fn entry(elf: &Elf, at: u64) -> Option<Vec<u8>> {
    let length = elf.u32_at(at)?;
    let bytes = elf.bytes(at.checked_add(4)?, length.min(ENTRY_MAX) as usize)?;
    (bytes.len() == length as usize).then_some(bytes)
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(length)?;
        self.byte()?;
        Some(text)
    }

    /// LEB128 without a sign, as far as 64 bits go.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// LEB128 with a sign.
    fn signed(&mut self) -> Option<i64> {
        let mut value = 0_i64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let unused = 64 - (shift + 7).min(64);
                return Some(value << unused >> unused);
            }
        }
        None
    }
}

/// Where the frame of the caller is, while the description of a function is followed.
#[derive(Clone, Copy, Default)]
struct State {
    register: u64,
    offset: i64,
    /// Where the frame pointer is saved, from the frame of the caller.
    saved: Option<i64>,
    is_lost: bool,
}

#[derive(Default)]
struct Machine {
    at: u64,
    state: State,
    initial: State,
    remembered: Vec<State>,
    rows: Vec<(u64, Option<Frame>)>,
}

impl Machine {
    fn run(&mut self, program: &[u8], of: &Description) -> Option<()> {
        let mut program = Bytes(program);
        while let Some(code) = program.byte() {
            let low = u64::from(code & 0x3f);
            match code >> 6 {
                1 => self.advance(low, of)?,
                2 => {
                    let offset = program.number()?;
                    self.save(low, i64::try_from(offset).ok()?.checked_mul(of.data_factor)?);
                }
                3 => self.restore(low),
                _ => self.step(code, &mut program, of)?,
            }
        }
        Some(())
    }

    fn step(&mut self, code: u8, program: &mut Bytes<'_>, of: &Description) -> Option<()> {
        match code {
            0x00 => {}
            0x02 => self.advance(program.byte()?.into(), of)?,
            0x03 => {
                let bytes = program.take(2)?;
                self.advance(u16::from_le_bytes([bytes[0], bytes[1]]).into(), of)?;
            }
            0x04 => {
                let bytes = program.take(4)?.try_into().ok()?;
                self.advance(u32::from_le_bytes(bytes).into(), of)?;
            }
            0x05 => {
                let (register, offset) = (program.number()?, program.number()?);
                self.save(register, i64::try_from(offset).ok()?.checked_mul(of.data_factor)?);
            }
            0x06 => {
                let register = program.number()?;
                self.restore(register);
            }
            // Undefined, the same value, in another register: the frame pointer is then not saved on the stack.
            0x07 => drop(program.number()?),
            0x08 => {
                if program.number()? == FRAME_POINTER {
                    self.state.saved = None;
                }
            }
            0x09 => drop((program.number()?, program.number()?)),
            0x0a if self.remembered.len() < STATES_MAX => self.remembered.push(self.state),
            0x0b => self.state = self.remembered.pop()?,
            0x0c => {
                self.state.register = program.number()?;
                self.state.offset = i64::try_from(program.number()?).ok()?;
                self.state.is_lost = false;
            }
            0x0d => self.state.register = program.number()?,
            0x0e => self.state.offset = i64::try_from(program.number()?).ok()?,
            // The frame by an expression.
            0x0f => {
                let length = program.number()?;
                program.take(usize::try_from(length).ok()?)?;
                self.state.is_lost = true;
            }
            0x10 | 0x16 => {
                let (register, length) = (program.number()?, program.number()?);
                program.take(usize::try_from(length).ok()?)?;
                self.state.is_lost |= register == FRAME_POINTER;
            }
            0x11 => {
                let (register, offset) = (program.number()?, program.signed()?);
                self.save(register, offset.checked_mul(of.data_factor)?);
            }
            0x12 => {
                self.state.register = program.number()?;
                self.state.offset = program.signed()?.checked_mul(of.data_factor)?;
                self.state.is_lost = false;
            }
            0x13 => self.state.offset = program.signed()?.checked_mul(of.data_factor)?,
            // The size of arguments.
            0x2e => drop(program.number()?),
            _ => return None,
        }
        Some(())
    }

    fn advance(&mut self, by: u64, of: &Description) -> Option<()> {
        self.finish_row();
        self.at = self.at.checked_add(by.checked_mul(of.code_factor)?)?;
        Some(())
    }

    fn save(&mut self, register: u64, offset: i64) {
        if register == FRAME_POINTER {
            self.state.saved = Some(offset);
        }
    }

    fn restore(&mut self, register: u64) {
        if register == FRAME_POINTER {
            self.state.saved = self.initial.saved;
        }
    }

    /// What holds from the last place on is complete.
    fn finish_row(&mut self) {
        let frame = self.state.frame();
        if self.rows.last().is_some_and(|(at, _)| *at == self.at) {
            self.rows.pop();
        }
        if self.rows.last().is_none_or(|(_, before)| *before != frame) {
            self.rows.push((self.at, frame));
        }
    }
}

impl State {
    fn frame(&self) -> Option<Frame> {
        let from_frame_pointer = match self.register {
            FRAME_POINTER => true,
            STACK_POINTER => false,
            _ => return None,
        };
        let saved = match self.saved {
            Some(offset) => Some(u64::try_from(offset.checked_neg()?).ok()?),
            None => None,
        };
        let offset = u64::try_from(self.offset).ok()?;
        (!self.is_lost).then_some(Frame { from_frame_pointer, offset, saved })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn our_own_program_is_described() {
        let elf = Elf::open(Path::new("/proc/self/exe")).unwrap();
        let unwind = Unwind::of(&elf).unwrap();
        let mut known = 0;
        for begin in unwind.begins().take(2000).collect::<Vec<_>>() {
            let rows = unwind.rows(begin).unwrap();
            assert!(rows.is_sorted_by_key(|(at, _)| *at));
            let end = rows.last().unwrap().0;
            assert_eq!(unwind.function(begin), Some(begin..end));
            // At the entry of a function there is the return address alone.
            let entry = Frame { from_frame_pointer: false, offset: 8, saved: None };
            known += usize::from(rows[0] == (begin, Some(entry)));
        }
        assert!(known > 1900, "{known}");
    }
}
