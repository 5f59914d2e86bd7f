//! x86-64: turns machine code into traces, and finds thread-local storage.
//!
//! The calling convention is that of the System V ABI, AMD64 supplement, section 3.2.3. waggle runs
//! the code with terms instead of numbers, along every path, for a limited number of steps. If it
//! does not understand an instruction, the result becomes opaque. A trace can miss something, but
//! it never invents anything.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};

use super::{ARGUMENTS, Event, Term, Trace};
use crate::servers::elf::{Elf, Symbol, Tls};

/// "Variant II" of thread-local storage (`ELF Handling For Thread-Local Storage`, section 3.4.6):
/// the program's block ends at the thread pointer.
pub(super) fn thread_local_offset(tls: Tls, value: u64) -> Option<i64> {
    let block = tls.size.checked_next_multiple_of(tls.align)?;
    i64::try_from(value).ok()?.checked_sub(i64::try_from(block).ok()?)
}

const ARGUMENT_REGISTERS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
const CLOBBERED_BY_CALLS: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];
/// Steps per function; the longest that is decoded has about 900 instructions.
const STEPS_MAX: u32 = 20_000;
/// Each instruction is looked at this often: paths that meet bring different values.
const VISITS_MAX: u8 = 3;
const PATHS_MAX: usize = 512;
/// Words of the stack that are kept, for each path; what a function puts beyond is not known.
const WORDS_MAX: usize = 1000;
/// Bytes of an object on the stack that are looked at.
const OBJECT_MAX: i64 = 160;
/// Longest instruction, from the manual of the processor.
const INSTRUCTION_MAX: usize = 15;
const PIECE: u64 = 4096;

pub(super) fn trace(elf: &Elf, function: Symbol) -> Option<Trace> {
    elf.code(function.address, 1)?;
    let mut code = Code { elf, pieces: HashMap::new() };
    let body = function.address..function.address.checked_add(function.size)?;
    Some(trace_code(body, |at| code.instruction(at)))
}

/// Machine code of the file, in pieces.
struct Code<'a> {
    elf: &'a Elf,
    pieces: HashMap<u64, Vec<u8>>,
}

impl Code<'_> {
    fn instruction(&mut self, at: u64) -> Option<Instruction> {
        let start = at - at % PIECE;
        let piece = self.pieces.entry(start).or_insert_with(|| {
            let length = PIECE as usize + INSTRUCTION_MAX;
            self.elf.code(start, length).unwrap_or_default()
        });
        let skip = (at - start) as usize;
        match piece.get(skip..) {
            Some(bytes) if !bytes.is_empty() => decode(bytes, at),
            _ => decode(&self.elf.code(at, INSTRUCTION_MAX)?, at),
        }
    }
}

fn decode(bytes: &[u8], at: u64) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// Follows every path from the start of `body`; `fetch` gives the instruction at an address.
fn trace_code(body: Range<u64>, mut fetch: impl FnMut(u64) -> Option<Instruction>) -> Trace {
    let mut trace = Trace::default();
    let mut visits: HashMap<u64, u8> = HashMap::new();
    let mut paths = vec![(body.start, State::at_entry())];
    let mut steps = 0;
    let mut factory = InstructionInfoFactory::new();
    while let Some((mut at, mut state)) = paths.pop() {
        loop {
            let seen = visits.entry(at).or_default();
            if *seen >= VISITS_MAX || steps >= STEPS_MAX {
                break;
            }
            *seen += 1;
            steps += 1;
            let Some(instruction) = fetch(at) else { break };
            // Behind a call that does not return another function may begin. What it does is none of
            // ours, and it may even jump back to the start and use up the visits.
            let is_last = body.contains(&at) && !body.contains(&instruction.next_ip());
            match instruction.flow_control() {
                FlowControl::Call | FlowControl::IndirectCall if is_last => {
                    state.call(0, &mut trace);
                    break;
                }
                FlowControl::Next => {
                    state.step(&instruction, &mut factory, &mut trace);
                    at = instruction.next_ip();
                }
                FlowControl::ConditionalBranch => {
                    if paths.len() < PATHS_MAX {
                        paths.push((instruction.near_branch_target(), state.clone()));
                    }
                    at = instruction.next_ip();
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    state.call(0, &mut trace);
                    state.after_call(at);
                    at = instruction.next_ip();
                }
                FlowControl::UnconditionalBranch => {
                    at = instruction.near_branch_target();
                    if !body.contains(&at) {
                        state.tail_call(&mut trace);
                    }
                }
                FlowControl::Return => {
                    trace.add(Event::Return(state.get(Register::RAX), state.get(Register::RDX)));
                    break;
                }
                FlowControl::IndirectBranch => {
                    state.tail_call(&mut trace);
                    break;
                }
                _ => break,
            }
        }
    }
    trace
}

