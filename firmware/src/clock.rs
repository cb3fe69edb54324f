//! The time: of day from the clock chip, and passing by the processor's ticks.
//!
//! The chip is read once; from there the ticks count on, at a rate that is
//! measured against the interval timer.
//!
//! # Invariants
//! - Time never runs backwards.
//!
//! # Not here
//! Time that a guest may compute: its engine asks for [`passed`].

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use crate::{cpu, port, println};

/// Milliseconds since 1970 when the image started; 0 if no chip told.
static START: AtomicU64 = AtomicU64::new(0);
/// Ticks when it started.
static FIRST: AtomicU64 = AtomicU64::new(0);
/// Whether a call has crossed the door.
static CALLED: AtomicBool = AtomicBool::new(false);
/// Ticks of a millisecond.
static RATE: AtomicU64 = AtomicU64::new(0);

/// Reads the chip and measures the ticks. `false` if there is no chip: days are
/// then counted from 1970.
pub(crate) fn init() -> bool {
    FIRST.store(cpu::ticks(), Ordering::Relaxed);
    RATE.store(measure().unwrap_or(USUAL_RATE), Ordering::Relaxed);
    let now = chip();
    START.store(now.unwrap_or(0), Ordering::Relaxed);
    now.is_some()
}

/// Notes that a call has crossed the door; of all, the first is told.
pub(crate) fn first_call() {
    if !CALLED.swap(true, Ordering::Relaxed) {
        println!("first call: {} ticks since the machine was started", cpu::ticks());
    }
}

/// How long ago the image started.
pub(crate) fn passed() -> Duration {
    let ticks = cpu::ticks().saturating_sub(FIRST.load(Ordering::Relaxed));
    let nanoseconds =
        u128::from(ticks) * 1_000_000 / u128::from(RATE.load(Ordering::Relaxed).max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let passed = u64::try_from(passed().as_millis()).unwrap_or(u64::MAX);
    START.load(Ordering::Relaxed).saturating_add(passed)
}

/// Ticks of a millisecond. Whoever runs this machine may take its processor away
/// in the middle of a measurement, so the one of three that lies between counts.
fn measure() -> Option<u64> {
    let (one, other, third) = (measure_once()?, measure_once()?, measure_once()?);
    Some(one.min(other).max(one.max(other).min(third)))
}

/// By the interval timer's first channel, which counts down; its interrupt is
/// never seen.
fn measure_once() -> Option<u64> {
    // Channel 0, both bytes, counting down once.
    port::write(TIMER_COMMAND, 0x30);
    port::write(TIMER_CHANNEL, u8::MAX);
    port::write(TIMER_CHANNEL, u8::MAX);
    let (start, first) = (count(), cpu::ticks());
    for _ in 0..PATIENCE {
        let gone = start.saturating_sub(count());
        if gone >= COUNT {
            let ticks = cpu::ticks().saturating_sub(first);
            return Some(ticks * COUNTS_MS / u64::from(gone)).filter(|rate| *rate > 0);
        }
    }
    None
}

/// What is left of the timer's count.
fn count() -> u16 {
    port::write(TIMER_COMMAND, 0);
    u16::from_le_bytes([port::read(TIMER_CHANNEL), port::read(TIMER_CHANNEL)])
}

/// What the clock chip says, if there is one and it says a time.
fn chip() -> Option<u64> {
    // Twice the same, and no change under way, or it was read while it changed.
    let mut before = None;
    for _ in 0..PATIENCE {
        if register(0x0a) & 0x80 != 0 {
            continue;
        }
        let now = [9, 8, 7, 4, 2, 0].map(register);
        if before == Some(now) {
            return time(now, register(0x0b));
        }
        before = Some(now);
    }
    None
}

fn register(index: u8) -> u8 {
    port::write(0x70, index);
    port::read(0x71)
}

/// Year to second as the chip has them, in milliseconds since 1970.
fn time(registers: [u8; 6], format: u8) -> Option<u64> {
    let (binary, whole_day) = (format & 4 != 0, format & 2 != 0);
    let afternoon = !whole_day && registers.get(3)? & 0x80 != 0;
    let [year, month, day, hour, minute, second] = registers.map(|register| {
        let register = if whole_day { register } else { register & 0x7f };
        u64::from(if binary { register } else { register / 16 * 10 + register % 16 })
    });
    let hour = if whole_day { hour } else { hour % 12 + if afternoon { 12 } else { 0 } };
    let sound = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sound || hour > 23 || minute > 59 || second > 59 || year > 99 {
        return None;
    }
    // Years are counted from March, so that the leap day is a year's last.
    let (year, month) = if month > 2 { (2000 + year, month - 3) } else { (1999 + year, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(MARCH_TO_1970)?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000)
}

const TIMER_CHANNEL: u16 = 0x40;
const TIMER_COMMAND: u16 = 0x43;
/// What the timer counts in a millisecond, and for how long it is watched.
const COUNTS_MS: u64 = 1193;
const COUNT: u16 = 2000;
/// Looks at a device that does not answer before it counts as missing.
const PATIENCE: u32 = 1_000_000;
/// Ticks of a millisecond where there is no timer: 1 GHz.
const USUAL_RATE: u64 = 1_000_000;
/// Days from March of year 0 to the start of 1970.
const MARCH_TO_1970: u64 = 719_468;
