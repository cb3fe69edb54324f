//! Listeners and connections of this machine
//!
//! The operating system keeps what waits, a bounded part of it, and lets who sends
//! more wait. Nothing is read ahead, and no thread waits for anything.
//!
//! # Not here
//! Where a run may listen, and how many sockets it has (gate 4, the kernel).

use core::net::SocketAddr;
use core::task::{Context, Poll, ready};
use std::io::{self, ErrorKind};

use rustix::net::sockopt::set_ipv6_v6only;
use synapse_primitives::Fault;
use synapse_primitives::platform::{Accepted, Connection, Listener};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 128;

/// As [`Platform::listen`](synapse_primitives::Platform::listen).
pub(super) fn listen(at: SocketAddr) -> Result<Box<dyn Listener>, Fault> {
    let open = || -> io::Result<TcpListener> {
        let socket = match at {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => {
                let socket = TcpSocket::new_v6()?;
                // All of IPv4 is another address, and would have to be named.
                set_ipv6_v6only(&socket, true)?;
                socket
            }
        };
        // Connections of a listener that was closed do not keep its address.
        socket.set_reuseaddr(true)?;
        socket.bind(at)?;
        socket.listen(BACKLOG)
    };
    open().map(|listener| Box::new(Open(listener)) as Box<dyn Listener>).map_err(|why| {
        match why.kind() {
            ErrorKind::AddrInUse => Fault::Exists,
            ErrorKind::AddrNotAvailable => Fault::NotFound,
            _ => failed(&why),
        }
    })
}

struct Open(TcpListener);

impl Listener for Open {
    fn poll_accept(&self, context: &Context<'_>) -> Poll<Result<Accepted, Fault>> {
        loop {
            let mut context = Context::from_waker(context.waker());
            let accepted = match ready!(self.0.poll_accept(&mut context)) {
                Ok((stream, peer)) => accepted(stream, peer),
                Err(why) => Err(why),
            };
            match accepted {
                Ok(accepted) => return Poll::Ready(Ok(accepted)),
                // Who hung up meanwhile is nobody.
                Err(why) if is_gone(&why) => {}
                Err(why) => return Poll::Ready(Err(failed(&why))),
            }
        }
    }
}

fn accepted(stream: TcpStream, peer: SocketAddr) -> io::Result<Accepted> {
    stream.set_nodelay(true)?;
    let here = stream.local_addr()?.ip();
    Ok(Accepted { peer: peer.ip(), here, connection: Box::new(Wired(stream)) })
}

struct Wired(TcpStream);

impl Connection for Wired {
    fn poll_read(&self, context: &Context<'_>, into: &mut [u8]) -> Poll<Result<usize, Fault>> {
        let ready = |context: &mut Context<'_>| self.0.poll_read_ready(context);
        poll(context, ready, || self.0.try_read(into))
    }

    fn poll_write(&self, context: &Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Fault>> {
        let ready = |context: &mut Context<'_>| self.0.poll_write_ready(context);
        poll(context, ready, || self.0.try_write(bytes))
    }
}

/// Tries once the socket is ready for it.
fn poll(
    context: &Context<'_>,
    ready: impl Fn(&mut Context<'_>) -> Poll<io::Result<()>>,
    mut try_it: impl FnMut() -> io::Result<usize>,
) -> Poll<Result<usize, Fault>> {
    loop {
        let tried = match ready!(ready(&mut Context::from_waker(context.waker()))) {
            Ok(()) => try_it(),
            Err(why) => Err(why),
        };
        match tried {
            Ok(count) => return Poll::Ready(Ok(count)),
            Err(why) if why.kind() == ErrorKind::WouldBlock => {}
            Err(why) if is_gone(&why) => return Poll::Ready(Err(Fault::Closed)),
            Err(why) => return Poll::Ready(Err(failed(&why))),
        }
    }
}

fn is_gone(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::NotConnected
    )
}

fn failed(why: &io::Error) -> Fault {
    use rustix::io::Errno;
    match Errno::from_io_error(why) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Fault::TooMany,
        Some(Errno::ACCESS | Errno::PERM) => Fault::HostDenied,
        _ => Fault::Io,
    }
}