/// Registers and stack as terms.
#[derive(Clone)]
struct State {
    registers: [Term; 16],
    stack: BTreeMap<i64, Term>,
}

impl State {
    fn at_entry() -> Self {
        let mut registers = std::array::from_fn(|index| Term::Opaque(index as u64));
        for (index, register) in ARGUMENT_REGISTERS.iter().enumerate() {
            registers[register.number()] = Term::Argument(index as u8);
        }
        registers[Register::RSP.number()] = Term::Frame;
        Self { registers, stack: BTreeMap::new() }
    }

    fn get(&self, register: Register) -> Term {
        self.registers[register.full_register().number() % 16].clone()
    }

    fn set(&mut self, register: Register, value: Term) {
        if register.is_gpr() {
            self.registers[register.full_register().number() % 16] = value;
        }
    }

    /// The arguments of a call; `skip` bytes lie between the stack pointer and the first of those
    /// on the stack.
    fn arguments(&self, skip: i64) -> [Term; ARGUMENTS] {
        let top = self.get(Register::RSP).plus(skip);
        std::array::from_fn(|index| match ARGUMENT_REGISTERS.get(index) {
            Some(register) => self.get(*register),
            None => {
                let word = (index - ARGUMENT_REGISTERS.len()) as i64 * 8;
                self.read(top.clone().plus(word).split(), 8, index as u64)
            }
        })
    }

    /// A call, and the objects on the stack that it is lent.
    fn call(&self, skip: i64, trace: &mut Trace) {
        let arguments = self.arguments(skip);
        for pointer in &arguments[..ARGUMENT_REGISTERS.len()] {
            if let Some(object) = self.object(pointer) {
                trace.add(Event::Lend(object));
            }
        }
        trace.add(Event::Call(Box::new(arguments)));
    }

    /// The values of memory that an object on the stack holds; `None` without any.
    fn object(&self, pointer: &Term) -> Option<BTreeMap<i64, Term>> {
        let (Term::Frame, start) = pointer.clone().split() else { return None };
        let object: BTreeMap<i64, Term> = self
            .stack
            .range(start..start.saturating_add(OBJECT_MAX))
            .filter(|(_, value)| value.load().is_some())
            .map(|(at, value)| (at - start, value.clone()))
            .collect();
        (!object.is_empty()).then_some(object)
    }

    fn after_call(&mut self, place: u64) {
        for (index, register) in CLOBBERED_BY_CALLS.iter().enumerate() {
            self.set(*register, Term::Opaque(opaque(place, index as u64)));
        }
    }

    /// A jump that leaves the function with the stack as it was found; the arguments on the stack
    /// lie above our return address.
    fn tail_call(&self, trace: &mut Trace) {
        if self.get(Register::RSP) == Term::Frame {
            self.call(8, trace);
        }
    }

    fn read(&self, (from, offset): (Term, i64), width: u8, place: u64) -> Term {
        match from {
            Term::Frame => self.stack.get(&offset).cloned().unwrap_or(Term::Opaque(place)),
            // The first word of the thread control block is its own address (AMD64 supplement,
            // thread-local storage).
            Term::ThreadPointer if offset == 0 => Term::ThreadPointer,
            from => Term::Load { from: Rc::new(from), offset, width }.bounded(place),
        }
    }

