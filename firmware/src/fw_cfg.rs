//! Files that QEMU hands over beside the boot modules (its `fw_cfg` device)
//!
//! A machine that is booted from a disk has no boot modules; what it is to run
//! can still be given to it: `-fw_cfg name=opt/synapse/bundle,file=…`.
//!
//! # Invariants
//! - The device is believed nothing but bytes: sizes are bounded by what memory
//!   has room for.
//!
//! # Not here
//! What a bundle holds (`synapse_bundle`).

use alloc::vec::Vec;

use crate::port;

/// The bundle, if one was handed over; `Err` with its size where there is no room.
pub(crate) fn bundle() -> Option<Result<&'static [u8], usize>> {
    select(SIGNATURE);
    if read() != *b"QEMU" {
        return None;
    }
    select(DIRECTORY);
    let files = u32::from_be_bytes(read()).min(FILES);
    for _ in 0..files {
        // Size, number, nothing, name.
        let (size, number) = (u32::from_be_bytes(read()), read::<4>());
        let name = read::<56>();
        if name.strip_prefix(NAME).is_some_and(|rest| rest.first() == Some(&0)) {
            let [high, low, ..] = number;
            return Some(file(u16::from_be_bytes([high, low]), size as usize));
        }
    }
    None
}

fn file(number: u16, size: usize) -> Result<&'static [u8], usize> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| size)?;
    bytes.resize(size, 0);
    select(number);
    port::read_all(DATA, &mut bytes);
    Ok(bytes.leak())
}

fn select(number: u16) {
    port::write_u16(SELECTOR, number);
}

fn read<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    port::read_all(DATA, &mut bytes);
    bytes
}

const NAME: &[u8] = b"opt/synapse/bundle";
const SELECTOR: u16 = 0x510;
const DATA: u16 = 0x511;
const SIGNATURE: u16 = 0x0000;
const DIRECTORY: u16 = 0x0019;
/// Files that are looked at.
const FILES: u32 = 256;
