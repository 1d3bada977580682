"""The executor's binding. Nothing here blocks the calling thread unless it says so; nothing knows an event loop.

Errors are the classes of `stockade._errors`, made by the binding.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NoReturn, final

__version__: Final[str]

def build_info() -> dict[str, str]:
    """Version, target, profile and features of this build."""

@final
class Server:
    """What to start, checked when built (`ConfigError`)."""

    def __new__(
        cls,
        command: str,
        args: Sequence[str],
        cwd: str | None,
        env: Sequence[tuple[str, str]],
        inherit: Literal["safe", "all", "none"],
        extra: Sequence[str],
    ) -> Server: ...
    def resolve(self) -> ResolvedCommand:
        """Find the program. Blocks on the file system, without the GIL."""
    def environment(self) -> list[tuple[str, str]]:
        """What the server would get, in order. Holds secrets: never print it."""

@final
class Candidate:
    """A place where the command was looked for."""

    @property
    def path(self) -> str: ...
    @property
    def reason(self) -> str:
        """Why it was or wasn't taken, in a few plain words."""

@final
class ResolvedCommand:
    """What will be started, and how it was found."""

    @property
    def kind(self) -> Literal["executable", "node-shim", "batch"]: ...
    @property
    def program(self) -> str: ...
    @property
    def argv(self) -> list[str]: ...
    @property
    def command_line(self) -> str | None: ...
    @property
    def tried(self) -> list[Candidate]: ...

@final
class Waker:
    """What the executor's threads use to wake one event loop: a descriptor to watch, and the tokens that fired."""

    def __new__(cls) -> Waker: ...
    def fileno(self) -> int:
        """Readable while tokens wait; valid until `close`."""
    def take(self) -> list[int]:
        """The tokens that fired since the last call; the descriptor is quiet afterwards."""
    def close(self) -> None:
        """Close the descriptor. Later firings are dropped. Idempotent."""

Sink = Callable[[list[bytes]], object] | str | int | None
"""A callable (gets a batch of lines, without newlines, on a thread of its own), a path (appended to), a descriptor
(duplicated; lines are written to it), or None (ring only)."""

def start(
    server: Server,
    sink: Sink,
    max_frame_bytes: int,
    close_grace: float,
    terminate_grace: float,
    kill_wait: float,
    leave_descendants: bool,
    waker: Waker,
    token: int,
) -> Pending:
    """Resolve and launch in the background; `token` fires at `waker` when `Pending.take` has an answer.

    The graces are the session's defaults: they also bound the end that the executor makes on its own
    (garbage collection, a frame too long, a panic).
    """

@final
class Pending:
    """A launch under way."""

    def take(self) -> Session | None:
        """The session; None while it isn't ready; raises what went wrong. Once only."""
    def cancel(self) -> None:
        """Give it up: what was started, or will have been, is ended in the background. Idempotent."""

@final
class Noise:
    """A line of stdout that can't be a message: it isn't UTF-8."""

    @property
    def data(self) -> bytes: ...

@final
class LargeFrame:
    """A frame of a MiB or more, to be made bytes off the event loop."""

    def to_bytes(self) -> bytes:
        """Copies without the GIL; the second call gives the same object."""

@final
class StdoutWatch:
    """Keeps the server's stdout open while an event loop watches its descriptor."""

    def fileno(self) -> int: ...
    def close(self) -> None:
        """Let go; to be called after the loop has stopped watching. Idempotent."""

@final
class Report:
    """How a server ended."""

    @property
    def returncode(self) -> int | None: ...
    @property
    def ended_by(self) -> Literal["exit", "close", "terminate", "kill", "limit"]: ...
    @property
    def cause(self) -> str: ...
    @property
    def descendants_killed(self) -> int: ...
    @property
    def unkillable(self) -> int:
        """Processes of the tree that still lived when the wait for them ended."""
    @property
    def stderr_tail(self) -> str:
        """Sanitised: printable text, lines separated by newlines."""
    @property
    def stderr_dropped(self) -> int: ...
    @property
    def duration(self) -> float:
        """Seconds from the launch to the server's exit."""
    @property
    def user_time(self) -> float: ...
    @property
    def system_time(self) -> float: ...

