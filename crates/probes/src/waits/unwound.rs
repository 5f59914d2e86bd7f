//! What the stack of a thread says that waits already: the same as `look_at_stack` of `frames.bpf.h`, by the same tables, for
//! a stack that another process reads word by word.

use super::Tables;
use super::skeleton::types::{stack_says, thread_row};
use crate::carrier::PartsPlaces;
use crate::servers::waiting::UnwindRow;

/// `LIBRARY_FRAMES` and `SERVER_FRAMES` of `frames.bpf.h`.
const LIBRARY_FRAMES: usize = 6;
const SERVER_FRAMES: usize = 8;

/// What is known of the code of a process, and where it is.
#[derive(Clone, Copy)]
pub(super) struct Code<'a> {
    pub(super) tables: &'a Tables,
    pub(super) places: PartsPlaces,
}

/// A walk from a function to its callers. It makes [`LIBRARY_FRAMES`] and [`SERVER_FRAMES`] steps at most.
pub(super) struct Walk<'a> {
    code: Code<'a>,
    ip: u64,
    sp: u64,
    bp: u64,
    frames: usize,
    is_in_library: bool,
    /// The frame that is left next: the stack pointer of its caller, and whether it has saved the frame pointer.
    next: Option<(u64, bool)>,
    says: stack_says,
}

impl<'a> Walk<'a> {
    /// It begins where the thread is.
    pub(super) fn of(row: &thread_row, code: Code<'a>) -> Walk<'a> {
        let says = stack_says::default();
        let (ip, sp, bp) = (row.ip, row.sp, row.bp);
        Walk { code, ip, sp, bp, frames: 0, is_in_library: true, next: None, says }
    }

    /// The addresses of the two words that the next step needs; `None` where the walk is over.
    pub(super) fn wants(&mut self) -> Option<[u64; 2]> {
        if self.is_in_library {
            let places = self.code.places;
            let at = self.ip.wrapping_sub(places.library);
            if at < places.library_bytes.into() && self.frames < LIBRARY_FRAMES {
                return self.leave_library(at);
            }
            let is_left = at >= places.library_bytes.into();
            self.says.left_library = if is_left { places.library_bytes } else { 0 };
            (self.is_in_library, self.frames) = (false, 0);
        }
        let at = self.ip.wrapping_sub(self.code.places.load_bias);
        if self.frames == SERVER_FRAMES {
            return None;
        }
        if let Some(class) = self.code.function_at(at.wrapping_sub(1)) {
            self.says.part = class;
            return None;
        }
        if self.bp < self.sp {
            return None;
        }
        self.next = Some((self.bp, true));
        Some([self.bp, self.bp.wrapping_add(8)])
    }

    fn leave_library(&mut self, at: u64) -> Option<[u64; 2]> {
        // The call, not what follows it: that may be another function's.
        let row = self.code.row_at(at.wrapping_sub(1)).filter(|row| row.rule() != 0)?;
        self.says.condition |= u32::from(row.is_condition);
        let from = if row.from_frame_pointer { self.bp } else { self.sp };
        let above = from.wrapping_add(row.offset.into());
        self.next = Some((above, row.saved > 0));
        Some([above.wrapping_sub(8), above.wrapping_sub(u64::from(row.saved) * 8)])
    }

    /// Goes to the caller; false where a word could not be read that it needs.
    pub(super) fn step(&mut self, words: [Option<u64>; 2]) -> bool {
        let Some((above, has_saved)) = self.next.take() else { return false };
        self.frames += 1;
        self.sp = above;
        match (self.is_in_library, words) {
            (true, [Some(ip), saved]) if !has_saved || saved.is_some() => {
                self.ip = ip;
                self.bp = saved.filter(|_| has_saved).unwrap_or(self.bp);
                true
            }
            (false, [Some(bp), Some(ip)]) => {
                (self.bp, self.ip) = (bp, ip);
                true
            }
            _ => false,
        }
    }

    /// What was found.
    pub(super) fn says(&self) -> stack_says {
        self.says
    }
}

impl Code<'_> {
    /// What the function at this place of the server's file is for.
    fn function_at(&self, at: u64) -> Option<u32> {
        let functions = &self.tables.functions;
        let next = functions.partition_point(|function| u64::from(function.begin) <= at);
        let found = functions.get(next.checked_sub(1)?)?;
        (at < found.end.into()).then_some(found.class.into())
    }

