//! Time that a guest computes, by a board's clock or by fuel.
//!
//! Fuel is what wasmi counts: about one unit an instruction, more where one
//! instruction moves much memory. A guest gets it slice by slice. Between two
//! slices others may run, and the turn's bounds are looked at.
//!
//! # Not here
//! Waits inside the door: they are not charged.

use core::time::Duration;

/// By what the time is measured that a guest may compute.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    /// By a monotonic clock: a deadline is kept as people count it.
    Clock(fn() -> Duration),
    /// By fuel alone: the same turn ends at the same instruction wherever it
    /// runs, and no clock is needed.
    Fuel {
        /// Units of fuel that are charged as one second.
        per_second: u64,
    },
}

/// What one turn has spent.
#[derive(Debug)]
pub(crate) struct Meter {
    time: Time,
    /// Nanoseconds of the clock, or units of fuel.
    limit: u64,
    spent: u64,
    /// When the running slice began, and with how much fuel.
    since: Duration,
    slice: u64,
}

impl Meter {
    pub(crate) fn new(time: Time, deadline: Duration) -> Self {
        let limit = match time {
            Time::Clock(_) => deadline.as_nanos(),
            Time::Fuel { per_second } => deadline
                .as_nanos()
                .saturating_mul(per_second.into())
                .div_ceil(Duration::from_secs(1).as_nanos()),
        };
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        Self { time, limit, spent: 0, since: Duration::ZERO, slice: 0 }
    }

    /// Whether the guest has used up its time.
    pub(crate) const fn is_spent(&self) -> bool {
        self.spent >= self.limit
    }

    /// The guest computes from now on: the fuel of its next slice, unless it
    /// needs more at once than it has time for.
    pub(crate) fn begin(&mut self, least: u64) -> Option<u64> {
        self.slice = match self.time {
            Time::Clock(now) => {
                self.since = now();
                SLICE.max(least)
            }
            Time::Fuel { .. } => {
                let left = self.limit.saturating_sub(self.spent);
                if left < least.max(1) {
                    self.spent = self.limit;
                    return None;
                }
                SLICE.max(least).min(left)
            }
        };
        Some(self.slice)
    }

    /// The guest computes no longer, and has this much left of its slice.
    pub(crate) fn end(&mut self, left: u64) {
        let spent = match self.time {
            Time::Clock(now) => {
                let passed = now().saturating_sub(self.since).as_nanos();
                u64::try_from(passed).unwrap_or(u64::MAX)
            }
            Time::Fuel { .. } => self.slice.saturating_sub(left),
        };
        self.spent = self.spent.saturating_add(spent);
    }
}

/// Fuel of one slice: less than 10 ms, even interpreted without optimisation.
const SLICE: u64 = 500_000;

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    static NOW: AtomicU64 = AtomicU64::new(0);

    fn pass(millis: u64) {
        NOW.fetch_add(millis, Ordering::Relaxed);
    }

    #[test]
    fn a_clock_charges_only_what_passes_inside_a_slice() {
        let time = Time::Clock(|| Duration::from_millis(NOW.load(Ordering::Relaxed)));
        let mut meter = Meter::new(time, Duration::from_millis(3));
        pass(100);
        assert_eq!(meter.begin(7), Some(SLICE));
        pass(2);
        meter.end(0);
        pass(100);
        assert!(!meter.is_spent());
        assert_eq!(meter.begin(SLICE + 1), Some(SLICE + 1));
        pass(1);
        meter.end(0);
        assert!(meter.is_spent());
    }

    #[test]
    fn fuel_ends_exactly_where_the_deadline_is() {
        let time = Time::Fuel { per_second: 10 * SLICE };
        let mut meter = Meter::new(time, Duration::from_millis(150));
        assert_eq!(meter.begin(0), Some(SLICE));
        meter.end(100);
        assert_eq!(meter.begin(0), Some(SLICE / 2 + 100));
        meter.end(50);
        assert!(!meter.is_spent());
        assert_eq!(meter.begin(51), None);
        assert!(meter.is_spent());
    }

    #[test]
    fn no_time_is_spent_at_once_and_endless_time_never() {
        let time = Time::Fuel { per_second: 1000 };
        assert!(Meter::new(time, Duration::ZERO).is_spent());
        assert_eq!(Meter::new(time, Duration::from_nanos(1)).limit, 1);
        assert_eq!(Meter::new(time, Duration::MAX).limit, u64::MAX);
    }
}
