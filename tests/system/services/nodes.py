# SPDX-License-Identifier: MIT
"""Nodes of Sluice as child processes, for tests that talk to them from outside."""
import atexit
import signal
import subprocess
import tempfile


class Node:
    """A running `sluice run`; its files are in a folder of its own."""

    def __init__(self, program, *options):
        self.folder = tempfile.TemporaryDirectory(prefix="sluice-node-")
        self.log = open(f"{self.folder.name}/log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, "run", "--listen-address=127.0.0.1", "--tcp-port=0", "--cluster-id=16",
             "--num-shards-in-network=8", "--relay-all-shards=false",
             "--ip-colocation-limit=0", "--rate-limit=0/1s",
             "--rate-limit=filter:0/1s", *options],
            cwd=self.folder.name, stdout=subprocess.PIPE, stderr=self.log, text=True)
        atexit.register(self.end)  # also of a test that fails before it stops the node
        self.addresses = []
        self.head = ""  # what it says until it is ready
        for line in self.process.stdout:
            self.head += line
            if line.startswith("LISTEN"):
                self.addresses.append(line.split()[1])
            elif line.startswith("READY"):
                return
        raise SystemExit("a node ended before it was ready:\n" + self.log_text())

    def log_text(self):
        self.log.seek(0)
        return self.log.read()

    def address(self, transport="tcp"):
        return next(a for a in self.addresses if ("/ws/" in a) == (transport == "ws"))

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        """The exit status; the files are gone then."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        if status != 0:
            print(self.log_text())
        self.log.close()
        self.folder.cleanup()
        return status


def ask(program, *arguments):
    """(exit status, standard output) of a command."""
    result = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, timeout=120)
    return result.returncode, result.stdout
