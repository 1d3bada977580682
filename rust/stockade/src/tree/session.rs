//! A session: one launched server as its user sees it.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::command::{Environment, OsFileSystem, ResolvedCommand, Server, resolve};
use crate::fork::{self, HostFd};
use crate::frames::{Frame, FrameReader};
use crate::launch::pipes::Pipes;
use crate::launch::{Plan, Stdio, start};
use crate::os_error::os_error;
use crate::runtime::runtime;
use crate::stderr::Ring;
use crate::tree::lifecycle::{Fault, Input, Lifecycle, Shutdown, after};
use crate::tree::outlet::{Outlet, Sent};
use crate::tree::report::{self, Report};
use crate::tree::shared::{Core, State, Stdout};
use crate::tree::sink::{Runner, Sink};
use crate::tree::watchers::{Moment, Watchers};
use crate::wake::{Wake, Waker};
use crate::{Error, ErrorKind, Stage, lock};

/// Reads of up to a MiB each in one call of [`Session::receive`].
const RECEIVE_READS: usize = 3;

/// How a server is started and treated.
pub struct Options {
    /// Where its stderr goes besides the ring.
    pub sink: Sink,
    /// The longest frame in bytes.
    pub max_frame_bytes: usize,
    /// The waits of an end that nobody asked for, and of [`Session`]'s drop.
    pub shutdown: Shutdown,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            sink: Sink::None,
            max_frame_bytes: 64 * 1024 * 1024,
            shutdown: Shutdown::default(),
        }
    }
}

/// What [`Session::receive`] found.
#[derive(Debug)]
#[non_exhaustive]
pub enum Received {
    /// A frame.
    Frame(Frame),
    /// Nothing now.
    Nothing,
    /// stdout has come to its end, and everything was read.
    End,
}

/// One launched server and its process tree. Dropping it ends the server in the background.
pub struct Session(Arc<Core>);

pub(crate) fn internal(message: &str) -> Error {
    Error::new(ErrorKind::Internal, "internal", Stage::Run, message)
        .remedy("This is a defect of stockade: please report it.")
}

impl Session {
    /// Finds the program and starts it. Blocks for as long as that takes.
    pub fn launch(server: &Server, options: Options) -> Result<Session, Error> {
        let environment = server.environment(std::env::vars_os());
        let session = Self::launch_with(server, &environment, options, &AtomicI32::new(0))?;
        runtime()?.reactor.ring();
        Ok(session)
    }

    /// The same with an environment that was composed before. The caller rings the reactor's bell afterwards. While the
    /// launch is in the kernel's hands `under_way` has the pid of the process that it hangs on.
    pub(crate) fn launch_with(
        server: &Server,
        environment: &Environment,
        options: Options,
        under_way: &AtomicI32,
    ) -> Result<Session, Error> {
        let command = find_command(server, environment)?;
        let runtime = runtime()?;
        runtime.reactor.ensure_running()?;
        let plan = Plan::new(&command, environment)?;
        let sink = options.sink.opened()?;
        let Pipes {
            stdin,
            stdout,
            stderr,
            server: ends,
        } = Pipes::new().map_err(|errno| os_error("pipe2", errno))?;
        let stdio = Stdio {
            stdin: ends.stdin.as_fd(),
            stdout: ends.stdout.as_fd(),
            stderr: ends.stderr.as_fd(),
        };
        let start_time = Instant::now();
        let started = start(
            &plan,
            &stdio,
            &runtime.ground,
            options.shutdown.leave_descendants,
            under_way,
        )?;
        drop(ends);
        let core = Arc::new(Core {
            id: runtime.reactor.next_id(),
            generation: fork::generation(),
            pid: started.pid,
            started: Mutex::new(Some(started)),
            command,
            start_time,
            shutdown: options.shutdown,
            outlet: Mutex::new(Outlet::new(stdin)),
            stdout: Mutex::new(Stdout {
                fd: Some(Arc::new(stdout)),
                frames: FrameReader::new(options.max_frame_bytes),
                over: false,
                dropped: false,
                too_long: false,
            }),
            stderr: Mutex::new(Ring::default()),
            stderr_fd: Mutex::new(Some(stderr)),
            sink: Runner::new(sink),
            state: Mutex::new(State {
                life: Lifecycle::new(options.shutdown),
                watchers: Watchers::default(),
                exit_time: None,
                out_of_memory_before: None,
                report: None,
            }),
            changed: Condvar::new(),
            closing: AtomicBool::new(false),
            #[cfg(feature = "faults")]
            panic_next: AtomicBool::new(false),
        });
        runtime.reactor.adopt(&core);
        Ok(Session(core))
    }

