//! Reading a log back, and finding the first record that is not as written.
//!
//! # Invariants
//! - I3: a record that was altered, inserted, left out or moved breaks the
//!   chain at itself or at the one after, and is named.
//!
//! # Not here
//! Sentences for people (the command line).

use sha2::{Digest, Sha256};
use synapse_abi::registry::Primitive;
use synapse_reply::code;

use crate::record::{CHAIN, HEAD, HEADER, Kind, MAGIC, RECORD, VERSION};

/// One record, as it stands in a log.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// What it is about.
    pub kind: Kind,
    /// Which primitive, if any.
    pub primitive: Option<Primitive>,
    /// The gate that refused: 1 to 4, else 0.
    pub gate: u8,
    /// 0 for a permission or a success, else a code of the ABI.
    pub code: u16,
    /// Integrity: 0 System, 1 User, 2 Ingested.
    pub integrity: u8,
    /// Bit 0 destructive, bit 1 egress, bit 2 held.
    pub class: u8,
    /// Its number.
    pub sequence: u64,
    /// Milliseconds since 1970.
    pub time: u64,
    /// The task's number.
    pub task: u64,
    /// Compartment bits.
    pub secrecy: u64,
    /// The record it answers or rests on.
    pub cause: Option<u64>,
    tail: &'a [u8],
}

impl<'a> Record<'a> {
    /// The first field with this tag.
    #[must_use]
    pub fn field(&self, tag: u8) -> Option<&'a [u8]> {
        self.fields().find(|(found, _)| *found == tag).map(|(_, bytes)| bytes)
    }

    /// The tail's fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut rest = self.tail;
        core::iter::from_fn(move || {
            let (&tag, after) = rest.split_first()?;
            let (length, after) = after.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (bytes, after) = after.split_at_checked(length)?;
            rest = after;
            Some((tag, bytes))
        })
    }
}

/// What is wrong with a log, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The file is no log, or of a version that this program does not know.
    Header,
    /// This record is not as it was written, or is not the one that was written
    /// here.
    Record(u64),
    /// The file ends inside this record.
    Torn(u64),
}

/// Iterates over a log's records, checking the chain on the way. After a
/// `Broken` there is nothing more.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    chain: [u8; CHAIN],
    next: u64,
    header: Option<Broken>,
}

impl<'a> Reader<'a> {
    /// Reads the bytes of a log.
    #[must_use]
    pub fn new(log: &'a [u8]) -> Self {
        let split = log.split_first_chunk::<HEADER>();
        let known = split.and_then(|(header, rest)| {
            let (magic, after) = header.split_first_chunk::<12>()?;
            let (version, _) = after.split_first_chunk::<4>()?;
            let version = u32::from_le_bytes(*version);
            (*magic == MAGIC && version == u32::from(VERSION)).then_some((header, rest))
        });
        match known {
            Some((header, rest)) => {
                Self { rest, chain: Sha256::digest(header).into(), next: 0, header: None }
            }
            None => Self { rest: &[], chain: [0; CHAIN], next: 0, header: Some(Broken::Header) },
        }
    }

    /// The chain value after the records read so far.
    #[must_use]
    pub const fn chain(&self) -> [u8; CHAIN] {
        self.chain
    }

    fn record(&mut self) -> Result<Record<'a>, Broken> {
        let torn = Broken::Torn(self.next);
        let broken = Broken::Record(self.next);
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or(torn)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| broken)?;
        if !(HEAD..=RECORD - CHAIN - 4).contains(&length) {
            return Err(broken);
        }
        let (body, rest) = rest.split_at_checked(length).ok_or(torn)?;
        let (chain, rest) = rest.split_first_chunk::<CHAIN>().ok_or(torn)?;
        let mut hash = Sha256::new();
        hash.update(self.chain);
        hash.update(body);
        let expected: [u8; CHAIN] = hash.finalize().into();
        if expected != *chain {
            return Err(broken);
        }
        let record = parse(body).ok_or(broken)?;
        if record.sequence != self.next {
            return Err(broken);
        }
        self.chain = *chain;
        self.next = self.next.saturating_add(1);
        self.rest = rest;
        Ok(record)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Record<'a>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(broken) = self.header.take() {
            return Some(Err(broken));
        }
        if self.rest.is_empty() {
            return None;
        }
        let record = self.record();
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

fn parse(body: &[u8]) -> Option<Record<'_>> {
    let (head, tail) = body.split_first_chunk::<HEAD>()?;
    let (&[version, kind, primitive, gate, low, high, integrity, class], numbers) =
        head.split_first_chunk::<8>()?;
    let mut numbers = numbers
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
    let (sequence, time, task) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let (secrecy, cause) = (numbers.next()?, numbers.next()?);
    let code = u16::from_le_bytes([low, high]);
    let primitive = match primitive {
        u8::MAX => None,
        id => Some(Primitive::from_id(id)?),
    };
    let sound = version == VERSION && integrity <= 2 && gate == code::gate(code).unwrap_or(0);
    sound.then_some(Record {
        kind: Kind::from_number(kind)?,
        primitive,
        gate,
        code,
        integrity,
        class,
        sequence,
        time,
        task,
        secrecy,
        cause: (cause != u64::MAX).then_some(cause),
        tail,
    })
}
