//! A session as a Rust program uses it: real processes, from start to end.

#![cfg(unix)]

use std::sync::mpsc;
use std::time::{Duration, Instant};

use stockade::command::{Inherit, Server};
use stockade::{EndedBy, ErrorKind, Options, Received, Report, Session, Shutdown, Sink};

/// Generous: only a hang reaches it.
const LONG: Option<Duration> = Some(Duration::from_secs(60));

fn server(command: &str, args: &[&str]) -> Server {
    let args = args.iter().map(Into::into).collect();
    Server::new(command.into(), args, None, vec![], Inherit::Safe(vec![])).expect("valid")
}

fn shell(script: &str) -> Session {
    Session::launch(&server("sh", &["-c", script]), Options::default()).expect("sh starts")
}

fn frame(session: &Session) -> String {
    match session.receive_blocking(LONG).expect("readable") {
        Received::Frame(frame) => String::from_utf8(frame.bytes).expect("text"),
        other => panic!("no frame but {other:?}"),
    }
}

fn end(session: &Session) -> Report {
    session.wait(LONG).expect("it ends")
}

fn quick() -> Shutdown {
    let wait = Duration::from_millis(50);
    Shutdown {
        close_grace: wait,
        terminate_grace: wait,
        kill_wait: Duration::from_secs(30),
        leave_descendants: false,
    }
}

/// A process is there, and no zombie.
fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .starts_with(" Z")
    })
}

#[test]
fn frames_go_out_and_come_back() {
    let session = Session::launch(&server("cat", &[]), Options::default()).expect("cat starts");
    for text in ["one", "", "three \u{2028} four"] {
        assert!(session.send(text.as_bytes()).expect("open"));
    }
    assert_eq!(frame(&session), "one");
    assert_eq!(frame(&session), "three \u{2028} four");
    session.close(Shutdown::default());
    let report = end(&session);
    assert_eq!(
        (report.returncode, report.ended_by),
        (Some(0), EndedBy::Close)
    );
    assert_eq!(report.cause, "exited with 0");
}

#[test]
fn an_exit_gives_its_status_and_the_end_of_stderr() {
    let session = shell("echo first >&2; printf 'last \\033[31mred' >&2; exit 7");
    let report = end(&session);
    assert_eq!(
        (report.returncode, report.ended_by),
        (Some(7), EndedBy::Exit)
    );
    assert_eq!(report.stderr_tail, "first\nlast red");
    assert!(matches!(session.receive(), Ok(Received::End)));
}

#[test]
fn a_signal_is_named() {
    let report = end(&shell("kill -SEGV $$"));
    assert_eq!(
        (report.returncode, report.cause.as_str()),
        (Some(-libc::SIGSEGV), "killed by SIGSEGV")
    );
}

#[test]
fn what_was_written_before_the_exit_is_still_read() {
    let session = shell("printf '{\"a\":1}\\n{\"b\":2}'");
    end(&session);
    assert_eq!(frame(&session), "{\"a\":1}");
    assert_eq!(frame(&session), "{\"b\":2}");
    assert!(matches!(session.receive(), Ok(Received::End)));
}

#[test]
fn a_deaf_server_is_killed_with_everything_below_it() {
    let script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done' & \
                  while :; do sleep 1000; done";
    let session = shell(script);
    let escaped = frame(&session);
    assert!(runs(&escaped));
    session.close(quick());
    let report = end(&session);
    assert_eq!(
        (report.returncode, report.ended_by),
        (Some(-libc::SIGKILL), EndedBy::Kill)
    );
    assert!(report.descendants_killed >= 2, "{report:?}");
    assert!(!runs(&escaped));
}

#[test]
fn sigterm_reaches_the_whole_tree() {
    let script = "(setsid sh -c 'trap \"echo child; exit\" TERM; echo ready; while :; do sleep 0.05; done') & \
                  trap 'wait; exit 4' TERM; wait";
    let session = shell(script);
    assert_eq!(frame(&session), "ready");
    session.close(Shutdown {
        close_grace: Duration::ZERO,
        terminate_grace: Duration::from_secs(30),
        ..quick()
    });
    let report = end(&session);
    assert_eq!(
        (report.returncode, report.ended_by),
        (Some(4), EndedBy::Terminate)
    );
}

