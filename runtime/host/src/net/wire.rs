//! What a client asks of the operating system, and nothing else
//!
//! # Not here
//! Which addresses it may ask for (`super`).

use core::net::{IpAddr, SocketAddr};
use core::pin::Pin;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};

/// The network of a machine, or of a test.
pub(super) trait Wire: Send + Sync {
    /// The addresses of a name.
    fn resolve<'a>(&'a self, name: &'a str) -> Waiting<'a, Vec<IpAddr>>;

    /// A connection to an address.
    fn connect(&self, to: SocketAddr) -> Waiting<'_, Box<dyn Stream>>;
}

/// What the operating system is waited for.
pub(super) type Waiting<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// A connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// This machine: its resolver and its routes.
pub(super) struct System;

impl Wire for System {
    fn resolve<'a>(&'a self, name: &'a str) -> Waiting<'a, Vec<IpAddr>> {
        Box::pin(async move {
            let found = lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    fn connect(&self, to: SocketAddr) -> Waiting<'_, Box<dyn Stream>> {
        Box::pin(async move {
            let stream = TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            let stream: Box<dyn Stream> = Box::new(stream);
            Ok(stream)
        })
    }
}
