"""A server with a family: every member holds the lifeline given as the first argument.

Further arguments: "deaf" (ignores the end of its input), "stubborn" (ignores SIGTERM too),
"child", "daemon" (a double-forked child in a session of its own), "exits" (ends at once, leaving them).
"""

import os
import signal
import sys

lifeline = os.open(sys.argv[1], os.O_WRONLY)
traits = sys.argv[2:]
arrived, arrive = os.pipe()


def live():
    os.write(lifeline, b"x")
    os.write(arrive, b"x")
    while True:
        signal.pause()


if "stubborn" in traits:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" in traits and os.fork() == 0:
    live()
if "daemon" in traits:
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            for number in range(3):
                os.close(number)
            live()
        os._exit(0)
    os.waitpid(middle, 0)
for _ in {"child", "daemon"} & set(traits):
    os.read(arrived, 1)
os.write(lifeline, b"x")
if "exits" in traits:
    os._exit(7)
print("ready", flush=True)
for line in sys.stdin:
    print(line, end="", flush=True)
while "deaf" in traits or "stubborn" in traits:
    signal.pause()
