use super::*;
use crate::servers::layout::shape as shapes;

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
fn what_stands_behind_a_call_that_does_not_return_is_not_followed() {
    // test rsi, rsi; jne +6; mov eax, [rdi+8]; ret; nop; nop; call fail
    let body = [0x48, 0x85, 0xf6, 0x75, 0x06, 0x8b, 0x47, 0x08, 0xc3, 0x90, 0x90, 0xe8, 0, 0, 0, 0];
    // The next function jumps to the start of this one: jmp -18
    let whole = [&body[..], &[0xeb, 0xee]].concat();
    let fetch = |at: u64| decode(whole.get((at.checked_sub(AT)?) as usize..)?, at);
    let trace = trace_code(AT..AT + body.len() as u64, fetch);
    assert_eq!(only(&shapes::returned_number(&trace)), Some(8));
    assert_eq!(trace.returns().count(), 1, "{trace:?}");
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
fn an_object_on_the_stack_shows_what_it_holds_of_other_memory() {
    // sub rsp, 0x28; mov rax, [rdi+0x20]; mov [rsp+0x10], rax; mov [rsp+0x18], rsi;
    // lea rsi, [rsp+8]; call next; add rsp, 0x28; ret
    let code = [
        0x48, 0x83, 0xec, 0x28, 0x48, 0x8b, 0x47, 0x20, 0x48, 0x89, 0x44, 0x24, 0x10, 0x48, 0x89,
        0x74, 0x24, 0x18, 0x48, 0x8d, 0x74, 0x24, 8, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x28,
        0xc3,
    ];
    let trace = trace_of(&code);
    let object = trace.lent().next().unwrap();
    assert_eq!(object.keys().collect::<Vec<_>>(), [&8]);
    assert_eq!(object[&8].field_of(&Term::Argument(0), 8), Some(0x20));
}

#[test]
fn bits_that_are_taken_are_seen_like_bits_that_are_tested() {
    // mov rax, [rdi+0x398]; and eax, 4; cmp rax, 1; sbb eax, eax; ret
    let code =
        [0x48, 0x8b, 0x87, 0x98, 3, 0, 0, 0x83, 0xe0, 4, 0x48, 0x83, 0xf8, 1, 0x19, 0xc0, 0xc3];
    let trace = trace_of(&code);
    assert_eq!(only(&shapes::ansi_quotes(&trace)), Some(0x398));
    assert!(trace.comparisons().all(|(left, _)| left.load().is_none()), "{trace:?}");
}

#[test]
fn the_field_that_stands_in_every_pair_is_the_one_converted_from() {
    // push rbx; mov rbx, rdi; mov rdx, [rbx+0x18]; mov rsi, [rbx+0x10]; xor edi, edi; call next;
    // mov rdx, [rbx+8]; mov rsi, [rbx+0x10]; xor edi, edi; call next; pop rbx; ret
    let called = [
        0x53, 0x48, 0x89, 0xfb, 0x48, 0x8b, 0x53, 0x18, 0x48, 0x8b, 0x73, 0x10, 0x31, 0xff, 0xe8,
        0, 0, 0, 0, 0x48, 0x8b, 0x53, 8, 0x48, 0x8b, 0x73, 0x10, 0x31, 0xff, 0xe8, 0, 0, 0, 0,
        0x5b, 0xc3,
    ];
    // mov rax, [rdi+0x10]; cmp rax, [rdi+0x18]; je end; mov rdx, [rdi+8]; cmp rdx, rax; end: ret
    let compared = [
        0x48, 0x8b, 0x47, 0x10, 0x48, 0x3b, 0x47, 0x18, 0x74, 7, 0x48, 0x8b, 0x57, 8, 0x48, 0x39,
        0xc2, 0xc3,
    ];
    assert_eq!(only(&shapes::converted(&trace_of(&called))), Some(0x10));
    assert_eq!(only(&shapes::converted(&trace_of(&compared))), Some(0x10));
    // One pair does not tell which of the two it is.
    assert_eq!(only(&shapes::converted(&trace_of(&compared[..8]))), None);
}

#[test]
fn what_is_cleared_is_told_by_its_neighbour() {
    // xor eax, eax; mov word [rdi+0x19], ax; mov qword [rdi+0x228], 0; mov qword [rdi+0x220], 0;
    // mov qword [rdi+0x10], 0; mov byte [rdi+0x18], 0; ret
    let code = [
        0x31, 0xc0, 0x66, 0x89, 0x47, 0x19, 0x48, 0xc7, 0x87, 0x28, 2, 0, 0, 0, 0, 0, 0, 0x48,
        0xc7, 0x87, 0x20, 2, 0, 0, 0, 0, 0, 0, 0x48, 0xc7, 0x47, 0x10, 0, 0, 0, 0, 0xc6, 0x47,
        0x18, 0, 0xc3,
    ];
    let trace = trace_of(&code);
    assert_eq!(only(&shapes::flags_cleared(&trace)), Some(0x18));
    assert_eq!(only(&shapes::words_cleared(&trace)), Some(0x220));
    // mov byte [rdi+0x18], 0; ret
    assert_eq!(only(&shapes::flags_cleared(&trace_of(&[0xc6, 0x47, 0x18, 0, 0xc3]))), None);
}

#[test]
fn a_number_is_no_text() {
    // lea rax, [rip+0x20000]; mov [rdi+0x40], rax; mov qword [rdi+0x48], 0x100; ret
    let code = [
        0x48, 0x8d, 5, 0, 0, 2, 0, 0x48, 0x89, 0x47, 0x40, 0x48, 0xc7, 0x47, 0x48, 0, 1, 0, 0, 0xc3,
    ];
    assert_eq!(only(&shapes::text_stored(&trace_of(&code))), Some(0x40));
}

#[test]
fn a_text_is_compared_before_its_length() {
    // test rdx, rdx; je end; mov rax, [rdx+0x58]; test rax, rax; je end; cmp [rdx+0x60], rsi;
    // je end; end: xor eax, eax; ret
    let code = [
        0x48, 0x85, 0xd2, 0x74, 0x0f, 0x48, 0x8b, 0x42, 0x58, 0x48, 0x85, 0xc0, 0x74, 6, 0x48,
        0x39, 0x72, 0x60, 0x74, 0, 0x31, 0xc0, 0xc3,
    ];
    let trace = trace_of(&code);
    assert_eq!(only(&shapes::compared_text(&trace)), Some(0x58));
    assert_eq!(only(&shapes::compared_text_length(&trace)), Some(0x60));
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

/// `movabs rax, distance; add rdi, rax`, then `rest`.
fn far(distance: i64, rest: &[u8]) -> Trace {
    let bytes = distance.to_le_bytes();
    trace_of(&[&[0x48, 0xb8][..], &bytes, &[0x48, 0x01, 0xc7], rest].concat())
}

/// Programs are made by anybody. What is added to an offset must not overflow.
#[test]
fn a_field_that_lies_where_no_object_has_one_is_none() {
    use crate::servers::layout::shapes_of;
    let ends = [0, 7, 8, 1 << 20, (1 << 32) - 1, (1 << 32) - 8, 1 << 32, i64::MAX];
    for distance in ends.into_iter().flat_map(|end| [end, end - 9, -end]).chain([i64::MIN]) {
        // mov rax, rdi; ret
        let address = far(distance, &[0x48, 0x89, 0xf8, 0xc3]);
        // mov rax, [rdi]; mov rdx, [rdi]; ret
        let loaded = far(distance, &[0x48, 0x8b, 0x07, 0x48, 0x8b, 0x17, 0xc3]);
        // mov [rdi], rbx; mov qword [rdi], 0; mov word [rdi], 0; mov byte [rdi], 0; ret
        let stored = far(
            distance,
            &[
                0x48, 0x89, 0x1f, 0x48, 0xc7, 0x07, 0, 0, 0, 0, 0x66, 0xc7, 0x07, 0, 0, 0xc6, 0x07,
                0, 0xc3,
            ],
        );
        // test byte [rdi], 0x60; test byte [rdi], 4; ret
        let tested = far(distance, &[0xf6, 0x07, 0x60, 0xf6, 0x07, 4, 0xc3]);
        // mov rsi, [rdi]; mov rdx, [rdi]; mov rcx, [rdi]; call +0; ret
        let passed = far(
            distance,
            &[0x48, 0x8b, 0x37, 0x48, 0x8b, 0x17, 0x48, 0x8b, 0x0f, 0xe8, 0, 0, 0, 0, 0xc3],
        );
        for trace in [address, loaded, stored, tested, passed] {
            for offset in shapes_of(&trace) {
                let is_near = u64::from(offset).abs_diff(distance.unsigned_abs()) <= 8;
                assert!(offset <= (1 << 20) + 8 && is_near, "{offset:#x} of {distance:#x}");
            }
        }
    }
}

#[test]
fn a_stack_that_ends_where_numbers_end_is_aligned_all_the_same() {
    for depth in [i64::MAX, i64::MAX - 7, i64::MIN, i64::MIN + 8] {
        // movabs rax, depth; add rsp, rax; and rsp, -16; push rax; ret
        let bytes = depth.to_le_bytes();
        let rest = [0x48, 0x01, 0xc4, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0xc3];
        trace_of(&[&[0x48, 0xb8][..], &bytes, &rest].concat());
    }
}

#[test]
fn of_an_endless_function_a_limited_part_is_kept() {
    // mov [rdi+distance], rsi, each with another distance.
    let store = |distance: u32| [&[0x48, 0x89, 0xb7][..], &distance.to_le_bytes()].concat();
    let code: Vec<u8> = (0..6000).flat_map(store).collect();
    assert_eq!(trace_of(&code).events.len(), super::super::EVENTS_MAX);
    // push rsi, 6000 times.
    let mut state = State::at_entry();
    let mut trace = Trace::default();
    (0..6000).for_each(|_| state.push(Term::Argument(1), &mut trace));
    assert_eq!(state.stack.len(), WORDS_MAX);
}
