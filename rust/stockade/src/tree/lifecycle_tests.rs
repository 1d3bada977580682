use super::*;

const EXIT: Exit = Exit {
    status: 0,
    user: Duration::ZERO,
    system: Duration::ZERO,
};

fn shutdown() -> Shutdown {
    Shutdown {
        close_grace: Duration::from_secs(1),
        terminate_grace: Duration::from_secs(2),
        kill_wait: Duration::from_secs(3),
        leave_descendants: false,
    }
}

#[test]
fn a_polite_server_is_neither_terminated_nor_killed() {
    let start = Instant::now();
    let mut life = Lifecycle::new(shutdown());
    let first = life.handle(Input::Close(shutdown()), start);
    assert_eq!(
        first,
        [
            Action::SetLeave(false),
            Action::CloseStdin,
            Action::DrainStdout
        ]
    );
    assert!(
        life.handle(Input::Exited(EXIT), start)
            .contains(&Action::TellExited)
    );
    assert!(
        life.handle(Input::Empty(0), start)
            .contains(&Action::EndStdout)
    );
    assert_eq!(life.handle(Input::Drained, start), [Action::Finish]);
    assert_eq!((life.ended_by, life.unkillable), (EndedBy::Close, 0));
}

#[test]
fn a_deaf_server_is_terminated_then_killed_then_given_up() {
    let start = Instant::now();
    let mut life = Lifecycle::new(shutdown());
    life.handle(Input::Close(shutdown()), start);
    assert_eq!(life.deadline(), Some(start + Duration::from_secs(1)));
    let at = start + Duration::from_secs(1);
    assert_eq!(
        life.handle(Input::Deadline, at),
        [Action::DropStdin, Action::Terminate]
    );
    let at = at + Duration::from_secs(2);
    assert_eq!(life.handle(Input::Deadline, at), [Action::KillTree]);
    life.handle(Input::Left(2), at);
    let at = at + Duration::from_secs(3);
    assert!(
        life.handle(Input::Deadline, at)
            .contains(&Action::EndStdout)
    );
    let at = at + DRAIN;
    assert_eq!(life.handle(Input::Deadline, at), [Action::EndStderr]);
    assert_eq!(
        life.handle(Input::Deadline, at + SINK_WAIT),
        [Action::Finish]
    );
    assert_eq!((life.ended_by, life.unkillable), (EndedBy::Kill, 2));
}

#[test]
fn a_deadline_that_has_not_passed_changes_nothing() {
    let start = Instant::now();
    let mut life = Lifecycle::new(shutdown());
    life.handle(Input::Close(shutdown()), start);
    assert_eq!(life.handle(Input::Deadline, start), []);
}

#[test]
fn a_second_close_only_makes_it_faster() {
    let start = Instant::now();
    let mut life = Lifecycle::new(shutdown());
    life.handle(Input::Close(shutdown()), start);
    let slower = Shutdown {
        close_grace: Duration::from_secs(60),
        ..shutdown()
    };
    assert_eq!(life.handle(Input::Close(slower), start), []);
    assert_eq!(life.deadline(), Some(start + Duration::from_secs(1)));
    let faster = Shutdown {
        close_grace: Duration::ZERO,
        ..shutdown()
    };
    life.handle(Input::Close(faster), start);
    assert_eq!(
        life.handle(Input::Deadline, start),
        [Action::DropStdin, Action::Terminate]
    );
}

#[test]
fn an_unasked_exit_keeps_stdout_for_its_reader() {
    let start = Instant::now();
    let mut life = Lifecycle::new(shutdown());
    let actions = life.handle(Input::Exited(EXIT), start);
    assert!(!actions.contains(&Action::DrainStdout));
    life.handle(Input::Empty(1), start);
    life.handle(Input::Drained, start);
    assert!(life.ended());
    assert_eq!((life.ended_by, life.descendants_killed), (EndedBy::Exit, 1));
}

