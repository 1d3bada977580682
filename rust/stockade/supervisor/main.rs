//! The supervisor: a tiny process between the host and one server.
//!
//! It is the parent of the server and the subreaper of everything below it, so no `setsid`, double fork or daemon gets
//! away. It learns of the host's death from a pidfd and from the end of its socket, and then kills the tree. It is made
//! of system calls alone: no C library, no allocator, a few KiB of memory. The build script compiles and embeds it.
//!
//! The process that becomes it has already set itself up (own session, subreaper, all signals blocked, descriptors
//! `CONTROL` and `HOST`, nothing else) and started the server.

#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::struct_excessive_bools,
    reason = "the kernel takes and gives machine words; what they hold is known at each place; each flag is a fact of its own"
)]

mod front;
mod protocol;
mod sys;
mod tree;

use protocol::{
    CONTROL, EMPTY, EXITED, Event, HOST, KILL, LEAVE, LEFT, Request, SIGNAL, START, STOPPED,
    TERMINATE,
};
use sys::{ECHILD, EINTR, POLLERR, POLLHUP, POLLIN, POLLNVAL, PollFd};

/// While something refuses to die: when it is looked at again, at first and at most.
const FIRST_LOOK_MS: u64 = 50;
const LAST_LOOK_MS: u64 = 5000;
/// News that may be missed is told so often at most: the socket must always have room for what may not.
const MAX_NEWS: u32 = 64;

/// Each round kills one generation. A tree that isn't gone after so many is deep, or grows while it is killed.
const PATIENT_ROUNDS: u32 = 8;

// The entry point: the kernel passes everything on the stack.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(".globl _start", "_start:", "xor ebp, ebp", "mov rdi, rsp", "and rsp, -16", "call {main}", main = sym main);
#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(".globl _start", "_start:", "mov x29, #0", "mov x0, sp", "bl {main}", main = sym main);

/// `stack` is what execve(2) leaves: argc, then the argument pointers. A second argument means the
/// front of `stockade run`, a third one that the parent wants it to outlive a hangup.
extern "C" fn main(stack: *const usize) -> ! {
    // SAFETY: the kernel puts argc there.
    let arguments = unsafe { *stack };
    if arguments > 1 {
        front::main(arguments > 2);
    }
    sys::set_signal_mask(!0);
    sys::set_name(c"stockade");
    sys::set_undumpable();
    Supervisor::new().run()
}

struct Supervisor {
    own: i32,
    /// 0 before the host has said it, and after the server was reaped.
    server: i32,
    started: bool,
    leave: bool,
    host_gone: bool,
    killing: bool,
    /// SIGTERM was sent: whoever lives on has the host's grace, also behind a wrapper that is dead already.
    terminating: bool,
    /// Descendants that it took a SIGKILL to end.
    killed: u32,
    reported_left: u32,
    kill_rounds: u32,
    look_again_ms: u64,
    /// How often each kind of news that may be missed was told.
    stops_told: u32,
    lefts_told: u32,
}

impl Supervisor {
    fn new() -> Self {
        Supervisor {
            own: sys::getpid(),
            server: 0,
            started: false,
            leave: false,
            host_gone: false,
            killing: false,
            terminating: false,
            killed: 0,
            reported_left: 0,
            kill_rounds: 0,
            look_again_ms: FIRST_LOOK_MS,
            stops_told: 0,
            lefts_told: 0,
        }
    }

    fn run(mut self) -> ! {
        let Some(signals) = sys::signal_fd(1 << (sys::SIGCHLD - 1)) else {
            self.die()
        };
        let mut fds = [
            PollFd {
                fd: CONTROL,
                events: POLLIN,
                revents: 0,
            },
            PollFd {
                fd: HOST,
                events: POLLIN,
                revents: 0,
            },
            PollFd {
                fd: signals.0,
                events: POLLIN,
                revents: 0,
            },
        ];
        loop {
            let timeout = self.killing.then_some(self.look_again_ms);
            let ready = sys::poll(&mut fds, timeout);
            if ready < 0 {
                if ready == EINTR {
                    continue;
                }
                self.die();
            }
            if fds[0].revents != 0 && !self.serve_host() {
                fds[0].fd = -1;
                self.host_gone = true;
            }
            if fds[1].revents & POLLNVAL != 0 {
                // No pidfd on this kernel: the socket alone tells.
                fds[1].fd = -1;
            } else if fds[1].revents != 0 {
                fds[1].fd = -1;
                self.host_gone = true;
            }
            if fds[2].revents != 0 {
                let mut buffer = [0u8; 1024];
                sys::read(&signals, &mut buffer);
            }
            if self.host_gone {
                self.killing = true;
            }
            // Nothing is reaped before the host knows the pid: until then it must not be given to somebody else.
            if self.started || self.killing {
                self.reap();
            }
            if self.killing {
                self.kill();
            }
            for fd in &mut fds {
                fd.revents = 0;
            }
        }
    }

