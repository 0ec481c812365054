# SPDX-License-Identifier: MIT
"""Somebody else holds the write lock of the archive's index: the node relays, serves filter subscribers
and answers store queries all the same, says that it is degraded, and stores everything once afterwards.
"""

import json
import os
import re
import sqlite3
import sys
import time
import unittest
import urllib.request

import programs
from programs import FLOOD, SLUICE, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "services"))
from nodes import Node, ask  # noqa: E402

MESSAGES = 300 if programs.IS_SLOW else 1500
PATIENCE_S = 120


class Locked(unittest.TestCase):
    def start(self, *options):
        node = Node(SLUICE, "--store=true", "--archive=sqlite://archive.db", "--shard=0", "--metrics-server=true",
                    "--metrics-server-port=0", *options)
        self.addCleanup(node.end)
        node.port = re.search(r"METRICS http://127\.0\.0\.1:(\d+)/", node.head)[1]
        return node

    def get(self, node, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{node.port}{path}", timeout=PATIENCE_S) as answer:
            return answer.read().decode()

    def is_degraded(self, node):
        health = json.loads(self.get(node, "/live/v1/figures"))["health"]
        return next(part["degraded"] for part in health if part["part"] == "archive")

    def ledger(self, node):
        """{outcome or reason: messages} of the archive, and what is held."""
        page = self.get(node, "/metrics?zeros=true")
        rows = re.findall(r'^sluice_stage_messages_total\{stage="archive",outcome="(\w+)",reason="(\w+)"\} (\d+)',
                          page, re.M)
        counts = {(outcome, reason): int(number) for outcome, reason, number in rows}
        held = int(re.search(r'^sluice_stage_held\{stage="archive"\} (\d+)', page, re.M)[1])
        return counts, held

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def lock(self, node):
        other = sqlite3.connect(f"{node.folder.name}/archive.db", isolation_level=None, timeout=PATIENCE_S)
        self.addCleanup(other.close)
        other.execute("BEGIN IMMEDIATE")
        return other

    def flood(self, node):
        """All that is published comes to the receiver, once."""
        result = run(FLOOD, f"--peer={node.address()}", "--cluster-id=16", "--receivers=1", "--window=64", "--json",
                     f"--messages={MESSAGES}", "--sizes=200:80,20k:20")
        self.assertEqual(result.status, 0, result.err)
        report = result.json()
        self.assertEqual((report["delivered"], report["lost"], report["doubled"]), (MESSAGES, 0, 0))

    def stored(self, node):
        status, text = ask(SLUICE, "history", node.address(), "--json", "--page-size=100")
        self.assertEqual(status, 0)
        return [message["hash"] for message in json.loads(text)["messages"]]

    def settle(self, node):
        self.wait_for(lambda: self.ledger(node)[1] == 0, "storing what waited")
        self.wait_for(lambda: not self.is_degraded(node), "being well again")
        counts, _ = self.ledger(node)
        return counts

    def end(self, node, database_rows):
        hashes = self.stored(node)
        self.assertEqual(len(hashes), len(set(hashes)))
        self.assertEqual(len(hashes), database_rows)
        folder = node.folder.name
        node.process.terminate()
        self.assertEqual(node.process.wait(PATIENCE_S), 0)
        verified = run(SLUICE, "archive", "verify", f"--archive=sqlite://{folder}/archive.db")
        self.assertEqual(verified.status, 0, verified.out)

    def test_what_waits_is_stored_once_afterwards(self):
        node = self.start()
        self.flood(node)
        before = self.settle(node)["delivered", "delivered"]
        other = self.lock(node)
        self.flood(node)
        self.wait_for(lambda: self.is_degraded(node), "being degraded")
        counts, held = self.ledger(node)
        self.assertGreater(held, MESSAGES // 2)
        self.assertEqual(len(self.stored(node)), before)  # queries are answered
        other.execute("ROLLBACK")
        counts = self.settle(node)
        self.assertEqual(counts["dropped", "archive_unavailable"], 0)
        self.assertEqual(counts["delivered", "delivered"] + sum(
            number for (outcome, _), number in counts.items() if outcome == "refused"),
            counts["received", "received"])
        self.assertGreaterEqual(counts["delivered", "delivered"], before + MESSAGES)
        self.end(node, counts["delivered", "delivered"])

    def test_what_there_is_no_room_for_is_counted(self):
        node = self.start("--archive-ring=64", "--archive-batch=16", "--archive-spill-limit=0")
        other = self.lock(node)
        self.flood(node)
        other.execute("ROLLBACK")
        counts = self.settle(node)
        self.assertGreater(counts["dropped", "archive_unavailable"], 0)
        self.assertGreater(counts["delivered", "delivered"], 0)
        self.assertGreaterEqual(
            counts["delivered", "delivered"] + counts["dropped", "archive_unavailable"], MESSAGES)
        self.end(node, counts["delivered", "delivered"])


if __name__ == "__main__":
    unittest.main()