    /// The server's process id.
    pub fn pid(&self) -> i32 {
        self.0.pid
    }

    /// What was started, and how it was found.
    pub fn command(&self) -> &ResolvedCommand {
        &self.0.command
    }

    /// The exit status, or minus a signal, as soon as the server's own process has ended.
    pub fn returncode(&self) -> Result<Option<i32>, Error> {
        let state = self.0.state()?;
        Ok(state.life.exit.map(|exit| report::returncode(exit.status)))
    }

    /// The end was asked for, or the executor ends it on its own account.
    pub fn closing(&self) -> bool {
        self.0.closing.load(Ordering::Acquire)
    }

    /// Bytes read from stdout so far.
    pub fn bytes_received(&self) -> Result<u64, Error> {
        Ok(self.0.stdout()?.frames.bytes_seen())
    }

    /// The next frame; never blocks. `FrameTooLong`: the limit was passed, and the server is being ended.
    pub fn receive(&self) -> Result<Received, Error> {
        let core = &self.0;
        let mut stdout = core.stdout()?;
        let mut reads = 0;
        loop {
            match stdout.frames.next() {
                Some(Ok(frame)) => return Ok(Received::Frame(frame)),
                Some(Err(too_long)) => {
                    stdout.too_long = true;
                    drop(stdout);
                    core.closing.store(true, Ordering::Release);
                    core.post(Input::Fail(Fault::FrameTooLong));
                    return Err(frame_too_long(too_long.limit));
                }
                None => {}
            }
            if stdout.dropped || stdout.frames.ended() {
                return Ok(Received::End);
            }
            if reads == RECEIVE_READS {
                // A long frame from a fast writer: the caller has other things to do, and the descriptor stays ready.
                return Ok(Received::Nothing);
            }
            reads += 1;
            // Asked before the pipe is: what is written before the end is marked is still read.
            let over = stdout.over;
            match stdout.read() {
                Ok(0) => stdout.fd = None,
                Ok(_) => {}
                Err(Errno::AGAIN) if !over => return Ok(Received::Nothing),
                // The end, or a descendant that outlives the server holds the pipe.
                Err(_) => {
                    stdout.fd = None;
                    let _ = stdout.frames.fill(|_| Ok::<_, Errno>(0));
                }
            }
        }
    }

