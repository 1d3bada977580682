"""A server that ignores the end of its input and SIGTERM, as does the grandchild that it hides in another session."""

from __future__ import annotations

import json
import signal
import subprocess

signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the grandchild inherits this
grandchild = subprocess.Popen(["sleep", "1000"], start_new_session=True)
message = {
    "jsonrpc": "2.0",
    "method": "notifications/message",
    "params": {"level": "info", "data": {"grandchild": grandchild.pid}},
}
print(json.dumps(message), flush=True)
while True:
    signal.pause()