#[test]
fn a_killed_owner_is_not_waited_for() {
    let start = Instant::now();
    let mut life = Lifecycle::new(shutdown());
    assert!(
        life.handle(Input::OwnerGone, start)
            .contains(&Action::EndStdout)
    );
    assert_eq!(life.handle(Input::Drained, start), [Action::Finish]);
    assert!(life.owner_killed && life.exit.is_none());
}

#[test]
fn a_wrapper_that_dies_of_sigterm_leaves_what_it_wraps_its_grace() {
    let start = Instant::now();
    let mut life = Lifecycle::new(shutdown());
    life.handle(Input::Close(shutdown()), start);
    life.handle(Input::Deadline, start + Duration::from_secs(1));
    let at = start + Duration::from_secs(2);
    assert_eq!(life.handle(Input::Exited(EXIT), at), [Action::TellExited]);
    assert_eq!(life.deadline(), Some(start + Duration::from_secs(3)));
    let at = start + Duration::from_secs(3);
    assert!(life.handle(Input::Deadline, at).contains(&Action::KillTree));
    assert_eq!(life.ended_by, EndedBy::Terminate);
}

#[test]
fn a_close_while_it_drains_drops_stdout() {
    let start = Instant::now();
    let mut life = Lifecycle::new(shutdown());
    life.handle(Input::Exited(EXIT), start);
    life.handle(Input::Empty(0), start);
    let actions = life.handle(Input::Close(shutdown()), start);
    assert!(actions.contains(&Action::DrainStdout) && actions.contains(&Action::EndStdout));
}

#[test]
fn waits_too_long_for_the_clock_are_fine() {
    let start = Instant::now();
    let endless = Shutdown {
        close_grace: Duration::MAX,
        terminate_grace: Duration::MAX,
        ..shutdown()
    };
    let mut life = Lifecycle::new(endless);
    life.handle(Input::Close(endless), start);
    assert!(life.deadline().is_some());
}

#[test]
fn a_crash_that_a_refused_write_told_of_first_is_no_polite_end() {
    let start = Instant::now();
    let mut life = Lifecycle::new(shutdown());
    life.handle(Input::Refused, start);
    life.handle(Input::Close(shutdown()), start);
    life.handle(Input::Exited(EXIT), start);
    assert_eq!(life.ended_by, EndedBy::Exit);
}

#[test]
fn kill_during_the_grace_skips_the_rest() {
    let start = Instant::now();
    let mut life = Lifecycle::new(shutdown());
    life.handle(Input::Close(shutdown()), start);
    assert!(life.handle(Input::Kill, start).contains(&Action::KillTree));
    assert_eq!(life.handle(Input::Kill, start), []);
    assert_eq!(life.ended_by, EndedBy::Kill);
}

proptest::proptest! {
    /// Whatever comes in whatever order: passing time alone ends it, within the sum of the waits, and then nothing
    /// happens any more.
    #[test]
    fn every_closed_server_ends_within_its_waits(inputs in proptest::collection::vec(0usize..8, 0..20)) {
        let start = Instant::now();
        let mut life = Lifecycle::new(shutdown());
        let all = [
            Input::Close(shutdown()), Input::Kill, Input::Fail(Fault::Panic), Input::Exited(EXIT),
            Input::Stopped(true), Input::Left(1), Input::Empty(0), Input::OwnerGone,
        ];
        for input in inputs {
            life.handle(all[input], start);
        }
        life.handle(Input::Close(shutdown()), start);
        let mut now = start;
        for _ in 0..7 {
            if let Some(deadline) = life.deadline() {
                now = now.max(deadline);
                life.handle(Input::Deadline, now);
            }
        }
        proptest::prop_assert!(life.ended());
        proptest::prop_assert!(now <= start + Duration::from_secs(6) + DRAIN + SINK_WAIT);
        proptest::prop_assert_eq!(life.handle(Input::Kill, now), vec![]);
    }
}