    /// How the caller of this place of the C library is found.
    fn row_at(&self, at: u64) -> Option<UnwindRow> {
        let rows = &self.tables.rows;
        let next = rows.partition_point(|row| u64::from(row.begin) <= at);
        rows.get(next.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use waggle_model::TimeClass;

    use super::*;
    use crate::servers::waiting::WaitingFunction;

    const LIBRARY: u64 = 0x7000_0000;
    const SERVER: u64 = 0x5000_0000;

    const PLACES: PartsPlaces =
        PartsPlaces { program: 1, load_bias: SERVER, library: LIBRARY, library_bytes: 0x1000 };

    fn row(begin: u32, offset: u16) -> UnwindRow {
        UnwindRow { begin, offset, saved: 0, from_frame_pointer: false, is_condition: false }
    }

    fn tables() -> Tables {
        let rows = vec![
            row(0x100, 24),
            UnwindRow { saved: 3, is_condition: true, ..row(0x200, 64) },
            UnwindRow { from_frame_pointer: true, ..row(0x300, 16) },
            row(0x400, 0),
        ];
        let class = TimeClass::RowLock as u8;
        let function = WaitingFunction { begin: 0x1000, end: 0x1100, class };
        Tables { functions: Arc::new(vec![function]), rows: Arc::new(rows) }
    }

    /// What is found from a place on, with these words in the memory.
    fn found(code: Code<'_>, ip: u64, sp: u64, bp: u64, words: &[(u64, u64)]) -> [u32; 3] {
        let memory: HashMap<u64, u64> = words.iter().copied().collect();
        let mut walk = Walk::of(&thread_row { ip, sp, bp, ..thread_row::default() }, code);
        let mut steps = 0..LIBRARY_FRAMES + SERVER_FRAMES;
        while let Some(wants) = walk.wants() {
            assert!(steps.next().is_some());
            if !walk.step(wants.map(|address| memory.get(&address).copied())) {
                break;
            }
        }
        let says = walk.says();
        [says.part, says.condition, u32::from(says.left_library > 0)]
    }

    #[test]
    fn the_first_function_that_says_it_is_found_behind_the_library() {
        let tables = tables();
        let code = Code { tables: &tables, places: PLACES };
        let row_lock = TimeClass::RowLock as u32;
        // A function of the library without a frame pointer, one that saves it, then two of the server.
        let words = [
            (0x8010, LIBRARY + 0x210),
            (0x8050, SERVER + 0x2000),
            (0x8040, 0x9000),
            (0x9000, 0x9100),
            (0x9008, SERVER + 0x1001),
        ];
        assert_eq!(found(code, LIBRARY + 0x110, 0x8000, 7, &words), [row_lock, 1, 1]);
        // The call is the last instruction of the function, so that the return address is behind it.
        assert_eq!(found(code, SERVER + 0x1100, 0x8000, 0, &[]), [row_lock, 0, 1]);
        assert_eq!(found(code, SERVER + 0x1101, 0x8000, 0, &[]), [0, 0, 1]);
        // By the frame pointer.
        let words = [(0x9008, SERVER + 0x1010)];
        assert_eq!(found(code, LIBRARY + 0x310, 0x8000, 0x9000, &words), [row_lock, 0, 1]);
        // Nobody knows how it is left, or the words are not there.
        assert_eq!(found(code, LIBRARY + 0x410, 0x8000, 0x9000, &words), [0, 0, 0]);
        assert_eq!(found(code, LIBRARY + 0x110, 0x8000, 0x9000, &words), [0, 0, 0]);
    }

    #[test]
    fn without_a_library_nothing_is_said_of_conditions() {
        let tables = tables();
        let places = PartsPlaces { library: 0, library_bytes: 0, ..PLACES };
        let code = Code { tables: &tables, places };
        assert_eq!(found(code, LIBRARY + 0x110, 0x8000, 7, &[]), [0, 0, 0]);
    }

    #[test]
    fn a_stack_that_leads_in_a_circle_is_left() {
        let tables = tables();
        let code = Code { tables: &tables, places: PLACES };
        let words = [(0x9000, 0x9000), (0x9008, SERVER + 0x2000)];
        assert_eq!(found(code, SERVER + 0x2000, 0x9000, 0x9000, &words), [0, 0, 1]);
        let words: Vec<(u64, u64)> =
            (0..100).map(|at| (0x8010 + at * 24, LIBRARY + 0x110)).collect();
        assert_eq!(found(code, LIBRARY + 0x110, 0x8000, 0, &words), [0, 0, 0]);
        let far = u64::MAX - 4;
        assert_eq!(found(code, far, far, far, &[]), [0, 0, 1]);
    }

    #[test]
    fn the_limits_are_those_of_the_kernels_half() {
        let frames = include_str!("frames.bpf.h");
        assert!(frames.contains(&format!("#define LIBRARY_FRAMES {LIBRARY_FRAMES}\n")));
        assert!(frames.contains(&format!("#define SERVER_FRAMES {SERVER_FRAMES}\n")));
    }
}