#[test]
fn a_descendant_that_holds_stdout_does_not_hide_the_exit() {
    let session = shell("sleep 1000 & exit 9");
    let report = end(&session);
    assert_eq!((report.returncode, report.descendants_killed), (Some(9), 1));
    assert!(matches!(session.receive_blocking(LONG), Ok(Received::End)));
}

#[test]
fn descendants_are_left_alone_when_asked() {
    let mut options = Options::default();
    options.shutdown.leave_descendants = true;
    let session = Session::launch(
        &server("sh", &["-c", "sleep 1000 <&- >&- 2>&- & echo $!; exit 0"]),
        options,
    )
    .expect("starts");
    let left = frame(&session);
    let report = end(&session);
    assert_eq!(report.descendants_killed, 0);
    assert!(runs(&left));
    // SAFETY: a process of this test's own, seen alive a moment ago.
    unsafe { libc::kill(left.parse().expect("a pid"), libc::SIGKILL) };
}

#[test]
fn a_stopped_server_is_ended_and_the_report_says_so() {
    let session = shell("kill -STOP $$; while :; do sleep 1000; done");
    let stat = format!("/proc/{}/stat", session.pid());
    while !std::fs::read_to_string(&stat).is_ok_and(|text| text.contains(") T ")) {
        std::thread::yield_now();
    }
    session.close(Shutdown {
        terminate_grace: Duration::from_secs(30),
        ..quick()
    });
    let report = end(&session);
    assert_eq!(
        (report.ended_by, report.returncode),
        (EndedBy::Terminate, Some(-libc::SIGTERM))
    );
    assert!(
        report.cause.contains("had been stopped"),
        "{}",
        report.cause
    );
}

#[test]
fn a_stopped_server_that_is_killed_is_reported_as_such() {
    let session = shell("kill -STOP $$; while :; do sleep 1000; done");
    let stat = format!("/proc/{}/stat", session.pid());
    while !std::fs::read_to_string(&stat).is_ok_and(|text| text.contains(") T ")) {
        std::thread::yield_now();
    }
    session.kill();
    let report = end(&session);
    assert_eq!(report.ended_by, EndedBy::Kill);
    assert!(
        report.cause.contains("had been stopped"),
        "{}",
        report.cause
    );
}

#[test]
fn a_sinks_file_is_closed_with_the_end_although_somebody_holds_stderr() {
    let path = std::env::temp_dir().join(format!("stockade-sink-{}", std::process::id()));
    let mut options = Options {
        sink: Sink::Path(path.clone()),
        ..Options::default()
    };
    options.shutdown.leave_descendants = true;
    let script = "sleep 1000 <&- >&- & echo $!; exit 0";
    let session = Session::launch(&server("sh", &["-c", script]), options).expect("starts");
    let left = frame(&session);
    end(&session);
    let held = std::fs::read_dir("/proc/self/fd")
        .expect("there")
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .any(|target| target == path);
    assert!(!held);
    std::fs::remove_file(&path).expect("made by the sink");
    // SAFETY: a process of this test's own, left alive by it.
    unsafe { libc::kill(left.parse().expect("a pid"), libc::SIGKILL) };
}

