//! What a disk must be able to do.
//!
//! # Not here
//! How it does it (a driver).

use core::fmt;

use crate::store::Failed;

/// Bytes in whole sectors, some of which a power cut may lose.
///
/// What was written before a flush is there after a power cut; of what was
/// written since, each sector is as it was or as it was to be.
pub trait Device: fmt::Debug + Send + Sync + 'static {
    /// Bytes, a multiple of [`SECTOR`].
    fn bytes(&self) -> u64;

    /// Reads whole sectors.
    ///
    /// # Errors
    /// [`Failed`], also where the range is not the device's.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Failed>;

    /// Writes whole sectors.
    ///
    /// # Errors
    /// As [`Device::read`].
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failed>;

    /// Waits until everything that was written is safe.
    ///
    /// # Errors
    /// [`Failed`].
    fn flush(&self) -> Result<(), Failed>;
}

/// Bytes that are read and written at once.
pub const SECTOR: usize = 512;
