# SPDX-License-Identifier: MIT
"""flood --in-process: nothing lost, doubled or torn, and every ledger closes."""

import os
import unittest

import programs
from programs import FLOOD, IS_SLOW, run

LARGE = "--sizes=10k:25,50k:50,150k:25"


class Flood(programs.Case):
    def flood(self, *arguments):
        result = run(FLOOD, "--in-process", "--json", *arguments)
        self.assert_fine(result)
        report = result.json()
        self.assertTrue(report["ok"])
        for stage, ledger in report["ledgers"].items():
            self.assertTrue(ledger["closed"], stage)
            self.assertEqual(ledger["held"], 0, stage)
        return report

    def assert_all_there(self, report, messages):
        self.assertEqual(report["event_seen"], messages)
        self.assertEqual(report["archive_seen"], messages)
        self.assertEqual(report["counters"]["message_hashes"], messages)
        self.assertEqual(report["ledgers"]["archive"]["dropped"], 0)

    def test_small_messages_with_copies_and_subscribers(self):
        messages = 10000 if IS_SLOW else 50000
        report = self.flood(f"--messages={messages}", "--sizes=200:100", "--duplicates=30%",
                            "--subscribers=100", "--archive=memory")
        self.assert_all_there(report, messages)
        self.assertEqual(report["frames"], messages + report["copies"])
        self.assertEqual(report["ledgers"]["intake"]["reasons"]["duplicate"], report["copies"])
        self.assertAlmostEqual(report["copies"] / report["frames"], 0.3, delta=0.05)
        # 100 subscribers of 10 content topics: each message goes to ten of them.
        self.assertEqual(report["counters"]["filter_pushes"], messages * 10)
        self.assertEqual(report["counters"]["copies"], 0)

    def test_large_messages_while_the_archive_is_stalled(self):
        messages = 200 if IS_SLOW else 500
        for loop in ([], ["--open-loop"]):
            with self.subTest(loop=loop):
                database = self.path(f"archive{len(loop)}.db")
                report = self.flood(f"--messages={messages}", LARGE, "--stall=archive:1s",
                                    f"--archive=sqlite://{database}", *loop)
                self.assert_all_there(report, messages)
                self.assertEqual(len(programs.stored_hashes(database)), messages)

    def test_an_open_loop_goes_through_the_spill_file(self):
        messages = 1200
        database = self.path("archive.db")
        report = self.flood(f"--messages={messages}", LARGE, "--stall=archive:1s", "--open-loop",
                            "--memory-budget=64MiB",
                            f"--archive=sqlite://{database}")
        self.assertEqual(report["archive_seen"], messages)
        self.assertGreater(report["counters"]["archive_spilled"], 0)
        # Everything was read back: the file has nothing but its header.
        self.assertEqual(os.path.getsize(database + ".spill"), 16)

    def test_every_role_stalled_in_turn_under_a_small_budget(self):
        messages = 150 if IS_SLOW else 300
        for role in ("decode", "archive", "filter", "sync", "event", "spill"):
            with self.subTest(role=role):
                report = self.flood(f"--messages={messages}", LARGE, "--memory-budget=16MiB",
                                    "--subscribers=10", f"--stall={role}:1s",
                                    f"--archive=sqlite://{self.path(role + '.db')}")
                self.assert_all_there(report, messages)

    def test_several_lanes_and_filter_threads_and_topics(self):
        messages = 3000
        report = self.flood(f"--messages={messages}", "--sizes=200:80,20k:20", "--topics=7",
                            "--decode-lanes=3", "--filter-threads=3", "--subscribers=20",
                            "--duplicates=50%", "--memory-budget=16MiB",
                            f"--archive=sqlite://{self.path('archive.db')}")
        self.assert_all_there(report, messages)

    def test_keeps_the_rate_that_it_is_given(self):
        report = self.flood("--messages=200", "--sizes=200:1", "--rate=1000", "--archive=memory")
        self.assertGreaterEqual(report["seconds"], 0.199)

    def test_says_what_is_wrong_with_its_arguments(self):
        for wrong in ("--sizes=10", "--sizes=5:100", "--duplicates=100%", "--duplicates=x",
                      "--stall=archive", "--stall=nobody:1s", "--stall=archive:soon"):
            with self.subTest(argument=wrong):
                result = run(FLOOD, "--in-process", wrong)
                self.assert_fails(result, 2, wrong)
        self.assert_fails(run(FLOOD), 2, "--in-process")
        self.assert_fails(run(FLOOD, "--in-process", "stray"), 2, "stray")
        self.assert_fails(run(FLOOD, "--in-process", "--mesages=3"), 2, "--mesages", "--messages")

    def test_a_message_larger_than_the_budget_is_refused_at_once(self):
        result = run(FLOOD, "--in-process", "--memory-budget=1MiB", "--sizes=2MiB:1",
                     "--max-msg-size=4MiB", "--messages=1")
        self.assert_fails(result, 1, "memory budget")


if __name__ == "__main__":
    unittest.main()
