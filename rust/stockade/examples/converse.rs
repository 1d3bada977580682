//! Starts a server, sends it a line, prints what comes back and how it ended.
//!
//! `cargo run --example converse -- cat`

use std::time::Duration;

use stockade::command::{Inherit, Server};
use stockade::{Error, Options, Received, Session, Shutdown, Sink};

fn main() -> Result<(), Error> {
    let mut words = std::env::args_os().skip(1);
    let command = words.next().unwrap_or_else(|| "cat".into());
    let server = Server::new(
        command,
        words.collect(),
        None,
        vec![],
        Inherit::Safe(vec![]),
    )?;
    let sink = Sink::Lines(Box::new(|lines| {
        for line in lines {
            eprintln!("stderr: {}", stockade::stderr::text::sanitise(line));
        }
    }));
    let session = Session::launch(
        &server,
        Options {
            sink,
            ..Options::default()
        },
    )?;
    println!(
        "started {} as process {}",
        session.command().program.display(),
        session.pid()
    );

    session.send(br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#)?;
    if let Received::Frame(frame) = session.receive_blocking(Some(Duration::from_secs(10)))? {
        println!("received {}", String::from_utf8_lossy(&frame.bytes));
    }

    session.close(Shutdown::default());
    if let Some(report) = session.wait(Some(Duration::from_secs(10))) {
        println!("{} ({})", report.cause, report.ended_by.as_str());
    }
    Ok(())
}
