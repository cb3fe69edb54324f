//! What the loader says about the machine: its memory, and what it brought.
//!
//! Two formats come in, PVH's start information and Multiboot2's list of tags;
//! one comes out. Both are read as bytes that may say anything.
//!
//! # Not here
//! What a module holds (`bundle`). Reading memory itself (`memory`).

use core::ops::Range;

use crate::memory::{DEVICES, Loaded, TOP, paging};

/// Modules that are looked at.
pub(crate) const MODULES: usize = 4;
/// Bytes of the command line that are looked at.
const COMMAND: usize = 256;
/// Ranges of memory that are looked at.
const RANGES: usize = 32;
/// Below this stand tables of the machine's own firmware.
const LOW: u64 = 1 << 20;

/// What every loader tells.
#[derive(Debug)]
pub(crate) struct Handover {
    /// The largest piece of memory with nothing in it.
    pub(crate) free: Range<u64>,
    /// Files that came along; those that did not are empty.
    pub(crate) modules: [Range<u64>; MODULES],
    command: [u8; COMMAND],
    command_length: usize,
    ram: List<RANGES>,
}

impl Handover {
    /// Reads what stands at the loader's address; `magic` is what it left in `eax`.
    pub(crate) fn read(memory: &Loaded, magic: u32, at: u32) -> Option<Self> {
        let mut handover = Self {
            free: 0..0,
            modules: [const { 0..0 }; MODULES],
            command: [0; COMMAND],
            command_length: 0,
            ram: List::new(),
        };
        if magic == MULTIBOOT2 {
            handover.multiboot2(memory, at.into())?;
        } else {
            handover.pvh(memory, at.into())?;
        }
        handover.free = handover.largest();
        Some(handover)
    }

    /// The value of `name=value` among the words of whoever started the machine.
    pub(crate) fn word(&self, name: &str) -> Option<&str> {
        let bytes = self.command.get(..self.command_length).unwrap_or_default();
        let words = str::from_utf8(bytes).unwrap_or_default().split(' ');
        words
            .filter_map(|word| word.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    fn pvh(&mut self, memory: &Loaded, at: u64) -> Option<()> {
        let info = Reader { memory, at };
        if info.u32(0)? != PVH || info.u32(4)? == 0 {
            return None;
        }
        let (modules, map) = (info.u64(16)?, info.u64(40)?);
        for index in 0..u64::from(info.u32(12)?).min(MODULES as u64) {
            let entry = Reader { memory, at: modules.checked_add(index * 32)? };
            self.module(entry.u64(0)?, entry.u64(8)?);
        }
        self.take_command(memory, info.u64(24)?);
        for index in 0..u64::from(info.u32(48)?).min(RANGES as u64) {
            let entry = Reader { memory, at: map.checked_add(index * 24)? };
            self.range(entry.u64(0)?, entry.u64(8)?, entry.u32(16)?);
        }
        Some(())
    }

    fn multiboot2(&mut self, memory: &Loaded, at: u64) -> Option<()> {
        let end = at.checked_add(Reader { memory, at }.u32(0)?.into())?;
        let mut next = at.checked_add(8)?;
        while next < end {
            let tag = Reader { memory, at: next };
            let (kind, size) = (tag.u32(0)?, u64::from(tag.u32(4)?));
            match kind {
                0 => break,
                1 => self.take_command(memory, next.checked_add(8)?),
                3 => {
                    let (start, end) = (u64::from(tag.u32(8)?), u64::from(tag.u32(12)?));
                    self.module(start, end.saturating_sub(start));
                }
                6 => {
                    let entry_size = u64::from(tag.u32(8)?).max(24);
                    let mut entry = next.checked_add(16)?;
                    while entry.checked_add(entry_size)? <= next.checked_add(size)? {
                        let read = Reader { memory, at: entry };
                        self.range(read.u64(0)?, read.u64(8)?, read.u32(16)?);
                        entry = entry.checked_add(entry_size)?;
                    }
                }
                _ => {}
            }
            next = next.checked_add(size.max(8))?.checked_next_multiple_of(8)?;
        }
        Some(())
    }

    fn module(&mut self, start: u64, length: u64) {
        if let Some(slot) = self.modules.iter_mut().find(|slot| slot.is_empty()) {
            *slot = start..start.saturating_add(length).min(TOP);
        }
    }

    fn take_command(&mut self, memory: &Loaded, at: u64) {
        for (index, slot) in (0..).zip(&mut self.command) {
            match memory.bytes(at.saturating_add(index)..at.saturating_add(index + 1)) {
                [byte] if at != 0 && *byte != 0 => *slot = *byte,
                _ => break,
            }
            self.command_length += 1;
        }
    }

    fn range(&mut self, start: u64, length: u64, kind: u32) {
        if kind == RAM {
            self.ram.push(start.max(LOW)..start.saturating_add(length).min(DEVICES));
        }
    }

    /// The largest gap between what is in use, in whole pages.
    fn largest(&self) -> Range<u64> {
        let used = self.modules.iter().cloned().chain([paging::image()]);
        let mut largest = 0..0;
        for ram in self.ram.iter() {
            // A free piece begins where memory begins or something ends.
            let ends = used.clone().map(|range| range.end).filter(|end| ram.contains(end));
            for start in ends.chain([ram.start]) {
                let inside = |range: &Range<u64>| !range.is_empty() && range.contains(&start);
                if used.clone().any(|range| inside(&range)) {
                    continue;
                }
                let next = used.clone().map(|range| range.start).filter(|next| *next >= start);
                let end = next.fold(ram.end, u64::min);
                let piece = start.next_multiple_of(4096)..end / 4096 * 4096;
                if length(&piece) > length(&largest) {
                    largest = piece;
                }
            }
        }
        largest
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Ranges, as many as there is room for.
#[derive(Debug)]
struct List<const N: usize> {
    ranges: [Range<u64>; N],
    length: usize,
}

impl<const N: usize> List<N> {
    const fn new() -> Self {
        Self { ranges: [const { 0..0 }; N], length: 0 }
    }

    fn push(&mut self, range: Range<u64>) {
        if let Some(slot) = self.ranges.get_mut(self.length) {
            *slot = range;
            self.length += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.ranges.iter().take(self.length)
    }
}

/// Numbers at places after an address.
struct Reader<'m> {
    memory: &'m Loaded,
    at: u64,
}

impl Reader<'_> {
    fn u32(&self, offset: u64) -> Option<u32> {
        self.number(offset).map(u32::from_le_bytes)
    }

    fn u64(&self, offset: u64) -> Option<u64> {
        self.number(offset).map(u64::from_le_bytes)
    }

    fn number<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let start = self.at.checked_add(offset)?;
        let end = start.checked_add(N as u64)?;
        self.memory.bytes(start..end).try_into().ok()
    }
}

const PVH: u32 = 0x336e_c578;
const MULTIBOOT2: u32 = 0x36d7_6289;
/// The kind of a range of ordinary memory, in both formats.
const RAM: u32 = 1;
