# SPDX-License-Identifier: MIT
"""kill -9 at random moments: what was acknowledged is in the archive, once, and it opens again."""

import os
import random
import subprocess
import unittest

import model
import programs
from programs import FLOOD, IS_SLOW, SLUICE, SMALL

ROUNDS = int(os.environ.get("SLUICE_KILL_ROUNDS", "3" if IS_SLOW else "6"))


class Kill(programs.Case):
    def kill_after(self, lines, *command):
        """Kills the program once it has acknowledged so many messages; returns all of them."""
        reading, writing = os.pipe()
        process = subprocess.Popen([*command, f"--acknowledge-fd={writing}"], pass_fds=[writing],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(writing)
        acknowledged = []
        with os.fdopen(reading, "r", encoding="ascii") as pipe:
            for line in pipe:
                if not line.endswith("\n"):
                    break  # killed within a line
                acknowledged.append(line.strip())
                if len(acknowledged) == lines:
                    process.kill()
        process.wait()
        return acknowledged

    def assert_archive(self, database, acknowledged):
        stored = programs.stored_hashes(database)
        self.assertEqual(len(stored), len(set(stored)), "a message is there twice")
        self.assertEqual(set(acknowledged) - set(stored), set(), "acknowledged and not there")
        return stored

    def test_during_a_flood(self):
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                draw = random.Random(seed)
                database = self.path(f"flood{seed}.db")
                acknowledged = []
                for _ in range(2):  # the second goes on with what the first has left
                    acknowledged += self.kill_after(
                        draw.randrange(1, 3000), FLOOD, "--in-process", "--messages=1000000",
                        "--sizes=200:90,30k:10", f"--seed={draw.randrange(1 << 32)}",
                        f"--archive-batch={draw.choice([1, 16, 256])}",
                        *draw.choice([[], ["--stall=archive:200ms", "--open-loop",
                                           "--archive-ring=64", "--memory-budget=16MiB"]]),
                        f"--archive=sqlite://{database}")
                    self.assert_archive(database, acknowledged)
                self.assertGreater(len(acknowledged), 0)

    def test_during_a_replay(self):
        expected = [m.hash for m in model.store_order(model.accepted_messages(SMALL))]
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                draw = random.Random(1000 + seed)
                database = self.path(f"replay{seed}.db")
                acknowledged = self.kill_after(
                    draw.randrange(1, len(expected)), SLUICE, "replay",
                    f"--archive-batch={draw.choice([1, 8, 64])}", f"--archive=sqlite://{database}",
                    SMALL)
                stored = self.assert_archive(database, acknowledged)
                self.assertLessEqual(set(stored), set(expected))
                # What was not archived comes with the next replay, and nothing comes twice.
                self.assert_fine(programs.replay(f"--archive=sqlite://{database}", SMALL))
                self.assertEqual(programs.stored_hashes(database), expected)


if __name__ == "__main__":
    unittest.main()
