"""A file system that never answers: whoever asks it for a file waits, and even SIGKILL doesn't end the waiting.

For a host in a mount namespace of its own (`unshare --map-root-user --mount`). The kernel lets everybody go as soon as
the keeper, a process that holds the other end, is gone; the keeper dies with the thread that made it.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import struct
import subprocess
from pathlib import Path

UNDER = ("unshare", "--user", "--map-root-user", "--mount")

_INIT = 26
_DESTROY = 38
_HEADER = struct.Struct("=IIQQIIIHH")
_PR_SET_PDEATHSIG = 1


def missing() -> str | None:
    """Why there can be no such file system here; None where there can."""
    if shutil.which("unshare") is None:
        return "unshare (util-linux) is not installed"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is not there, or not for this user"
    tried = subprocess.run([*UNDER, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return f"this machine allows no user namespaces: {tried.stderr.strip()}"
    return None


class Hung:
    """Mounted at `folder` as long as this is open."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0"
        if libc.mount(b"hung", os.fsencode(folder), b"fuse", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mount")
        self._asked, say = os.pipe()
        self.keeper = os.fork()
        if self.keeper == 0:
            try:
                libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                os.close(self._asked)
                _swallow(fuse, say)
            finally:
                os._exit(1)
        os.close(fuse)
        os.close(say)

    def asked(self, seconds: float = 30) -> bool:
        """Wait until somebody has asked, and so hangs."""
        ready, _, _ = select.select([self._asked], [], [], seconds)
        return bool(ready) and bool(os.read(self._asked, 1))

    def close(self) -> None:
        """Let everybody go."""
        os.kill(self.keeper, signal.SIGKILL)
        os.waitpid(self.keeper, 0)
        os.close(self._asked)


def _swallow(fuse: int, say: int) -> None:
    """Greet the kernel, then take every question and answer none."""
    while True:
        request = os.read(fuse, 1 << 20)
        _, operation, unique, *_ = _HEADER.unpack_from(request)
        if operation == _INIT:
            answer = struct.pack("=IIIIHHI", 7, 22, 65536, 0, 0, 0, 65536)
            os.write(fuse, struct.pack("=IiQ", 16 + len(answer), 0, unique) + answer)
        elif operation != _DESTROY:
            os.write(say, b"?")
