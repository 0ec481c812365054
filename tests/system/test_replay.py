# SPDX-License-Identifier: MIT
"""Captured traffic through the whole pipeline: every figure of expected.json, and deliveries."""

import collections
import json
import os
import time
import unittest

import model
import programs
from programs import MIXED, SMALL, replay

with open(os.path.join(programs.CAPTURES, "expected.json"), encoding="utf-8") as expected_file:
    EXPECTED = json.load(expected_file)


class Replay(programs.Case):
    def engines(self):
        return {"memory": "memory", "sqlite in memory": "sqlite://:memory:",
                "sqlite": f"sqlite://{self.path('archive.db')}"}

    def assert_as_expected(self, result, name):
        for key, value in EXPECTED[name].items():
            self.assertEqual(result[name].get(key), value, f"{name}: {key}")

    def assert_ledgers(self, result):
        for stage, ledger in result["ledgers"].items():
            self.assertTrue(ledger["closed"], stage)
            self.assertEqual(ledger["held"], 0, stage)
            self.assertEqual(ledger["received"],
                             ledger["delivered"] + ledger["refused"] + ledger["dropped"], stage)
            self.assertEqual(ledger["dropped"], 0, stage)

    def test_gives_every_expected_figure_with_each_engine(self):
        for name, address in self.engines().items():
            with self.subTest(engine=name):
                result = replay("--json", f"--archive={address}", SMALL, MIXED)
                self.assert_fine(result)
                self.assert_as_expected(result.json(), "relay-small.cap")
                self.assert_as_expected(result.json(), "relay-mixed.cap")
                self.assert_ledgers(result.json())

    def test_decodes_and_hashes_once_and_copies_nothing(self):
        for archive in ("memory", f"sqlite://{self.path('archive.db')}"):
            result = replay("--json", f"--archive={archive}", MIXED)
            self.assert_fine(result)
            counters = result.json()["counters"]
            new = result.json()["ledgers"]["intake"]["delivered"]
            self.assertEqual(counters["message_hashes"], new)
            self.assertEqual(counters["id_hashes"], new)
            self.assertEqual(counters["copies"], 0)

    def test_gives_the_same_figures_with_several_lanes_and_small_queues(self):
        result = replay("--json", "--decode-lanes=3", "--filter-threads=2", "--memory-budget=16MiB",
                        "--archive-batch=7", f"--archive=sqlite://{self.path('archive.db')}",
                        SMALL, MIXED)
        self.assert_fine(result)
        self.assert_as_expected(result.json(), "relay-small.cap")
        self.assert_as_expected(result.json(), "relay-mixed.cap")
        self.assert_ledgers(result.json())

    def test_without_relay_finds_the_same_messages(self):
        result = replay("--json", "--relay=false", "--archive=memory", SMALL, MIXED)
        self.assert_fine(result)
        self.assert_as_expected(result.json(), "relay-small.cap")
        self.assertEqual(result.json()["counters"]["id_hashes"], 0)

    def test_a_second_replay_stores_nothing_twice(self):
        address = f"--archive=sqlite://{self.path('archive.db')}"
        self.assert_fine(replay(address, SMALL))
        first = programs.stored_hashes(self.path("archive.db"))
        result = replay("--json", address, SMALL)
        self.assert_fine(result)
        self.assertEqual(result.json()["ledgers"]["archive"]["delivered"], 0)
        self.assertEqual(result.json()["ledgers"]["archive"]["reasons"]["duplicate"],
                         EXPECTED["relay-small.cap"]["archived"])
        self.assertEqual(programs.stored_hashes(self.path("archive.db")), first)

    def test_prints_the_ledger_of_every_stage(self):
        result = replay("--archive=memory", SMALL)
        self.assert_fine(result)
        for stage in ("intake", "archive", "filter", "sync", "event"):
            self.assertRegex(result.out, rf"(?m)^{stage} +\d+ +\d+ +\d+ +\d+ +0$")
        self.assertIn("ledgers: closed", result.out)
        self.assertIn("refused(meta_too_long) 16", result.out)

    def test_delivers_to_each_subscriber_what_it_asked_for(self):
        wanted = collections.Counter((m.topic.decode(), m.content_topic.decode())
                                     for m in model.accepted_messages(SMALL))
        self.assertEqual(len(wanted), 15)
        subscribers = [f"--filter-subscribe={pubsub},{content}" for pubsub, content in wanted]
        nobody = "/waku/2/rs/16/0,/nothing/1/of/this"
        for threads in (1, 3):
            with self.subTest(threads=threads):
                result = replay("--json", "--archive=none", f"--filter-threads={threads}",
                                f"--filter-subscribe={nobody}", *subscribers, SMALL)
                self.assert_fine(result)
                deliveries = result.json()["filter_deliveries"]
                self.assertEqual(deliveries.pop(nobody), 0)
                self.assertEqual(deliveries, {f"{pubsub},{content}": count
                                              for (pubsub, content), count in wanted.items()})

    def test_deliveries_add_up_to_the_counts_by_topic(self):
        # Those of another time are good for filter, though not for the archive.
        expected = EXPECTED["relay-small.cap"]
        subscribers = [f"--filter-subscribe={pubsub},{content}"
                       for pubsub in expected["by_pubsub_topic"]
                       for content in expected["by_content_topic"]]
        result = replay("--json", "--archive=none", *subscribers, SMALL)
        self.assert_fine(result)
        self.assertEqual(sum(result.json()["filter_deliveries"].values()),
                         expected["unique_valid"] + expected["refused"]["timestamp_out_of_range"])

    def test_realtime_keeps_the_recorded_pace(self):
        with open(SMALL, "rb") as file:
            data = file.read()
        records = model.read_records(SMALL)
        first = records[0][0]
        span_ns = 300 * 10**6
        cut = next(offset for received, _, _, offset in records if received - first > span_ns)
        last = max(received for received, _, _, offset in records if offset < cut)
        with open(self.path("short.cap"), "wb") as file:
            file.write(data[:cut])
        began = time.monotonic_ns()
        result = replay("--json", "--realtime", "--archive=memory", self.path("short.cap"))
        self.assert_fine(result)
        self.assertGreaterEqual(time.monotonic_ns() - began, last - first)
        self.assertEqual(result.json()["short.cap"]["frames"],
                         sum(1 for record in records if record[3] < cut))


class Model(unittest.TestCase):
    """The model itself agrees with what foreign encoders said."""

    def test_agrees_with_the_expected_figures(self):
        accepted = model.accepted_messages(SMALL)
        expected = EXPECTED["relay-small.cap"]
        valid = [m for m in accepted if m.is_in_range()]
        self.assertEqual(len(valid), expected["unique_valid"])
        stored = model.store_order(accepted)
        self.assertEqual(len(stored), expected["archived"])
        digest = model.hashlib.sha256("".join(m.hash for m in stored).encode()).hexdigest()
        self.assertEqual(digest, expected["store_order_sha256"])


if __name__ == "__main__":
    unittest.main()
