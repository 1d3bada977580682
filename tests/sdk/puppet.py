"""A real server process whose strings are pulled over a socket: it lends its pipes and its death to a fake one.

A message is a letter, four bytes of length, and so many bytes.
To it: O(utput) what to write; C(lose) its stdout; S(top) reading stdin; X (exit) with a status as of subprocess.
From it: I(nput) what it read; E(nd) of its stdin; T(erminate) when it got SIGTERM.
"""

import os
import select
import signal
import socket
import struct
import sys

strings = socket.socket(socket.AF_UNIX)
strings.connect(sys.argv[1])
signalled, signals = os.pipe()
signal.signal(signal.SIGTERM, lambda *_: os.write(signals, b"T"))
signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def tell(kind, data=b""):
    strings.sendall(kind + struct.pack("!I", len(data)) + data)


def take(count):
    data = b""
    while len(data) < count:
        more = strings.recv(count - len(data))
        if not more:
            os._exit(0)
        data += more
    return data


def write(data):
    while data:
        data = data[os.write(1, data) :]


def leave(status):
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


reading = [0]
while True:
    ready, _, _ = select.select([strings, signalled, *reading], [], [])
    if signalled in ready:
        os.read(signalled, 1)
        tell(b"T")
    if 0 in ready:
        data = os.read(0, 65536)
        if data:
            tell(b"I", data)
        else:
            tell(b"E")
            reading = []
    if strings in ready:
        kind = take(1)
        data = take(struct.unpack("!I", take(4))[0])
        if kind == b"O":
            write(data)
        elif kind == b"C":
            os.close(1)
        elif kind == b"S":
            os.close(0)
            reading = []
        elif kind == b"X":
            leave(int(data))
