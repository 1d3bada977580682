//! Finding and signalling the processes below this one.
//!
//! A pid is only ever signalled while it can't have been given to somebody else: a child of ours stays ours until we
//! reap it, and anything deeper is signalled through a pidfd whose place in the tree was checked after it was opened.

use crate::sys::{self, Fd};

/// Deeper descendants are reached when those above them have gone.
const MAX_DEPTH: u32 = 100;
/// Each pass finds what was forked during the one before.
const STOP_PASSES: u32 = 64;

/// A path such as `/proc/12/stat`, without an allocator.
struct ProcPath {
    bytes: [u8; 64],
    length: usize,
}

impl ProcPath {
    fn new() -> Self {
        let mut path = ProcPath {
            bytes: [0; 64],
            length: 0,
        };
        path.text(b"/proc/");
        path
    }

    fn text(&mut self, text: &[u8]) {
        for byte in text {
            // One byte stays 0: the end of the string.
            if self.length < self.bytes.len() - 1 {
                self.bytes[self.length] = *byte;
                self.length += 1;
            }
        }
    }

    fn number(&mut self, mut value: i32) {
        let mut digits = [0u8; 10];
        let mut count = 0;
        loop {
            digits[count] = b'0' + (value % 10) as u8;
            count += 1;
            value /= 10;
            if value == 0 || count == digits.len() {
                break;
            }
        }
        while count > 0 {
            count -= 1;
            self.text(&[digits[count]]);
        }
    }

    fn open(&self) -> Option<Fd> {
        core::ffi::CStr::from_bytes_until_nul(&self.bytes)
            .ok()
            .and_then(sys::open)
    }
}

/// Reads numbers separated by anything else, whatever the chunks are.
#[derive(Default)]
struct Numbers {
    value: i32,
    inside: bool,
}

impl Numbers {
    /// Takes one byte; gives a number when it has just ended.
    fn push(&mut self, byte: u8) -> Option<i32> {
        if byte.is_ascii_digit() {
            self.value = self
                .value
                .wrapping_mul(10)
                .wrapping_add(i32::from(byte - b'0'));
            self.inside = true;
            return None;
        }
        let ended = self.inside.then_some(self.value);
        *self = Numbers::default();
        ended
    }
}

/// Calls `found` with each child of thread `tid` of process `pid`. False: this kernel has no such list.
fn children_of_thread(pid: i32, tid: i32, found: &mut dyn FnMut(i32)) -> bool {
    let mut path = ProcPath::new();
    path.number(pid);
    path.text(b"/task/");
    path.number(tid);
    path.text(b"/children");
    let Some(file) = path.open() else {
        return false;
    };
    let mut buffer = [0u8; 512];
    let mut numbers = Numbers::default();
    loop {
        let count = sys::read(&file, &mut buffer);
        if count == sys::EINTR {
            continue;
        }
        if count <= 0 {
            break;
        }
        for byte in &buffer[..count as usize] {
            if let Some(child) = numbers.push(*byte) {
                found(child);
            }
        }
    }
    if let Some(child) = numbers.push(b' ') {
        found(child);
    }
    true
}

/// Calls `found` with each entry of a folder of /proc whose name is a number.
fn numbered_entries(path: &ProcPath, found: &mut dyn FnMut(i32)) {
    let Some(folder) = path.open() else { return };
    let mut buffer = [0u64; 256];
    loop {
        // SAFETY: any bytes are valid integers, and the slice covers the same memory.
        let bytes =
            unsafe { core::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<u8>(), 2048) };
        let count = sys::read_directory(&folder, bytes);
        if count <= 0 {
            return;
        }
        let mut at = 0;
        while at + 19 < count as usize {
            let length = usize::from(u16::from_ne_bytes([bytes[at + 16], bytes[at + 17]]));
            let mut numbers = Numbers::default();
            let mut numeric = true;
            for byte in bytes[at + 19..at + length]
                .iter()
                .take_while(|byte| **byte != 0)
            {
                numeric &= byte.is_ascii_digit();
                numbers.push(*byte);
            }
            if let (true, Some(number)) = (numeric, numbers.push(0)) {
                found(number);
            }
            if length == 0 {
                return;
            }
            at += length;
        }
    }
}

fn first_number(path: &ProcPath) -> Option<i32> {
    let file = path.open()?;
    let mut buffer = [0u8; 16];
    let count = sys::read(&file, &mut buffer);
    let mut numbers = Numbers::default();
    buffer
        .get(..usize::try_from(count).ok()?)?
        .iter()
        .find_map(|byte| numbers.push(*byte))
}

/// What /proc says of a process now.
struct Stat {
    state: u8,
    parent: i32,
}

fn stat_of(pid: i32) -> Option<Stat> {
    let mut path = ProcPath::new();
    path.number(pid);
    path.text(b"/stat");
    let file = path.open()?;
    let mut buffer = [0u8; 512];
    let count = sys::read(&file, &mut buffer);
    let text = buffer.get(..usize::try_from(count).ok()?)?;
    // "pid (name) state ppid …": the name may hold anything, so look behind its last parenthesis.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let mut numbers = Numbers::default();
    let parent = text[end..].iter().find_map(|byte| numbers.push(*byte))?;
    Some(Stat {
        state: *text.get(end + 2)?,
        parent,
    })
}

