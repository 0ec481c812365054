# SPDX-License-Identifier: MIT
"""kill -9 at random moments: what was acknowledged is in the archive, once, and it opens again."""

import os
import random
import subprocess
import unittest

import model
import programs
from programs import FLOOD, IS_SLOW, SLUICE, SMALL

# A disk that keeps only what was synced; there is none for programs with a sanitizer in them.
UNSTEADY_DISK = os.environ.get("SLUICE_UNSTEADY_DISK", "")
ROUNDS = int(os.environ.get("SLUICE_KILL_ROUNDS", "3" if IS_SLOW else "6"))


FORGETTING_ROUNDS = ROUNDS if "SLUICE_KILL_ROUNDS" in os.environ else 1  # these are slow


class Kill(programs.Case):
    def disk(self, forgets):
        """The environment of a program whose unsynced writes a kill throws away, or does not."""
        if not forgets:
            return dict(os.environ)
        return dict(os.environ, LD_PRELOAD=UNSTEADY_DISK, SLUICE_DISK_FORGETS="1",
                    SLUICE_DISK_FOLDER=self.folder)

    def kill_after(self, lines, forgets, *command):
        """Kills the program once it has acknowledged so many messages; returns all of them."""
        reading, writing = os.pipe()
        process = subprocess.Popen([*command, f"--acknowledge-fd={writing}"], pass_fds=[writing],
                                   env=self.disk(forgets), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
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

    def recover(self, database):
        """What a node does with it at its start."""
        process = subprocess.Popen(
            [SLUICE, "run", "--network=false", f"--archive=sqlite://{database}"], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = process.stdout.readline()
        process.terminate()
        process.communicate(timeout=programs.LIMIT_S)
        self.assertEqual(line, "READY\n")
        self.assertEqual(process.returncode, 0)

    def assert_archive(self, database, acknowledged):
        self.recover(database)
        verified = programs.run(SLUICE, "archive", "verify", f"--archive=sqlite://{database}")
        self.assertEqual(verified.status, 0, verified.out)
        stored = programs.stored_hashes(database)
        self.assertEqual(len(stored), len(set(stored)), "a message is there twice")
        self.assertEqual(set(acknowledged) - set(stored), set(), "acknowledged and not there")
        return stored

    def flood_and_kill(self, forgets):
        for seed in range(FORGETTING_ROUNDS if forgets else ROUNDS):
            with self.subTest(seed=seed):
                draw = random.Random(seed)
                database = self.path(f"flood{seed}{forgets}.db")
                acknowledged = []
                for _ in range(2):  # the second goes on with what the first has left
                    acknowledged += self.kill_after(
                        draw.randrange(1, 3000), forgets, FLOOD, "--in-process", "--messages=1000000",
                        "--sizes=200:90,30k:10", f"--seed={draw.randrange(1 << 32)}",
                        f"--archive-batch={draw.choice([1, 16, 256])}",
                        *draw.choice([[], ["--stall=archive:200ms", "--open-loop",
                                           "--archive-ring=64", "--memory-budget=16MiB"]]),
                        f"--archive=sqlite://{database}")
                    self.assert_archive(database, acknowledged)
                self.assertGreater(len(acknowledged), 0)

    def test_during_a_flood(self):
        self.flood_and_kill(False)

    @unittest.skipUnless(UNSTEADY_DISK, "no such library in this build")
    def test_during_a_flood_on_a_disk_that_forgets(self):
        self.flood_and_kill(True)

    def replay_and_kill(self, forgets):
        expected = [m.hash for m in model.store_order(model.accepted_messages(SMALL))]
        for seed in range(FORGETTING_ROUNDS if forgets else ROUNDS):
            with self.subTest(seed=seed):
                draw = random.Random(1000 + seed)
                database = self.path(f"replay{seed}{forgets}.db")
                acknowledged = self.kill_after(
                    draw.randrange(1, len(expected)), forgets, SLUICE, "replay",
                    f"--archive-batch={draw.choice([1, 8, 64])}", f"--archive=sqlite://{database}",
                    SMALL)
                stored = self.assert_archive(database, acknowledged)
                self.assertLessEqual(set(stored), set(expected))
                # What was not archived comes with the next replay, and nothing comes twice.
                self.assert_fine(programs.replay(f"--archive=sqlite://{database}", SMALL))
                self.assertEqual(programs.stored_hashes(database), expected)

    def test_during_a_replay(self):
        self.replay_and_kill(False)

    @unittest.skipUnless(UNSTEADY_DISK, "no such library in this build")
    def test_during_a_replay_on_a_disk_that_forgets(self):
        self.replay_and_kill(True)


if __name__ == "__main__":
    unittest.main()