@final
class Session:
    """One launched server and its process tree. Thread-safe; every method returns at once.

    Dropping the last reference ends the server in the background.
    """

    @property
    def pid(self) -> int: ...
    @property
    def command(self) -> ResolvedCommand: ...
    @property
    def returncode(self) -> int | None:
        """As soon as the server's own process has ended."""
    @property
    def closing(self) -> bool:
        """`close` was called, or the executor ends the server on its own."""
    @property
    def bytes_received(self) -> int:
        """Bytes read from stdout so far."""
    def receive(self) -> bytes | LargeFrame | Noise | None:
        """The next frame, without its newline. None: nothing now. EOFError: stdout has ended, all was read
        (a server that has ended counts as ended although a descendant holds its stdout). `FrameTooLong`: the
        limit was passed; the server is being ended."""
    def watch_stdout(self) -> StdoutWatch | None:
        """A descriptor that is readable when `receive` may have something. None where the platform has none
        (then `notify("readable", …)`), or after the end of stdout."""
    def send(self, frame: bytes) -> bool:
        """Queue a frame and its newline. True: queued. False: the queue is full, nothing was queued;
        `notify("writable")` tells when to try again. `ServerClosedInput`: the server has closed its stdin or has ended,
        or the session is closing. ValueError: a newline inside."""
    def notify(self, what: Literal["readable", "writable", "exited", "ended"], waker: Waker, token: int) -> None:
        """Fire the token once, at once if it is so already. exited: `returncode` is known. ended: `report` is complete,
        the tree is gone (or given up), stderr's sink has what there was. "readable" also fires at the end of stdout
        when a descendant keeps the pipe open (the descriptor alone would stay silent); ask for it besides watching."""
    def forget(self, waker: Waker, token: int) -> None:
        """Take back every `notify` with this token. Idempotent."""
    def close(self, close_grace: float, terminate_grace: float, kill_wait: float, leave_descendants: bool) -> None:
        """Begin the end: close stdin, wait, SIGTERM to the tree, wait, SIGKILL, wait. stdout is drained and dropped
        from here on. Idempotent; a later call can only make it faster."""
    def kill(self) -> None:
        """SIGKILL to the whole tree, now. stdout stays readable."""
    def report(self) -> Report | None:
        """Once ended."""
    def stderr_tail(self, lines: int) -> list[bytes]: ...
    def stderr_text(self) -> str:
        """All lines in the ring, sanitised."""
    @property
    def stderr_lines_seen(self) -> int: ...
    @property
    def stderr_bytes_seen(self) -> int: ...
    @property
    def stderr_dropped(self) -> int:
        """Lines no longer in the ring."""
    @property
    def sink_lost(self) -> int:
        """Lines that left the ring before the sink took them."""

def run(server: Server) -> int | NoReturn:
    """Start the server on this process's own stdin, stdout and stderr, and own its tree. On Linux this process becomes
    the supervisor (exec) and never returns. Elsewhere it blocks (without the GIL) and gives the exit status.
    Raises before anything was started, or when the start failed."""

@final
class Feature:
    """One thing this machine offers, or lacks."""

    @property
    def name(self) -> str: ...
    @property
    def available(self) -> bool: ...
    @property
    def detail(self) -> str: ...
    @property
    def remedy(self) -> str:
        """What to do where it is missing; empty where nothing needs doing."""

def probe() -> list[Feature]:
    """What the executor uses on this machine."""

def end_all(seconds: float) -> int:
    """End every session of this process and wait, without the GIL, at most so long; how many still live.
    For interpreter exit: no sink is called afterwards."""

def sanitise(data: bytes) -> str:
    """One line as printable text: no control, direction or invisible characters, invalid UTF-8 replaced."""

def live_sessions() -> int:
    """Sessions of this process that haven't ended."""
