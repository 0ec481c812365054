# SPDX-License-Identifier: MIT
"""What the node does when it is told: SIGHUP under open connections, SIGTERM under load."""

import os
import signal
import socket
import sqlite3
import ssl
import subprocess
import time
import unittest

import programs
from programs import FLOOD, IS_SLOW, SLUICE

CLUSTER = ["--cluster-id=16", "--shard=0"]
WAIT_S = 60
STOP_S = 60 if IS_SLOW else 20  # the node's own limit is 5 s


class Node:
    """A running node; what it prints is there after READY."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [SLUICE, "run", "--listen-address=127.0.0.1", "--tcp-port=0", *CLUSTER, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addresses = []
        for line in self.process.stdout:
            if line.startswith("READY"):
                return
            self.addresses.append(line.split()[1])
        raise AssertionError("the node ended before READY")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)


class Signals(programs.Case):
    def start(self, *arguments):
        node = Node(*arguments)

        def end():
            node.process.kill()
            node.process.wait()
            node.process.stdout.close()

        self.addCleanup(end)
        return node

    def make_certificate(self, name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        f"/CN={name}", "-keyout", self.path("key.pem"), "-out",
                        self.path("certificate.pem")], check=True, stderr=subprocess.DEVNULL)

    @staticmethod
    def connect(port):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", port), WAIT_S)
        return context.wrap_socket(plain)

    def wait_for_line(self, words):
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            try:
                with open(self.path("log"), encoding="utf-8") as log:
                    if words in log.read():
                        return
            except FileNotFoundError:
                pass  # renamed, and not opened anew yet
            time.sleep(0.01)
        self.fail(f"no line with {words}")

    def test_a_hangup_changes_the_certificate_and_keeps_connections(self):
        self.make_certificate("first")
        node = self.start("--websocket-secure-support", "--websocket-port=0", "--archive=none",
                          f"--websocket-secure-key-path={self.path('key.pem')}",
                          f"--websocket-secure-cert-path={self.path('certificate.pem')}",
                          f"--log-file={self.path('log')}")
        port = int(next(a for a in node.addresses if "/wss" in a).split("/tcp/")[1].split("/")[0])
        standing = self.connect(port)
        self.addCleanup(standing.close)
        first = standing.getpeercert(True)
        self.make_certificate("second")
        os.rename(self.path("log"), self.path("log.1"))
        node.process.send_signal(signal.SIGHUP)
        self.wait_for_line("certificate are opened anew")
        with self.connect(port) as later:
            second = later.getpeercert(True)
            self.assertNotEqual(second, first)
        with open(self.path("certificate.pem"), "w", encoding="ascii") as file:
            file.write("rubbish")
        node.process.send_signal(signal.SIGHUP)
        self.wait_for_line("the old one stays")
        with self.connect(port) as later:
            self.assertEqual(later.getpeercert(True), second)
        # The one that was there before all this is upgraded as if nothing had been.
        standing.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                         b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                         b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
        self.assertIn(b" 101 ", standing.recv(4096))
        self.assertEqual(node.stop(), 0)

    def flood_at(self, node):
        return subprocess.Popen(
            [FLOOD, f"--peer={node.addresses[0]}", "--publishers=4", "--receivers=0",
             "--duration=60s", "--sizes=1k:100", "--cluster-id=16", "--rate=3000"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_a_stop_under_load_with_a_locked_archive_loses_nothing(self):
        database = self.path("archive.db")
        node = self.start(f"--archive=sqlite://{database}", "--ip-colocation-limit=0",
                          f"--log-file={self.path('log')}")
        flood = self.flood_at(node)
        self.addCleanup(flood.wait)
        self.addCleanup(flood.kill)
        self.wait_for_rows(database, 1)
        lock = sqlite3.connect(database, isolation_level=None)
        self.addCleanup(lock.close)
        lock.execute("BEGIN IMMEDIATE")
        stored = lock.execute("SELECT count(*) FROM message").fetchone()[0]
        self.wait_until(lambda: os.path.getsize(database + ".spill") > 16, "a spilled message")
        self.assertEqual(node.stop(), 0)
        flood.kill()
        lock.execute("ROLLBACK")
        spilled = os.path.getsize(database + ".spill")
        self.assertGreater(spilled, 16)
        # What waited is stored at the next start, though that is cut short as well.
        again = self.start(f"--archive=sqlite://{database}", f"--log-file={self.path('log')}")
        self.wait_for_rows(database, stored + 1)
        self.assertEqual(again.stop(), 0)
        again = self.start(f"--archive=sqlite://{database}", f"--log-file={self.path('log')}")
        self.wait_until(lambda: os.path.getsize(database + ".spill") == 16, "spilled messages")
        self.assertEqual(again.stop(), 0)
        hashes = programs.stored_hashes(database)
        self.assertEqual(len(hashes), len(set(hashes)))
        self.assertGreater(len(hashes), stored)

    def wait_until(self, condition, what):
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.02)
        self.fail(f"waited for {what}")

    def wait_for_rows(self, database, count):
        self.wait_until(lambda: self.rows(database) >= count, f"{count} rows")

    @staticmethod
    def rows(database):
        try:
            with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as reader:
                return reader.execute("SELECT count(*) FROM message").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


if __name__ == "__main__":
    unittest.main()
