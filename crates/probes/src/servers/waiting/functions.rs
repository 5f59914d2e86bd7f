//! Which functions of a server say what their callers wait for: by their exported names, and where a build hides them by
//! what they tell the pool of threads (`thd_wait_begin`).

use waggle_model::TimeClass;

use super::{FUNCTIONS_MAX, WaitingFunction};
use crate::servers::elf::{Elf, Unwind};

/// Names without arguments and templates, of all families and versions. `*` stands for any end.
const NAMED: &[(TimeClass, &[&str])] = &[
    (TimeClass::RowLock, &["lock_wait_suspend_thread", "lock_wait"]),
    (
        TimeClass::MetadataLock,
        &[
            "MDL_wait::timed_wait",
            "MDL_context::acquire_lock*",
            "MDL_context::upgrade_shared_lock",
            "MDL_context::clone_ticket",
            "TABLE_SHARE::wait_for_old_version",
            "tdc_wait_for_old_version",
        ],
    ),
    (TimeClass::TableLock, &["thr_multi_lock", "thr_lock"]),
    (TimeClass::InnodbTicket, &["srv_conc_enter_innodb"]),
    (TimeClass::Sleep, &["Item_func_sleep::val_int"]),
    (TimeClass::UserLock, &["Item_func_get_lock::val_int"]),
    (
        TimeClass::Commit,
        &[
            "log_write_up_to*",
            "log_wait_for*",
            "log_self_write_up_to",
            "MYSQL_BIN_LOG::*",
            "Stage_manager::*",
            "Commit_stage_manager::*",
            "wait_for_commit::*",
            "fil_flush*",
            "Fil_shard::redo_space_flush",
            "net_real_write",
            "ha_commit_trans",
            "ha_commit_one_phase",
            "ha_commit_low",
            "trans_commit*",
            "trx_commit*",
        ],
    ),
    (TimeClass::DiskRead, &["os_aio*", "AIO::*", "fil_io", "Fil_shard::do_io", "buf_read*"]),
    (
        TimeClass::Latch,
        &[
            "sync_array_*",
            "TTASEventMutex*",
            "PolicyMutex*",
            "rw_lock_*",
            "buf_page*",
            "buf_LRU_*",
            "buf_flush_*",
            "buf_wait_*",
            "log_free_check*",
            "log_buffer_*",
            "Sharded_rw_lock*",
            "tdc_*",
        ],
    ),
];

/// The functions of a program, sorted.
///
/// # Errors
///
/// In words, if it names none of them.
pub(in crate::servers) fn functions_of(elf: &Elf) -> Result<Vec<WaitingFunction>, String> {
    let mut functions = Vec::new();
    let mut announces = None;
    elf.for_each_symbol(|name, symbol| {
        let path = path_of(name);
        if path == b"thd_wait_begin" {
            announces = Some(symbol.address);
        }
        let class = NAMED.iter().find(|(_, names)| names.iter().any(|is| matches(&path, is)));
        let end = symbol.address.saturating_add(symbol.size);
        if let Some((class, _)) = class
            && let Some(function) = function(symbol.address, end, *class)
        {
            functions.push(function);
        }
    });
    if functions.is_empty() {
        return Err(format!("{} exports no function that waits", elf.name()));
    }
    if !functions.iter().any(|function| function.class == TimeClass::RowLock as u8)
        && let Some(announces) = announces
        && let Ok(unwind) = Unwind::of(elf)
    {
        functions.extend(hidden(elf, &unwind, announces));
    }
    functions.sort_unstable_by_key(|function| (function.begin, function.end));
    functions.dedup_by_key(|function| function.begin);
    functions.truncate(FUNCTIONS_MAX);
    Ok(functions)
}

fn function(begin: u64, end: u64, class: TimeClass) -> Option<WaitingFunction> {
    let (begin, end) = (u32::try_from(begin).ok()?, u32::try_from(end).ok()?);
    (begin > 0 && begin < end).then_some(WaitingFunction { begin, end, class: class as u8 })
}

fn matches(path: &[u8], name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => path.starts_with(start.as_bytes()),
        None => path == name.as_bytes(),
    }
}

/// The names of a mangled symbol up to its arguments or templates (Itanium C++ ABI, chapter 5.1): `A::b` of
/// `_ZN1A1bEi`. Another symbol is its own name.
fn path_of(symbol: &[u8]) -> Vec<u8> {
    let Some(mangled) = symbol.strip_prefix(b"_Z") else { return symbol.to_vec() };
    let mut rest = mangled;
    let is_nested = rest.first() == Some(&b'N');
    if is_nested {
        rest = &rest[1..];
    }
    while let [b'K' | b'V' | b'L', after @ ..] = rest {
        rest = after;
    }
    let mut path = Vec::new();
    loop {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count().min(4);
        let length =
            rest[..digits].iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
        let Some(name) = rest.get(digits..digits + length).filter(|name| !name.is_empty()) else {
            return path;
        };
        if !path.is_empty() {
            path.extend_from_slice(b"::");
        }
        path.extend_from_slice(name);
        rest = &rest[digits + length..];
        if !is_nested {
            return path;
        }
    }
}