#[test]
fn dropping_a_session_ends_its_server() {
    let session = shell("trap '' TERM; echo up; while :; do sleep 1000; done");
    frame(&session);
    let pid = session.pid().to_string();
    session.close(quick());
    drop(session);
    let start = Instant::now();
    while runs(&pid) {
        assert!(start.elapsed() < Duration::from_secs(60), "still there");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_closed_its_stdin_is_not_written_to() {
    let session = shell("exec <&-; echo closed; while :; do sleep 1000; done");
    assert_eq!(frame(&session), "closed");
    let error = loop {
        match session.send(b"{}") {
            Ok(_) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert_eq!(
        (error.kind, error.code),
        (ErrorKind::ServerClosedInput, "server-closed-input")
    );
    session.kill();
    end(&session);
}

#[test]
fn a_server_that_does_not_read_fills_a_bounded_queue() {
    let session = shell("while :; do sleep 1000; done");
    let frame = vec![b'x'; 10_000];
    let mut sent = 0usize;
    while session.send(&frame).expect("open") {
        sent += frame.len();
        assert!(sent < 4 << 20, "no bound");
    }
    assert!(sent >= 1 << 20);
    session.kill();
    end(&session);
}

#[test]
fn a_frame_over_the_limit_ends_the_server() {
    let options = Options {
        max_frame_bytes: 1000,
        ..Options::default()
    };
    let session = Session::launch(
        &server("sh", &["-c", "yes '' | tr -d '\\n' & yes x | tr -d '\\n'"]),
        options,
    )
    .expect("starts");
    let error = session.receive_blocking(LONG).expect_err("too long");
    assert_eq!(
        (error.kind, error.code),
        (ErrorKind::FrameTooLong, "frame-too-long")
    );
    assert!(end(&session).cause.contains("over the limit"));
}

#[test]
fn a_sink_gets_every_line() {
    let (lines, received) = mpsc::channel();
    let sink = Sink::Lines(Box::new(move |batch| {
        for line in batch {
            lines.send(line.clone()).expect("wanted");
        }
    }));
    let options = Options {
        sink,
        ..Options::default()
    };
    let session = Session::launch(
        &server("sh", &["-c", "seq 1000 >&2; printf end >&2"]),
        options,
    )
    .expect("starts");
    end(&session);
    let got: Vec<Vec<u8>> = received.iter().collect();
    assert_eq!(got.len(), 1001);
    assert_eq!(
        (got[999].as_slice(), got[1000].as_slice()),
        (&b"1000"[..], &b"end"[..])
    );
}

#[test]
fn a_panicking_sink_does_not_stop_the_server() {
    let sink = Sink::Lines(Box::new(|_| panic!("a bad sink")));
    let options = Options {
        sink,
        ..Options::default()
    };
    let session =
        Session::launch(&server("sh", &["-c", "seq 10 >&2; exit 3"]), options).expect("starts");
    assert_eq!(end(&session).returncode, Some(3));
}

#[test]
fn what_can_not_start_says_why() {
    let missing = Session::launch(&server("no-such-command-here", &[]), Options::default())
        .err()
        .expect("missing");
    assert_eq!(
        (missing.kind, missing.code),
        (ErrorKind::CommandNotFound, "command-not-found")
    );
    assert!(!missing.tried.is_empty());
    let folder = Session::launch(&server("/tmp", &[]), Options::default())
        .err()
        .expect("a folder");
    assert_eq!(
        (folder.kind, folder.code),
        (ErrorKind::Launch, "is-a-directory")
    );
}

#[test]
fn the_server_has_three_descriptors_default_signals_and_its_own_session() {
    let session = shell("echo up; exec cat");
    assert_eq!(frame(&session), "up");
    let folder = format!("/proc/{}", session.pid());
    let mut open: Vec<String> = std::fs::read_dir(format!("{folder}/fd"))
        .expect("there")
        .map(|entry| {
            entry
                .expect("listed")
                .file_name()
                .into_string()
                .expect("a number")
        })
        .collect();
    open.sort();
    // The shell may hold a copy of one of them for a moment, above 9.
    open.retain(|fd| fd.len() == 1);
    assert_eq!(open, ["0", "1", "2"]);
    let status = std::fs::read_to_string(format!("{folder}/status")).expect("there");
    for kind in ["SigBlk", "SigIgn"] {
        assert!(
            status.contains(&format!("{kind}:\t0000000000000000")),
            "{status}"
        );
    }
    let stat = std::fs::read_to_string(format!("{folder}/stat")).expect("there");
    let after_name: Vec<&str> = stat
        .rsplit(')')
        .next()
        .expect("a name")
        .split_whitespace()
        .collect();
    let pid = session.pid().to_string();
    // state, parent, group, session
    assert_eq!((after_name[2], after_name[3]), (pid.as_str(), pid.as_str()));
    session.kill();
    end(&session);
}
