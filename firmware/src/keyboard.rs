//! A PS/2 keyboard: what its keys mean on an American layout, polled
//!
//! # Not here
//! Lines (`console`). Other devices behind the same controller: their bytes are
//! thrown away.

use crate::port;

const DATA: u16 = 0x60;
const STATUS: u16 = 0x64;
const HAS_BYTE: u8 = 1;
const OF_MOUSE: u8 = 1 << 5;

/// Which keys are held down.
#[derive(Debug, Default)]
pub(crate) struct Keyboard {
    shift: bool,
    control: bool,
}

impl Keyboard {
    /// The next character that was typed, if any.
    pub(crate) fn poll(&mut self) -> Option<u8> {
        loop {
            let status = port::read(STATUS);
            // All bits set is what stands where no controller is.
            if status == u8::MAX || status & HAS_BYTE == 0 {
                return None;
            }
            let code = port::read(DATA);
            if status & OF_MOUSE == 0
                && let Some(byte) = self.key(code)
            {
                return Some(byte);
            }
        }
    }

    fn key(&mut self, code: u8) -> Option<u8> {
        // The highest bit says that a key was let go.
        let (key, down) = (code & 0x7f, code & 0x80 == 0);
        match key {
            LEFT_SHIFT | RIGHT_SHIFT => self.shift = down,
            CONTROL => self.control = down,
            _ if down => {
                let layout = if self.shift { SHIFTED } else { PLAIN };
                let byte = layout.get(usize::from(key)).copied().filter(|byte| *byte != 0)?;
                return Some(if self.control { byte & 0x1f } else { byte });
            }
            _ => {}
        }
        None
    }
}

const CONTROL: u8 = 0x1d;
const LEFT_SHIFT: u8 = 0x2a;
const RIGHT_SHIFT: u8 = 0x36;
/// By the number of the key; 0 where a key means nothing here.
const PLAIN: &[u8; 58] =
    b"\0\x1b1234567890-=\x08\tqwertyuiop[]\r\0asdfghjkl;'`\0\\zxcvbnm,./\0*\0 ";
const SHIFTED: &[u8; 58] =
    b"\0\x1b!@#$%^&*()_+\x08\tQWERTYUIOP{}\r\0ASDFGHJKL:\"~\0|ZXCVBNM<>?\0*\0 ";
