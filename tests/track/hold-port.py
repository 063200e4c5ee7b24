#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hold-port.py FILE: takes a free port of 127.0.0.1, writes it to FILE, and waits to be killed.

Until then the system assigns the port to no other process; a server that sets SO_REUSEADDR may still listen
there, and while none does, a connection is refused.
"""
import os, signal, socket, sys

s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 0))
with open(sys.argv[1] + ".new", "w") as f:
    f.write(str(s.getsockname()[1]))
os.replace(sys.argv[1] + ".new", sys.argv[1])
signal.pause()