    fn write(&mut self, (to, offset): (Term, i64), width: u8, value: Term, trace: &mut Trace) {
        if to == Term::Frame {
            if self.stack.len() < WORDS_MAX || self.stack.contains_key(&offset) {
                self.stack.insert(offset, value);
            }
        } else {
            trace.add(Event::Store { to, offset, width, value });
        }
    }

    /// The address of the memory operand as base and distance; `None` if an index or an unknown
    /// segment takes part.
    fn address(&self, instruction: &Instruction) -> Option<(Term, i64)> {
        let displacement = instruction.memory_displacement64();
        if instruction.memory_index() != Register::None {
            return None;
        }
        let base = match (instruction.memory_base(), instruction.segment_prefix()) {
            (Register::RIP | Register::EIP, Register::None) => {
                return Some((Term::Constant(displacement), 0));
            }
            (Register::None, Register::FS) => Term::ThreadPointer,
            (Register::None, Register::None) => return Some((Term::Constant(displacement), 0)),
            (register, Register::None) => self.get(register),
            _ => return None,
        };
        Some(base.plus(displacement as i64).split())
    }

    fn operand(&self, instruction: &Instruction, index: u32) -> Term {
        let place = instruction.ip();
        let width = instruction.memory_size().size() as u8;
        match instruction.op_kind(index) {
            OpKind::Register => match instruction.op_register(index) {
                register if register.is_gpr() => self.get(register),
                _ => Term::Opaque(place),
            },
            OpKind::Memory => self
                .address(instruction)
                .map_or(Term::Opaque(place), |address| self.read(address, width, place)),
            _ => instruction.try_immediate(index).map_or(Term::Opaque(place), Term::Constant),
        }
    }

    fn assign(&mut self, instruction: &Instruction, value: Term, trace: &mut Trace) {
        match instruction.op_kind(0) {
            OpKind::Register => {
                let register = instruction.op_register(0);
                // Writing the low 8 or 16 bits leaves the others: neither old nor new value.
                let whole = register.size() >= 4;
                self.set(register, if whole { value } else { Term::Opaque(instruction.ip()) });
            }
            OpKind::Memory => {
                if let Some(address) = self.address(instruction) {
                    self.write(address, instruction.memory_size().size() as u8, value, trace);
                }
            }
            _ => {}
        }
    }