    /// Takes what the host says. False: it has gone.
    fn serve_host(&mut self) -> bool {
        loop {
            let mut request = Request::default();
            let count = sys::receive(CONTROL, &mut request);
            if count == 0 {
                return false;
            }
            if count < 0 {
                // Nothing more for now; any error but that also shows as the end of the socket.
                return true;
            }
            match request.kind {
                START => {
                    self.server = request.value;
                    self.leave = request.flag != 0;
                    self.started = true;
                }
                SIGNAL if self.server != 0 => {
                    sys::kill(self.server, request.value);
                }
                TERMINATE => {
                    self.terminating = true;
                    tree::terminate(self.own, self.server);
                }
                KILL => self.killing = true,
                LEAVE => self.leave = request.flag != 0,
                _ => {}
            }
        }
    }

    /// Takes everything that has changed below. Doesn't return once nothing is left.
    fn reap(&mut self) {
        loop {
            let (pid, status, usage) =
                sys::wait_any(sys::WNOHANG | sys::WUNTRACED | sys::WCONTINUED);
            if pid == ECHILD {
                self.report_empty();
            }
            if pid <= 0 {
                return;
            }
            let of_server = self.server != 0 && pid == self.server as isize;
            let stopped = status & 0xff == 0x7f;
            if stopped || status == 0xffff {
                // Beyond the patient rounds it is this process that stops the others.
                if of_server && self.kill_rounds <= PATIENT_ROUNDS {
                    let event = Event {
                        kind: STOPPED,
                        status,
                        count: u32::from(stopped),
                        ..Event::default()
                    };
                    tell_news(&mut self.stops_told, &event);
                }
                continue;
            }
            if of_server {
                self.server = 0;
                let microseconds =
                    |time: sys::Time| time.seconds as u64 * 1_000_000 + time.fraction as u64;
                sys::send(
                    CONTROL,
                    &Event {
                        kind: EXITED,
                        status,
                        user_us: microseconds(usage.user),
                        system_us: microseconds(usage.system),
                        ..Event::default()
                    },
                );
                if self.leave && !self.killing {
                    self.report_empty();
                }
                self.killing |= !self.terminating;
            } else if self.killing && status & 0x7f == sys::SIGKILL {
                self.killed += 1;
            }
        }
    }

    fn kill(&mut self) {
        self.kill_rounds += 1;
        if self.kill_rounds > PATIENT_ROUNDS {
            tree::kill_all_at_once(self.own);
        }
        // Its number is ours as long as it isn't reaped, whether /proc shows it or not.
        if self.server != 0 {
            sys::kill(-self.server, sys::SIGKILL);
            sys::kill(self.server, sys::SIGKILL);
        }
        let left = tree::kill_children(self.own);
        // Those that died at once are reaped before anybody hears of them.
        self.reap();
        if left == self.reported_left {
            self.look_again_ms = (self.look_again_ms * 2).min(LAST_LOOK_MS);
        } else {
            self.reported_left = left;
            let event = Event {
                kind: LEFT,
                count: left,
                ..Event::default()
            };
            tell_news(&mut self.lefts_told, &event);
        }
    }

    fn report_empty(&self) -> ! {
        sys::send(
            CONTROL,
            &Event {
                kind: EMPTY,
                count: self.killed,
                ..Event::default()
            },
        );
        sys::exit(0)
    }

    /// Something that can't fail has failed: take the tree along.
    fn die(&self) -> ! {
        if self.server != 0 {
            sys::kill(-self.server, sys::SIGKILL);
        }
        tree::kill_children(self.own);
        sys::exit(125)
    }
}

fn tell_news(told: &mut u32, event: &Event) {
    if *told < MAX_NEWS {
        *told += 1;
        sys::send(CONTROL, event);
    }
}

const GONE: i16 = POLLERR | POLLHUP;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    tree::kill_children(sys::getpid());
    sys::exit(125)
}

// What the compiler expects from a C library.

/// # Safety
/// As memcpy(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    for at in 0..count {
        // SAFETY: the caller's promise; volatile keeps this loop from becoming a call of memcpy.
        unsafe { to.add(at).write_volatile(from.add(at).read()) };
    }
    to
}

/// # Safety
/// As memset(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, value: i32, count: usize) -> *mut u8 {
    for at in 0..count {
        // SAFETY: the caller's promise; volatile keeps this loop from becoming a call of memset.
        unsafe { to.add(at).write_volatile(value as u8) };
    }
    to
}

/// # Safety
/// As memcmp(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    for at in 0..count {
        // SAFETY: the caller's promise; volatile keeps this loop from becoming a call of memcmp.
        let (a, b) = unsafe { (left.add(at).read_volatile(), right.add(at).read_volatile()) };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}
