//! What a task holds besides values: ends of channels, children, and listeners.
//!
//! Handles are numbers of the task's own table, so what they stand for is the
//! kernel's: it implements these verbs, as a board implements those of a platform.
//!
//! # Invariants
//! - I4, I5: what came from another task or from a peer, a report, a message or that
//!   there is none, carries a label.
//!
//! # Not here
//! Which handle a call may name (gate 2), and which grant a child may have (gate 4).

use alloc::vec::Vec;
use core::future::Future;
use core::net::{IpAddr, SocketAddr};

use synapse_boundary::Warrants;
use synapse_boundary::scope::Terms;
use synapse_reply::Fault;

use crate::labelled::Labelled;

/// What the calls of one task do with its handles.
pub trait Hands: Send {
    /// Starts a child: its handle.
    ///
    /// # Errors
    /// `Unsupported` where the board has no packages, `NotFound`, `NotText` for a task
    /// that is none, `TooMany`, `NoRoom`, `NoRecord`.
    fn spawn(&mut self, order: Spawn<'_>) -> impl Future<Output = Result<u64, Fault>> + Send;

    /// Waits for a child's report, at most so many milliseconds. `TimedOut`; `Closed`
    /// where it ended without one, for whatever reason; `NoRoom`, `Cancelled`.
    fn wait(
        &mut self,
        agent: u64,
        timeout: u64,
    ) -> impl Future<Output = Labelled<Result<Vec<u8>, Fault>>> + Send;

    /// Makes a channel: its two ends.
    ///
    /// # Errors
    /// `TooMany`.
    fn channel(&mut self, carries: Carries) -> Result<[u64; 2], Fault>;

    /// Sends, once there is room. `TooLarge`; `Closed` where nobody can receive it;
    /// `TimedOut`, `Cancelled`.
    fn send(
        &mut self,
        channel: u64,
        message: Labelled<Vec<u8>>,
    ) -> impl Future<Output = Labelled<Result<(), Fault>>> + Send;

    /// Receives at most so many bytes, waiting at most so many milliseconds.
    /// `TimedOut`; `Closed` where nothing will come; `TooLarge` for a whole message
    /// that is longer, which stays; `Cancelled`.
    fn receive(
        &mut self,
        channel: u64,
        max: usize,
        timeout: u64,
    ) -> impl Future<Output = Labelled<Result<Vec<u8>, Fault>>> + Send;

    /// Listens at an address, under these terms: its handle.
    ///
    /// # Errors
    /// As [`Platform::listen`](crate::Platform::listen), and `TooMany`.
    fn listen(&mut self, at: SocketAddr, terms: Terms) -> Result<u64, Fault>;

    /// Takes the next connection that comes from and to addresses which are admitted,
    /// waiting at most so many milliseconds: an end of a channel. `TimedOut`,
    /// `TooMany`, `Cancelled`, `Io`.
    fn accept(
        &mut self,
        listener: u64,
        timeout: u64,
        admits: &(dyn Fn(IpAddr) -> bool + Sync),
    ) -> impl Future<Output = Labelled<Result<u64, Fault>>> + Send;

    /// Closes a handle; a child ends.
    fn close(&mut self, handle: u64);

    /// Moves an end of a channel to a child. `Closed` where that has ended.
    fn grant(&mut self, channel: u64, agent: u64) -> Labelled<Result<(), Fault>>;
}

/// What a child is to be.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// The record of the decision.
    pub record: u64,
    /// The package's name.
    pub package: &'a str,
    /// Its task; the label is that of everything it may come from.
    pub task: Labelled<Vec<u8>>,
    /// The grant that is asked for, as the sentence has it.
    pub grant: &'a str,
    /// What its parent moves to it.
    pub warrants: Warrants,
}

/// What a channel keeps of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// The bytes: what is received may be a part of what was sent.
    Bytes,
    /// Where each message begins and ends.
    Messages,
}