// `enum thd_wait_type_e` of `service_thd_wait.h`, the same in every family.
const DISK: u32 = 2;
const ROW_LOCK: u32 = 3;
const TABLE_LOCK: u32 = 6;
const GROUP_COMMIT: u32 = 9;

/// Bytes before a call in which its argument is looked for.
const BEFORE_CALL: usize = 48;
/// `call` with a distance of four bytes.
const CALL: u8 = 0xe8;
const CALL_BYTES: usize = 5;
const PIECE: usize = 1 << 20;

/// The functions that say that they wait, whatever their names.
fn hidden(elf: &Elf, unwind: &Unwind<'_>, announces: u64) -> Vec<WaitingFunction> {
    let mut found = Vec::new();
    for range in elf.code_ranges() {
        let mut at = range.start;
        while at < range.end {
            let Some(piece) = elf.code(at, PIECE + CALL_BYTES) else { break };
            for place in places_of(&piece, CALL) {
                let Some(distance) = piece.get(place + 1..place + CALL_BYTES) else { continue };
                let distance =
                    i32::from_le_bytes([distance[0], distance[1], distance[2], distance[3]]);
                let here = at.wrapping_add(place as u64);
                let target =
                    here.wrapping_add(CALL_BYTES as u64).wrapping_add_signed(distance.into());
                if target == announces {
                    found.extend(announced(elf, unwind, here));
                }
            }
            at = at.saturating_add(PIECE as u64);
        }
    }
    found
}

/// What a function waits for that calls `thd_wait_begin` at this place.
fn announced(elf: &Elf, unwind: &Unwind<'_>, call: u64) -> Option<WaitingFunction> {
    let before = elf.code(call.checked_sub(BEFORE_CALL as u64)?, BEFORE_CALL)?;
    let class = match announced_type(&before)? {
        // The table lock of InnoDB waits in the same function. The server's own is exported.
        ROW_LOCK | TABLE_LOCK => TimeClass::RowLock,
        GROUP_COMMIT => TimeClass::Commit,
        DISK => TimeClass::DiskRead,
        _ => return None,
    };
    let range = unwind.function(call)?;
    function(range.start, range.end, class)
}

/// The number that a call is given as its second argument: by the last instruction before it that sets the register.
fn announced_type(before: &[u8]) -> Option<u32> {
    // mov esi, number
    let moved = before.windows(5).rposition(|code| code[0] == 0xbe && code[2..] == [0, 0, 0]);
    // and esi, -3; add esi, 6: one of 3 and 6
    let computed = before.windows(6).rposition(|code| code == [0x83, 0xe6, 0xfd, 0x83, 0xc6, 6]);
    match (moved, computed) {
        (Some(moved), computed) if computed.is_none_or(|computed| computed < moved) => {
            Some(before[moved + 1].into())
        }
        (_, Some(_)) => Some(ROW_LOCK),
        _ => None,
    }
}

/// Where a byte stands. A program has ten million, so they are searched as the C library can.
fn places_of(bytes: &[u8], wanted: u8) -> impl Iterator<Item = usize> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(next..)?;
        // SAFETY: the slice lives as long as the call, which reads no more than its length.
        let found = unsafe { libc::memchr(rest.as_ptr().cast(), wanted.into(), rest.len()) };
        let place = next + (found as usize).checked_sub(rest.as_ptr() as usize)?;
        next = place + 1;
        Some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_up_to_their_arguments() {
        for (symbol, path) in [
            ("thr_multi_lock", "thr_multi_lock"),
            ("_Z24lock_wait_suspend_threadP9que_thr_t", "lock_wait_suspend_thread"),
            ("_ZN8MDL_wait10timed_waitEP17MDL_context_ownerP8timespecb", "MDL_wait::timed_wait"),
            ("_ZNK3LEX10copy_db_toEPPKcPm", "LEX::copy_db_to"),
            ("_ZN14TTASEventMutexI13GenericPolicyE5enterEjjPKcj", "TTASEventMutex"),
            ("_ZTV3THD", ""),
            ("_Z", ""),
            ("_ZN99x", ""),
        ] {
            assert_eq!(path_of(symbol.as_bytes()), path.as_bytes(), "{symbol}");
        }
    }

    #[test]
    fn every_place_of_a_byte_is_found() {
        assert_eq!(places_of(&[7, 1, 7, 7, 2], 7).collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(places_of(&[], 7).count(), 0);
        assert_eq!(places_of(&[1], 7).count(), 0);
    }

    #[test]
    fn the_last_number_before_a_call_is_its_argument() {
        let with = |code: &[&[u8]]| announced_type(&[&[0x90; 20][..], &code.concat()].concat());
        let [mov6, computed] = [&[0xbe, 6, 0, 0, 0][..], &[0x83, 0xe6, 0xfd, 0x83, 0xc6, 6]];
        assert_eq!(with(&[mov6]), Some(6));
        assert_eq!(with(&[mov6, computed]), Some(ROW_LOCK));
        assert_eq!(with(&[computed, mov6]), Some(6));
        assert_eq!(with(&[]), None);
    }
}
