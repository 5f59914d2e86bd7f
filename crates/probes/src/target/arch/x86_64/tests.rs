use super::*;
use crate::target::layout::shape as shapes;

const AT: u64 = 0x1000;

/// The trace of a function of these bytes.
fn trace_of(code: &[u8]) -> Trace {
    let body = AT..AT + code.len() as u64;
    trace_code(body, |at| decode(code.get((at.checked_sub(AT)?) as usize..)?, at))
}

fn only(offsets: &std::collections::BTreeSet<u32>) -> Option<u32> {
    offsets.first().copied().filter(|_| offsets.len() == 1)
}

#[test]
fn a_plain_accessor_gives_its_field() {
    // endbr64; mov eax, [rdi+0x25d0]; ret
    let plain = [0xf3, 0x0f, 0x1e, 0xfa, 0x8b, 0x87, 0xd0, 0x25, 0, 0, 0xc3];
    // push rbp; mov eax, [rdi+0x1ec0]; mov rbp, rsp; leave; ret
    let framed = [0x55, 0x8b, 0x87, 0xc0, 0x1e, 0, 0, 0x48, 0x89, 0xe5, 0xc9, 0xc3];
    // push rbx; mov rbx, rdi; mov rax, [rbx+0x3f18]; pop rbx; ret
    let moved = [0x53, 0x48, 0x89, 0xfb, 0x48, 0x8b, 0x83, 0x18, 0x3f, 0, 0, 0x5b, 0xc3];
    let id = |code: &[u8]| only(&shapes::returned_number(&trace_of(code)));
    assert_eq!(id(&plain), Some(0x25d0));
    assert_eq!(id(&framed), Some(0x1ec0));
    assert_eq!(id(&moved), Some(0x3f18));
}

#[test]
fn both_words_of_a_string_are_given() {
    // mov rax, [rdi+0x1d8]; mov rdx, [rdi+0x1e0]; ret
    let pair = [0x48, 0x8b, 0x87, 0xd8, 1, 0, 0, 0x48, 0x8b, 0x97, 0xe0, 1, 0, 0, 0xc3];
    let trace = trace_of(&pair);
    assert_eq!(only(&shapes::returned::<8>(&trace)), Some(0x1d8));
    assert_eq!(only(&shapes::returned_second(&trace)), Some(0x1e0));
    // lea rax, [rdi+0x68]; ret
    let address = trace_of(&[0x48, 0x8d, 0x47, 0x68, 0xc3]);
    assert_eq!(only(&shapes::returned_address(&address)), Some(0x68));
    assert_eq!(only(&shapes::returned_address_length(&address)), Some(0x70));
}

#[test]
fn a_tail_call_is_followed() {
    // jmp +3; int3 x3; add rsi, [rdi+0x19f8]; mov [rdi+0x19f8], rsi; ret
    let code = [
        0xeb, 0x03, 0xcc, 0xcc, 0xcc, 0x48, 0x03, 0xb7, 0xf8, 0x19, 0, 0, 0x48, 0x89, 0xb7, 0xf8,
        0x19, 0, 0, 0xc3,
    ];
    assert_eq!(only(&shapes::argument_added(&trace_of(&code))), Some(0x19f8));
    // add [rdi+0x2818], rsi; ret
    let in_place = [0x48, 0x01, 0xb7, 0x18, 0x28, 0, 0, 0xc3];
    assert_eq!(only(&shapes::argument_added(&trace_of(&in_place))), Some(0x2818));
}

#[test]
fn a_field_of_another_object_is_not_ours() {
    // mov rax, [rdi+0x58]; mov eax, [rax+8]; ret
    let inner = trace_of(&[0x48, 0x8b, 0x47, 0x58, 0x8b, 0x40, 0x08, 0xc3]);
    assert!(shapes::returned_number(&inner).is_empty());
    assert_eq!(only(&shapes::returned_through(&inner)), Some(0x58));
    // mov eax, [rsi+0x10]; ret
    let other = trace_of(&[0x8b, 0x46, 0x10, 0xc3]);
    assert!(shapes::returned_number(&other).is_empty());
    // call next; mov eax, [rdi+0x10]; ret: the argument is gone after a call.
    let after_call = trace_of(&[0xe8, 0, 0, 0, 0, 0x8b, 0x47, 0x10, 0xc3]);
    assert!(shapes::returned_number(&after_call).is_empty());
}

#[test]
fn two_different_answers_are_no_answer() {
    // test rsi, rsi; je +4; mov eax, [rdi+8]; ret; mov eax, [rdi+0x10]; ret
    let code = [0x48, 0x85, 0xf6, 0x74, 0x04, 0x8b, 0x47, 0x08, 0xc3, 0x8b, 0x47, 0x10, 0xc3];
    let offsets = shapes::returned_number(&trace_of(&code));
    assert_eq!(offsets.into_iter().collect::<Vec<_>>(), [0x08, 0x10]);
}

#[test]
fn the_thread_pointer_is_its_own_first_word() {
    // mov rax, fs:[0]; mov rax, [rax-0x68]; ret
    let code = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8b, 0x40, 0x98, 0xc3];
    let trace = trace_of(&code);
    let (from, offset, width) = trace.returns().next().unwrap().0.load().unwrap();
    assert_eq!((from, offset, width), (&Term::ThreadPointer, -0x68, 8));
    // The same in one instruction: mov rax, fs:[-0x68]; ret
    let short = [0x64, 0x48, 0x8b, 0x04, 0x25, 0x98, 0xff, 0xff, 0xff, 0xc3];
    let trace = trace_of(&short);
    let (from, offset, width) = trace.returns().next().unwrap().0.load().unwrap();
    assert_eq!((from, offset, width), (&Term::ThreadPointer, -0x68, 8));
}

#[test]
fn arguments_on_the_stack_are_seen() {
    // sub rsp, 0x18; mov rax, [rdi+0x20]; mov [rsp], rax; mov [rsp+0x10], rdi; call next; ret
    let code = [
        0x48, 0x83, 0xec, 0x18, 0x48, 0x8b, 0x47, 0x20, 0x48, 0x89, 0x04, 0x24, 0x48, 0x89, 0x7c,
        0x24, 0x10, 0xe8, 0, 0, 0, 0, 0xc3,
    ];
    let trace = trace_of(&code);
    let arguments = trace.calls().next().unwrap();
    assert_eq!(arguments[6].field_of(&Term::Argument(0), 8), Some(0x20));
    assert_eq!(arguments[8], Term::Argument(0));
}

#[test]
fn thread_local_storage_ends_at_the_thread_pointer() {
    let at = |size, align, value| thread_local_offset(Tls { size, align }, value);
    // MySQL 8.0.12 and 9.7.4.
    assert_eq!(at(0xd1, 0x10, 0x18), Some(-0xc8));
    assert_eq!(at(0x220, 0x10, 0x48), Some(-0x1d8));
    assert_eq!(at(u64::MAX, 0x10, 0x48), None);
}

proptest::proptest! {
    #[test]
    fn any_code_is_traced_within_the_limit_of_steps(
        code in proptest::collection::vec(proptest::num::u8::ANY, 0..400),
    ) {
        trace_of(&code);
    }

    #[test]
    fn any_loop_of_jumps_ends(
        targets in proptest::collection::vec(-60i8..60, 1..40),
    ) {
        // je to anywhere, over and over.
        let code: Vec<u8> = targets.iter().flat_map(|target| [0x74, *target as u8]).collect();
        trace_of(&code);
    }
}