    fn step(
        &mut self,
        instruction: &Instruction,
        factory: &mut InstructionInfoFactory,
        trace: &mut Trace,
    ) {
        let place = instruction.ip();
        let operand = |state: &Self, index| state.operand(instruction, index);
        match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd
                if instruction.op0_kind() == OpKind::Memory
                    || instruction.op0_register().is_gpr() =>
            {
                let value = operand(self, 1);
                self.assign(instruction, value, trace);
            }
            Mnemonic::Lea => {
                let value = self.address(instruction).map(|(base, offset)| base.plus(offset));
                self.assign(instruction, value.unwrap_or(Term::Opaque(place)), trace);
            }
            Mnemonic::Add => {
                let value = sum(operand(self, 0), operand(self, 1), place);
                self.assign(instruction, value, trace);
            }
            Mnemonic::Sub => {
                let (left, right) = (operand(self, 0), operand(self, 1));
                let value = match right.constant() {
                    Some(number) => left.clone().plus((number as i64).wrapping_neg()),
                    None => Term::Opaque(place),
                };
                trace.add(Event::Subtract(left, right));
                self.assign(instruction, value, trace);
            }
            Mnemonic::Cmp => trace.add(Event::Compare(operand(self, 0), operand(self, 1))),
            Mnemonic::Test if is_same_register(instruction) => {
                trace.add(Event::Compare(operand(self, 0), Term::Constant(0)));
            }
            Mnemonic::Test => trace.add(Event::Test(operand(self, 0), operand(self, 1))),
            Mnemonic::Xor if is_same_register(instruction) => {
                self.assign(instruction, Term::Constant(0), trace);
            }
            Mnemonic::And if instruction.op0_register() == Register::RSP => self.align_stack(),
            Mnemonic::And => {
                trace.add(Event::Test(operand(self, 0), operand(self, 1)));
                self.forget_what_is_written(instruction, factory, trace);
            }
            Mnemonic::Push => {
                let value = operand(self, 0);
                self.push(value, trace);
            }
            Mnemonic::Pop => {
                let value = self.pop(place);
                self.assign(instruction, value, trace);
            }
            Mnemonic::Leave => {
                self.set(Register::RSP, self.get(Register::RBP));
                let value = self.pop(place);
                self.set(Register::RBP, value);
            }
            mnemonic if is_conditional_move(mnemonic) => {
                let value = either(operand(self, 0), operand(self, 1), place);
                self.assign(instruction, value, trace);
            }
            _ => self.forget_what_is_written(instruction, factory, trace),
        }
    }

    fn push(&mut self, value: Term, trace: &mut Trace) {
        let top = self.get(Register::RSP).plus(-8);
        self.set(Register::RSP, top.clone());
        self.write(top.split(), 8, value, trace);
    }

    fn pop(&mut self, place: u64) -> Term {
        let top = self.get(Register::RSP);
        self.set(Register::RSP, top.clone().plus(8));
        self.read(top.split(), 8, place)
    }

    /// `and rsp, -16`: at the entry the stack pointer is 8 below a multiple of 16.
    fn align_stack(&mut self) {
        if let (Term::Frame, depth) = self.get(Register::RSP).split() {
            let aligned = depth.wrapping_add(8).div_euclid(16) * 16;
            self.set(Register::RSP, Term::Frame.plus(aligned.wrapping_sub(8)));
        }
    }

    fn forget_what_is_written(
        &mut self,
        instruction: &Instruction,
        factory: &mut InstructionInfoFactory,
        trace: &mut Trace,
    ) {
        let writes = |access| {
            matches!(
                access,
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            )
        };
        let place = instruction.ip();
        let info = factory.info(instruction);
        for (index, used) in info.used_registers().iter().enumerate() {
            if writes(used.access()) {
                self.set(used.register(), Term::Opaque(opaque(place, index as u64)));
            }
        }
        if info.used_memory().iter().any(|used| writes(used.access()))
            && let Some(address) = self.address(instruction)
        {
            let width = instruction.memory_size().size() as u8;
            self.write(address, width, Term::Opaque(place), trace);
        }
    }
}

/// A number for the n-th unknown value that arises at a place. Addresses stay far below 2^60.
fn opaque(place: u64, index: u64) -> u64 {
    place.wrapping_mul(16).wrapping_add(index)
}

fn sum(left: Term, right: Term, place: u64) -> Term {
    match (left.constant(), right.constant()) {
        (_, Some(number)) => left.plus(number as i64),
        (Some(number), None) => right.plus(number as i64),
        (None, None) => Term::Sum(Rc::new(left), Rc::new(right)).bounded(place),
    }
}

/// What a conditional move leaves: accessors use it to replace a null pointer by a constant,
/// so the other value is the one of interest.
fn either(old: Term, new: Term, place: u64) -> Term {
    match (old.constant(), new.constant()) {
        _ if old == new => old,
        (Some(_), None) => new,
        (None, Some(_)) => old,
        _ => Term::Opaque(place),
    }
}

fn is_same_register(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register()
}

fn is_conditional_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Cmova
            | M::Cmovae
            | M::Cmovb
            | M::Cmovbe
            | M::Cmove
            | M::Cmovg
            | M::Cmovge
            | M::Cmovl
            | M::Cmovle
            | M::Cmovne
            | M::Cmovno
            | M::Cmovnp
            | M::Cmovns
            | M::Cmovo
            | M::Cmovp
            | M::Cmovs
    )
}

#[cfg(test)]
mod tests;
