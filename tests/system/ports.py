# SPDX-License-Identifier: MIT
"""TCP ports for nodes that must know theirs before they start (others take port 0 and say which they got)."""
import pathlib
import random
import socket

FIRST = 10000


def is_free(port):
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(count):
    """Outside the range from which the kernel gives ports to connections and to port 0, so that a test
    beside this one does not come by one of them before it is used or while a node restarts."""
    range_file = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
    end = int(range_file.read_text(encoding="ascii").split()[0])
    found = []
    for port in random.sample(range(FIRST, max(end, FIRST + 1000)), k=1000):
        if is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise SystemExit("FAILED: no free ports")