    /// The same, waiting at most `limit` for a frame.
    pub fn receive_blocking(&self, limit: Option<Duration>) -> Result<Received, Error> {
        let deadline = limit.map(|limit| after(Instant::now(), limit));
        let mut found = self.receive()?;
        if !matches!(found, Received::Nothing) {
            return Ok(found);
        }
        let waker = Arc::new(Waker::new()?);
        let wake: Arc<dyn Wake> = Arc::clone(&waker) as _;
        self.notify(Moment::Readable, Arc::clone(&wake), 0)?;
        while matches!(found, Received::Nothing) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            if let Some(watch) = self.watch_stdout()? {
                waker.wait_with(&*watch.0, left);
            }
            found = self.receive()?;
        }
        self.forget(&wake, 0);
        Ok(found)
    }

    /// A descriptor that is readable when [`receive`](Self::receive) may find something; None after the end of stdout.
    pub fn watch_stdout(&self) -> Result<Option<StdoutWatch>, Error> {
        let stdout = self.0.stdout()?;
        Ok(stdout.fd.clone().map(StdoutWatch))
    }

    /// Queues a frame and its newline; never blocks. False: too much waits already, nothing was queued.
    pub fn send(&self, frame: &[u8]) -> Result<bool, Error> {
        let core = &self.0;
        fork::check(core.generation)?;
        let mut outlet = lock(&core.outlet);
        let was_open = outlet.is_open();
        let sent = outlet.send(frame);
        drop(outlet);
        match sent {
            Sent::Written => Ok(true),
            Sent::Queued => {
                core.flush_soon();
                Ok(true)
            }
            Sent::Full => Ok(false),
            Sent::Closed => {
                if was_open {
                    core.post(Input::Refused);
                    core.wake(Moment::Writable);
                }
                Err(Error::new(
                    ErrorKind::ServerClosedInput,
                    "server-closed-input",
                    Stage::Run,
                    "The server doesn't read its input any more.",
                ))
            }
        }
    }

    /// Wakes `wake` with `token` once, at once if it is so already.
    pub fn notify(&self, moment: Moment, wake: Arc<dyn Wake>, token: u64) -> Result<(), Error> {
        let core = &self.0;
        let mut state = core.state()?;
        // Under the lock of the watchers: what happens meanwhile finds this one.
        let already = match moment {
            Moment::Exited => state.life.exit.is_some() || state.report.is_some(),
            Moment::Ended => state.report.is_some(),
            Moment::Writable => {
                let outlet = lock(&core.outlet);
                !outlet.is_open() || outlet.has_room()
            }
            Moment::Readable => {
                let stdout = lock(&core.stdout);
                stdout.over || stdout.dropped || stdout.fd.is_none()
            }
        };
        if already {
            drop(state);
            wake.wake(token);
        } else {
            state.watchers.add(moment, wake, token);
        }
        Ok(())
    }

    /// Takes back every wish of this waker with this token.
    pub fn forget(&self, wake: &Arc<dyn Wake>, token: u64) {
        if let Ok(mut state) = self.0.state() {
            state.watchers.forget(wake, token);
        }
    }

    /// Begins the end: close stdin, wait, SIGTERM to the tree, wait, SIGKILL, wait. What comes from stdout is dropped from
    /// here on. A later call can only make it faster.
    pub fn close(&self, shutdown: Shutdown) {
        self.0.request_close(shutdown);
    }

    /// SIGKILL to the whole tree, now.
    pub fn kill(&self) {
        self.0.post(Input::Kill);
    }

    /// How it ended, once it has.
    pub fn report(&self) -> Result<Option<Report>, Error> {
        Ok(self.0.state()?.report.clone())
    }

    /// Waits for the end; None when it hasn't come within `limit`. Doesn't ask for it.
    pub fn wait(&self, limit: Option<Duration>) -> Option<Report> {
        self.0.wait_ended(limit);
        self.report().ok().flatten()
    }

    /// Reads the ring of stderr.
    pub fn stderr<T>(&self, read: impl FnOnce(&Ring) -> T) -> Result<T, Error> {
        fork::check(self.0.generation)?;
        Ok(read(&lock(&self.0.stderr)))
    }

    /// Lines of stderr that left the ring before the sink took them.
    pub fn sink_lost(&self) -> Result<u64, Error> {
        fork::check(self.0.generation)?;
        Ok(self.0.sink.lost())
    }

    /// Makes the serving thread panic at the next event of this session.
    #[cfg(feature = "faults")]
    pub fn inject_panic(&self) {
        self.0.panic_next.store(true, Ordering::Release);
        self.0.post(Input::Left(0));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.0.request_close(self.0.shutdown);
    }
}

/// Finds a server's program in the directory that this process has now. Blocks on the file system.
pub fn find_command(server: &Server, environment: &Environment) -> Result<ResolvedCommand, Error> {
    let directory = std::env::current_dir().map_err(|error| {
        Error::new(
            ErrorKind::Launch,
            "no-working-directory",
            Stage::Resolve,
            format!(
                "This process's own working directory can't be used: {}.",
                crate::os_error::plain(&error)
            ),
        )
        .remedy("Change to a directory that exists.")
        .operation("getcwd")
        .native_code(error.raw_os_error().unwrap_or_default())
    })?;
    resolve(server, environment, &directory, &OsFileSystem)
}

fn frame_too_long(limit: usize) -> Error {
    Error::new(
        ErrorKind::FrameTooLong,
        "frame-too-long",
        Stage::Run,
        format!("The server wrote a message of more than {limit} bytes; it was ended."),
    )
    .remedy("Raise max_frame_bytes if such messages are expected.")
}

/// Keeps a server's stdout open while an event loop watches its descriptor.
pub struct StdoutWatch(Arc<HostFd>);

impl StdoutWatch {
    /// The descriptor; an error in a forked child, where the number may be somebody else's.
    pub fn fd(&self) -> Result<RawFd, Error> {
        self.0.check()?;
        Ok(self.0.as_raw_fd())
    }
}
