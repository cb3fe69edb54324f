//! A guest that is connected to: alike on both engines, and in great numbers.

use core::net::Ipv4Addr;
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use synapse_abi::registry::Primitive;
use synapse_host::engine::Wasmtime;
use synapse_interpreter::Interpreter;
use synapse_kernel::record::Kind;
use synapse_kernel::task::Crossing;
use synapse_kernel::verify::Reader;

use crate::agents::{alone, by_task, call, close, read, run, taken, unwatched, write};
use crate::engine::{Under, under_both};

fn listen(port: u16) -> String {
    call("net_listen", &format!(r#""host":"127.0.0.1","port":{port}"#))
}

fn accept(listener: u64) -> String {
    call("net_accept", &format!(r#""listener":{listener},"timeout":10000"#))
}

/// A port at which nothing listens.
fn free() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Connects so many times, one after the other, says this each time, and tells what was answered.
fn caller(port: u16, times: usize) -> JoinHandle<Vec<String>> {
    let connect = move || {
        (0..1000)
            .find_map(|_| {
                let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
                if connected.is_none() {
                    thread::sleep(Duration::from_millis(10));
                }
                connected
            })
            .unwrap()
    };
    thread::spawn(move || {
        let each = (0..times).map(|_| {
            let mut peer = connect();
            peer.write_all(b"ping").unwrap();
            let mut heard = String::new();
            peer.read_to_string(&mut heard).unwrap();
            heard
        });
        each.collect()
    })
}

fn a_guest_answers_who_connects<E: Under>() {
    let port = free();
    let calling = caller(port, 2);
    let says = [
        listen(port),
        accept(1),
        read(2, 5000),
        write(2, "pong"),
        close(2),
        accept(1),
        write(3, "again"),
        read(3, 5000),
    ];
    let (answer, ..) = run::<E>(&says, &[], unwatched());
    assert_eq!(answer.unwrap(), [1, 1, 2, 0, b'p', b'i', b'n', b'g']);
    assert_eq!(calling.join().unwrap(), ["pong", "again"], "the end of the run closed the last");
}

fn a_trap_closes_what_listened<E: Under>() {
    let port = free();
    let calling = caller(port, 1);
    // Its answer is a code of its own: there is no such handle.
    let says = [listen(port), accept(1), read(2, 5000), write(2, "last words"), read(9, 0)];
    let (answer, ..) = run::<E>(&says, &[], unwatched());
    answer.unwrap_err();
    assert_eq!(calling.join().unwrap(), ["last words"]);
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
}

under_both! {
    a_guest_answers_who_connects,
    a_trap_closes_what_listened,
}

#[test]
fn i18_both_engines_leave_the_same_log() {
    let port = free();
    let says = [listen(port), accept(1), read(2, 5000), write(2, "pong"), read(2, 0), close(1)];
    let mut logs = Vec::new();
    for run in [run::<Wasmtime>, run::<Interpreter>] {
        let calling = caller(port, 1);
        let (answer, log, _) = run(&says, &[], unwatched());
        answer.unwrap();
        assert_eq!(calling.join().unwrap(), ["pong"]);
        logs.push(by_task(&log));
    }
    assert_eq!(logs[0], logs[1]);
}

#[test]
fn what_a_thousand_connections_leave_is_measured() {
    alone("listen::a_thousand_connections_leave_nothing");
}

#[test]
#[ignore = "measured in a process of its own, by `what_a_thousand_connections_leave_is_measured`"]
fn a_thousand_connections_leave_nothing() {
    let port = free();
    let mut says = vec![listen(port)];
    for round in 0..1000 {
        let line = round + 2;
        says.extend([accept(1), read(line, 5000), write(line, "x"), close(line)]);
    }
    let closed = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&closed);
    let watch = move |crossing: &Crossing<'_>| {
        if crossing.primitive == Some(Primitive::ChannelClose) {
            seen.lock().unwrap().push(taken());
        }
    };
    let calling = caller(port, 1000);
    let (answer, log, _) = run::<Wasmtime>(&says, &[], Arc::new(watch));
    answer.unwrap();
    assert_eq!(calling.join().unwrap(), vec!["x"; 1000]);
    let records = Reader::new(&log).map(Result::unwrap);
    let done = records.filter(|record| record.kind == Kind::Outcome && record.code == 0);
    assert_eq!(done.count(), 4001);
    let closed = closed.lock().unwrap();
    // The last one ends the caller, who is a thread too.
    let (early, late) = (closed[99], closed[989]);
    println!("after 100 connections {early:?}, after 990 {late:?} (threads, descriptors, KiB)");
    // The caller has one more or one less at any time.
    assert!(early.0 == late.0 && early.1.abs_diff(late.1) <= 2, "{early:?} {late:?}");
    assert!(late.2 < early.2 + 8192, "{early:?} {late:?}");
}
