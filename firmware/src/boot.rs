//! From the loader to 64-bit mode, and to Rust.
//!
//! Two doors lead here, PVH (QEMU's `-kernel`, cloud hypervisors) and
//! Multiboot2 (GRUB, BIOS and UEFI). Both enter in 32-bit mode without paging;
//! PVH leaves its information's address in `ebx`, Multiboot2 too and a magic
//! number in `eax`.
//!
//! # Invariants
//! - Interrupts are off from the first instruction and never turned on.
//!
//! # Not here
//! What the loader's information says (`handover`). The page tables that stay
//! (`memory::paging`): those made here map everything, and only until then.

use core::arch::naked_asm;

use crate::memory::Loaded;
use crate::memory::paging::TABLES;

/// Null, code and data; nothing else is left of segments in 64-bit mode.
pub(crate) static SEGMENTS: [u64; 3] = [0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff];

#[repr(C, packed)]
struct TablePointer {
    limit: u16,
    base: &'static [u64; 3],
}

static SEGMENT_POINTER: TablePointer = TablePointer { limit: 23, base: &SEGMENTS };

/// The first instruction.
///
/// # Safety
/// The machine is as PVH or Multiboot2 leave it.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".boot")]
unsafe extern "C" fn _start() -> ! {
    naked_asm!(
        ".code32",
        "cli",
        "cld",
        "mov esp, offset stack_top",
        "mov ebp, eax",
        // Top table and the one below it.
        "mov edi, offset {tables}",
        "lea eax, [edi + 0x1003]",
        "mov [edi], eax",
        "lea eax, [edi + 0x2003]",
        "mov ecx, 4",
        "lea edx, [edi + 0x1000]",
        "2:",
        "mov [edx], eax",
        "add eax, 0x1000",
        "add edx, 8",
        "loop 2b",
        // 2048 pages of 2 MiB: the first 4 GiB, address = physical address.
        "lea edx, [edi + 0x2000]",
        "mov eax, 0x83",
        "mov ecx, 2048",
        "3:",
        "mov [edx], eax",
        "add eax, 0x200000",
        "add edx, 8",
        "loop 3b",
        "mov cr3, edi",
        // Long pages and the SSE registers, which compiled code uses.
        "mov eax, cr4",
        "or eax, 0x620",
        "mov cr4, eax",
        // Long mode, and pages that cannot be executed.
        "mov ecx, 0xc0000080",
        "rdmsr",
        "or eax, 0x900",
        "wrmsr",
        // Paging, write protection for the kernel too, no x87 emulation.
        "mov eax, cr0",
        "and eax, 0xfffffff3",
        "or eax, 0x80010022",
        "mov cr0, eax",
        "lgdt [{segments}]",
        "push 8",
        "mov eax, offset {long_mode}",
        "push eax",
        "retf",
        ".code64",
        tables = sym TABLES,
        segments = sym SEGMENT_POINTER,
        long_mode = sym long_mode,
    )
}

/// The first instruction in 64-bit mode.
#[unsafe(naked)]
unsafe extern "C" fn long_mode() -> ! {
    naked_asm!(
        "mov eax, 16",
        "mov ds, eax",
        "mov es, eax",
        "mov ss, eax",
        "xor eax, eax",
        "mov fs, eax",
        "mov gs, eax",
        "mov edi, ebp",
        "mov esi, ebx",
        "mov rsp, offset stack_top",
        "xor ebp, ebp",
        "call {enter}",
        "ud2",
        enter = sym enter,
    )
}

extern "C" fn enter(magic: u32, information: u32) -> ! {
    // SAFETY: this is the one call, and the image has done nothing before it.
    let memory = unsafe { Loaded::new() };
    crate::start(memory, magic, information)
}

/// What tells a PVH loader where to enter: an ELF note of name `Xen`, type 18.
///
/// Packed, because the loader takes the alignment of the note for that of its fields.
#[repr(C, packed(4))]
struct Note {
    name_size: u32,
    value_size: u32,
    kind: u32,
    name: [u8; 4],
    entry: unsafe extern "C" fn() -> !,
}

#[used]
#[unsafe(link_section = ".note.pvh")]
static PVH: Note = Note { name_size: 4, value_size: 8, kind: 18, name: *b"Xen\0", entry: _start };

/// What tells a Multiboot2 loader that this is one: magic, architecture, size,
/// checksum, and the end of its list of wishes.
#[used]
#[unsafe(link_section = ".multiboot2")]
static MULTIBOOT2: [u32; 6] = [0xe852_50d6, 0, 24, 0u32.wrapping_sub(0xe852_50d6 + 24), 0, 8];
