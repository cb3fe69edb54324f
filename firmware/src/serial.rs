//! The serial line: a 16550 at the first address, polled
//!
//! A line that nobody reads must not stop the image, so a byte that cannot be
//! sent within a bounded number of looks is dropped.
//!
//! # Not here
//! Who typed it (console). What may be shown (the one renderer).

use core::fmt::{self, Write};

use crate::port;

const BASE: u16 = 0x3f8;
const LINE_STATUS: u16 = BASE + 5;
const RECEIVED: u8 = 1;
const CAN_SEND: u8 = 1 << 5;
/// Looks at a line that does not move before a byte is given up.
const PATIENCE: u32 = 1 << 20;

/// Sets 115200 baud, eight bits, no interrupts, and empties the queues.
pub(crate) fn init() {
    for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 7), (4, 3)] {
        port::write(BASE + register, value);
    }
}

fn send(bytes: &[u8]) {
    for byte in bytes {
        let mut looks = 0;
        while port::read(LINE_STATUS) & CAN_SEND == 0 && looks < PATIENCE {
            looks += 1;
        }
        port::write(BASE, *byte);
    }
}

/// A byte that has arrived.
pub(crate) fn receive() -> Option<u8> {
    match port::read(LINE_STATUS) {
        // All bits set is what stands where no device is.
        u8::MAX => None,
        status if status & RECEIVED == 0 => None,
        _ => Some(port::read(BASE)),
    }
}

/// Sends text, each line feed as the two characters that a terminal wants.
pub(crate) fn show(text: &str) {
    for part in text.split_inclusive('\n') {
        match part.strip_suffix('\n') {
            Some(line) => {
                send(line.as_bytes());
                send(b"\r\n");
            }
            None => send(part.as_bytes()),
        }
    }
}

/// The line as a place to format to.
#[derive(Debug)]
pub(crate) struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        show(text);
        Ok(())
    }
}

/// Prints a line of the image's own.
#[macro_export]
#[doc(hidden)]
macro_rules! println {
    ($($part:tt)*) => {{
        use core::fmt::Write as _;
        // The line cannot fail: what it does not take is dropped.
        let _ = writeln!($crate::serial::Serial, $($part)*);
    }};
}
