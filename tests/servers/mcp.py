"""An MCP server without the SDK: it starts in milliseconds, and its tools misbehave on request."""

import json
import os
import signal
import subprocess
import sys


def answer(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def call(number, name, arguments):
    if name == "echo":
        answer(number, text(arguments["message"]))
    elif name == "exit":
        print("the server gives up", file=sys.stderr, flush=True)
        os._exit(arguments["status"])
    elif name == "kill-itself":
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "leave-a-child":
        # The child keeps our stdout: its end alone doesn't end the stream.
        subprocess.Popen(["sleep", "1000"])
        os._exit(9)
    elif name == "noise":
        sys.stdout.buffer.write(bytes.fromhex(arguments["hex"]))
        sys.stdout.buffer.flush()
        answer(number, text("noisy"))
    elif name == "silence":
        pass
    elif name == "stop-reading":
        answer(number, text("deaf"))
        signal.pause()


TOOLS = ["echo", "exit", "kill-itself", "leave-a-child", "noise", "silence", "stop-reading"]


def main():
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if number is None:
            continue
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            answer(
                number,
                {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "small", "version": "1"},
                },
            )
        elif method == "ping":
            answer(number, {})
        elif method == "tools/list":
            answer(number, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
        elif method == "tools/call":
            call(number, message["params"]["name"], message["params"].get("arguments") or {})
        else:
            error = {"code": -32601, "message": "no such method"}
            print(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}), flush=True)


main()
