//! Faults of the machine: each is printed, and ends the image with a code.
//!
//! Interrupts stay off, so that only faults come here. A handler runs on a
//! stack of its own: the one that a fault came from may be what is broken.
//!
//! # Invariants
//! - Every vector that the processor can raise has a gate with its own stack.
//!
//! # Not here
//! Faults of a guest, which its engine finds without the processor's help.

use core::arch::{asm, naked_asm};

use crate::boot::SEGMENTS as FLAT;
use crate::exit::{Exit, exit};
use crate::memory::paging;
use crate::memory::stack::Calls;
use crate::println;

/// What the processor and the stubs leave on the handler's stack.
#[repr(C)]
struct Frame {
    vector: u64,
    code: u64,
    instruction: u64,
    segment: u64,
    flags: u64,
    stack: u64,
}

#[repr(C, align(16))]
struct Stack([u8; 16 << 10]);

/// For all faults, and for one that happens while another is handled.
static mut STACKS: [Stack; 2] = [const { Stack([0; 16 << 10]) }; 2];

/// The task state: of all that it can hold, only the stacks are used.
#[repr(C, packed(4))]
struct TaskState {
    reserved: u32,
    privileged: [u64; 3],
    reserved_too: u64,
    stacks: [u64; 7],
    reserved_again: u64,
    reserved_last: u16,
    /// Where a map of ports would begin: past the end, for there is none.
    ports: u16,
}

impl TaskState {
    const EMPTY: Self = Self {
        reserved: 0,
        privileged: [0; 3],
        reserved_too: 0,
        stacks: [0; 7],
        reserved_again: 0,
        reserved_last: 0,
        ports: 104,
    };
}

static mut TASK_STATE: TaskState = TaskState::EMPTY;

/// Null, code, data, and the task state, which takes two entries.
static mut SEGMENTS: [u64; 5] = [0; 5];

static mut GATES: [[u64; 2]; VECTORS] = [[0; 2]; VECTORS];

/// The vectors of faults; what comes after them are interrupts.
const VECTORS: usize = 32;
const DOUBLE_FAULT: usize = 8;

/// A table's address and its last byte, as the processor reads them.
#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

impl Pointer {
    fn to<T>(table: *const T) -> Self {
        let limit = u16::try_from(size_of::<T>().saturating_sub(1)).unwrap_or(u16::MAX);
        Self { limit, base: address(table) }
    }
}

fn address<T>(place: *const T) -> u64 {
    place.expose_provenance() as u64
}

/// Makes faults come here.
pub(crate) fn init() {
    let stacks = (&raw const STACKS).cast::<Stack>();
    let mut tops = [0; 7];
    for (top, index) in tops.iter_mut().zip(1..=2) {
        *top = address(stacks.wrapping_add(index));
    }
    let state = TaskState { stacks: tops, ..TaskState::EMPTY };
    // SAFETY: one core, interrupts off, and no table is in use yet.
    unsafe { TASK_STATE = state };

    let base = address(&raw const TASK_STATE);
    let limit = size_of::<TaskState>() as u64 - 1;
    let low = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
    let [null, code, data, ..] = FLAT;
    // SAFETY: as above.
    unsafe { SEGMENTS = [null, code, data, low, base >> 32] };

    let gates = (&raw mut GATES).cast::<[u64; 2]>();
    for (vector, stub) in STUBS.into_iter().enumerate() {
        let stack = if vector == DOUBLE_FAULT { 2 } else { 1 };
        let at = (stub as *const ()).expose_provenance() as u64;
        let low = at & 0xffff | 8 << 16 | stack << 32 | 0x8e << 40 | (at >> 16 & 0xffff) << 48;
        // SAFETY: as above; there are as many gates as stubs.
        unsafe { gates.wrapping_add(vector).write([low, at >> 32]) };
    }

    let segments = Pointer::to(&raw const SEGMENTS);
    // SAFETY: the first three entries are those that are loaded already.
    unsafe { asm!("lgdt [{}]", in(reg) &raw const segments, options(readonly, nostack)) };
    // SAFETY: entry 3 describes the task state.
    unsafe { asm!("ltr {:x}", in(reg) 24_u16, options(nostack)) };
    let gates = Pointer::to(&raw const GATES);
    // SAFETY: every gate leads to its stub.
    unsafe { asm!("lidt [{}]", in(reg) &raw const gates, options(readonly, nostack)) };
}

type Stub = unsafe extern "C" fn() -> !;

/// A fault without a code of its own: one is put where others have theirs.
#[unsafe(naked)]
unsafe extern "C" fn plain<const VECTOR: u8>() -> ! {
    naked_asm!("push 0", "push {vector}", "jmp {common}", vector = const VECTOR, common = sym common)
}

/// A fault with a code.
#[unsafe(naked)]
unsafe extern "C" fn coded<const VECTOR: u8>() -> ! {
    naked_asm!("push {vector}", "jmp {common}", vector = const VECTOR, common = sym common)
}

#[unsafe(naked)]
unsafe extern "C" fn common() -> ! {
    naked_asm!("cld", "mov rdi, rsp", "and rsp, -16", "call {fault}", "ud2", fault = sym fault)
}

#[rustfmt::skip]
static STUBS: [Stub; VECTORS] = [
    plain::<0>, plain::<1>, plain::<2>, plain::<3>, plain::<4>, plain::<5>, plain::<6>, plain::<7>,
    coded::<8>, plain::<9>, coded::<10>, coded::<11>, coded::<12>, coded::<13>, coded::<14>, plain::<15>,
    plain::<16>, coded::<17>, plain::<18>, plain::<19>, plain::<20>, coded::<21>, plain::<22>, plain::<23>,
    plain::<24>, plain::<25>, plain::<26>, plain::<27>, plain::<28>, coded::<29>, coded::<30>, plain::<31>,
];

extern "C" fn fault(frame: &Frame) -> ! {
    let address: u64;
    // SAFETY: it reads a register.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack)) };
    let what = match frame.vector {
        0 => "division",
        6 => "no such instruction",
        8 => "a fault within a fault",
        13 => "protection",
        14 if paging::guard().contains(&address) => "the stack is used up",
        14 => "page",
        _ => "other",
    };
    println!(
        "fault: {what} (vector {}, code {:#x}, at {:#x}, address {address:#x}, stack {:#x})",
        frame.vector, frame.code, frame.instruction, frame.stack
    );
    println!("called from{}", Calls::of(frame.stack));
    exit(Exit::Fault)
}