/// Calls `found` with each child of a process.
fn children_of(pid: i32, found: &mut dyn FnMut(i32)) {
    let mut task = ProcPath::new();
    task.number(pid);
    task.text(b"/task");
    let mut listed = true;
    numbered_entries(&task, &mut |tid| {
        listed &= children_of_thread(pid, tid, found) || tid != pid;
    });
    if listed {
        return;
    }
    // No CONFIG_PROC_CHILDREN: ask every process for its parent.
    numbered_entries(&ProcPath::new(), &mut |candidate| {
        if stat_of(candidate).is_some_and(|stat| stat.parent == pid) {
            found(candidate);
        }
    });
}

/// Calls `found` with each child of this process. Nothing where /proc is missing, or shows another pid namespace:
/// there its numbers mean other processes.
fn own_children(own: i32, found: &mut dyn FnMut(i32)) {
    let mut path = ProcPath::new();
    path.text(b"self/stat");
    if first_number(&path) != Some(own) {
        return;
    }
    if !children_of_thread(own, own, found) {
        children_of(own, found);
    }
}

/// SIGKILL to every child and the groups that they lead; how many there were. Their children become ours as they die.
pub(crate) fn kill_children(own: i32) -> u32 {
    let mut count = 0;
    own_children(own, &mut |child| {
        count += 1;
        // A whole group at once outruns a fork bomb. The number is safe: its leader is our unreaped child.
        if sys::getpgid(child) == child {
            sys::kill(-child, sys::SIGKILL);
        }
        sys::kill(child, sys::SIGKILL);
    });
    count
}

/// SIGTERM to every descendant, once; SIGCONT as well, so that stopped ones get to see it. `server` is 0 once reaped.
pub(crate) fn terminate(own: i32, server: i32) {
    let mut told = Told {
        pids: [0; 1024],
        count: 0,
    };
    // Its number is ours as long as it isn't reaped, whether /proc shows it or not.
    if server != 0 {
        told.first_time(server);
        sys::kill(server, sys::SIGTERM);
        sys::kill(server, sys::SIGCONT);
    }
    // Parents before their children: a polite parent may need them to end, and waits for them itself.
    walk(own, &mut |process, _| {
        // One whose parent ends meanwhile is met again, as our own child.
        if told.first_time(process.pid) {
            process.signal(sys::SIGTERM);
            process.signal(sys::SIGCONT);
        }
    });
}

/// Who was told already. Of a larger tree some may be told twice.
struct Told {
    pids: [i32; 1024],
    count: usize,
}

impl Told {
    fn first_time(&mut self, pid: i32) -> bool {
        if self.pids[..self.count].contains(&pid) {
            return false;
        }
        if let Some(free) = self.pids.get_mut(self.count) {
            *free = pid;
            self.count += 1;
        }
        true
    }
}

/// For a tree that grows as fast as it is killed: stops all of it first, since what is stopped can't fork, and a place
/// that isn't freed can't be taken. Then SIGKILL to every descendant.
pub(crate) fn kill_all_at_once(own: i32) {
    let mut before = 0;
    for _ in 0..STOP_PASSES {
        let mut running = 0u32;
        walk(own, &mut |process, state| {
            if !matches!(state, b'T' | b't' | b'Z' | b'X') {
                running += 1;
                process.signal(sys::SIGSTOP);
            }
        });
        // All stopped; or what is left can't be, and looking on would only burn time.
        if running == 0 || running == before {
            break;
        }
        before = running;
    }
    walk(own, &mut |process, _| process.signal(sys::SIGKILL));
}

/// A process that can be signalled without fear of meeting another one.
struct Process {
    pid: i32,
    /// None: an unreaped child of ours, where the kernel has no pidfd or no descriptor was left.
    handle: Option<Fd>,
}

impl Process {
    fn signal(&self, signal: i32) {
        match &self.handle {
            Some(handle) => sys::pidfd_send_signal(handle, signal),
            None => {
                sys::kill(self.pid, signal);
            }
        }
    }

    fn alive(&self) -> bool {
        let Some(handle) = &self.handle else {
            return true;
        };
        let mut fds = [sys::PollFd {
            fd: handle.0,
            events: sys::POLLIN,
            revents: 0,
        }];
        sys::poll(&mut fds, Some(0)) == 0
    }
}

/// Calls `visit` with each descendant and its state, parents first.
fn walk(own: i32, visit: &mut dyn FnMut(&Process, u8)) {
    own_children(own, &mut |child| walk_from(own, None, child, 1, visit));
}

fn walk_from(
    parent_pid: i32,
    parent: Option<&Process>,
    child: i32,
    depth: u32,
    visit: &mut dyn FnMut(&Process, u8),
) {
    let handle = sys::pidfd_open(child);
    if handle.is_none() && parent.is_some() {
        return;
    }
    let process = Process { pid: child, handle };
    let Some(stat) = stat_of(child) else { return };
    // The handle is of a child of `parent`, and `parent` was still the process we mean when we looked: ourselves, or
    // one that is held.
    if stat.parent != parent_pid || !parent.is_none_or(Process::alive) {
        return;
    }
    visit(&process, stat.state);
    if depth < MAX_DEPTH {
        children_of(child, &mut |grandchild| {
            walk_from(child, Some(&process), grandchild, depth + 1, visit);
        });
    }
}
