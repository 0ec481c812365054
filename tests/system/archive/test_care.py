# SPDX-License-Identifier: MIT
"""The daemon and `sluice archive` on archives that are copied, damaged, foreign or too new."""

import os
import signal
import sqlite3
import subprocess
import time
import unittest

import programs
from programs import FLOOD, SLUICE, SMALL


class Care(programs.Case):
    def archive(self, *arguments):
        return programs.run(SLUICE, "archive", *arguments)

    def run_node(self, *options):
        """Starts a node; the process and its first lines, up to READY or its end."""
        process = subprocess.Popen(
            [SLUICE, "run", "--network=false", *options], cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        return process, line.strip()

    def stop_node(self, process):
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        return out + err

    def make_reference(self, name):
        """As the reference makes it; some messages with wrong hashes, which does not matter here."""
        path = self.path(name)
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE IF NOT EXISTS Message ( messageHash BLOB NOT NULL PRIMARY KEY,"
                   " pubsubTopic BLOB NOT NULL, contentTopic BLOB NOT NULL, payload BLOB,"
                   " version INTEGER NOT NULL, timestamp INTEGER NOT NULL, meta BLOB) WITHOUT ROWID")
        db.execute("CREATE INDEX IF NOT EXISTS i_ts ON Message (timestamp)")
        db.execute("PRAGMA user_version = 10")
        now = time.time_ns()
        for i in range(300):
            db.execute("INSERT INTO Message VALUES (?, ?, ?, ?, 0, ?, NULL)",
                       (os.urandom(32), b"/waku/2/rs/16/0", b"/care/1/x/proto", b"%d" % i, now - i))
        db.commit()
        db.close()
        return path

    def assert_refuses(self, result, status, *named):
        """One line says why; notes about the configuration may stand around it."""
        self.assertEqual(result.status, status, result.err)
        lines = [line for line in result.err.splitlines() if not line.startswith("NTC ")]
        self.assertEqual(len(lines), 1, result.err)
        for name in named:
            self.assertIn(name, lines[0])
        return lines[0]

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def test_copy_while_it_is_written_is_whole(self):
        database = self.path("live.db")
        reading, writing = os.pipe()
        flood = subprocess.Popen(
            [FLOOD, "--in-process", "--messages=1000000", "--sizes=200:90,30k:10",
             f"--archive=sqlite://{database}", f"--acknowledge-fd={writing}"], pass_fds=[writing],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(writing)
        try:
            with os.fdopen(reading, "r", encoding="ascii") as pipe:
                acknowledged = set()
                for i in range(3):
                    acknowledged |= {pipe.readline().strip() for _ in range(2000)}
                    copy = self.path(f"copy{i}.db")
                    self.assert_fine(self.archive("backup", f"--archive=sqlite://{database}",
                                                  f"--to=sqlite://{copy}"))
                    self.assert_fine(self.archive("verify", f"--archive=sqlite://{copy}"))
                    stored = programs.stored_hashes(copy)
                    self.assertEqual(len(set(stored)), len(stored))
                    self.assertEqual(acknowledged - set(stored), set())
                self.assert_fine(self.archive("verify", f"--archive=sqlite://{database}"))
        finally:
            flood.kill()
            flood.wait()
        self.assert_fine(self.archive("verify", f"--archive=sqlite://{database}"))

    def test_exit_status_of_verify_says_whether_it_is_good(self):
        database = self.path("a.db")
        self.assert_fine(programs.replay(f"--archive=sqlite://{database}", SMALL))
        self.assert_fine(self.archive("verify", f"--archive=sqlite://{database}"))
        segment = f"{database}-segments/0000000001.segment"
        with open(segment, "r+b") as file:
            file.seek(5000)
            byte = file.read(1)
            file.seek(5000)
            file.write(bytes([byte[0] ^ 1]))
        result = self.archive("verify", f"--archive=sqlite://{database}")
        self.assertEqual(result.status, 1)
        self.assertIn("problem: segment 1: no whole record at byte", result.out)
        copy = self.path("b.db")
        self.assertEqual(self.archive("backup", f"--archive=sqlite://{self.path('no.db')}",
                                      f"--to=sqlite://{copy}").status, 1)
        self.assertEqual(self.archive("backup", f"--archive=sqlite://{database}").status, 2)
        self.assertEqual(self.archive("mend").status, 2)

    def test_start_stops_at_a_database_of_the_reference_and_says_what_to_run(self):
        path = self.make_reference("store.sqlite3")
        before = self.read(path)
        entries = sorted(os.listdir(self.folder))
        result = programs.run(SLUICE, "run", "--network=false", "--store=true", cwd=self.folder)
        line = self.assert_refuses(
            result, 1, "nwaku", "sluice archive import --from=sqlite://store.sqlite3 "
            "--archive=sqlite://store.sqlite3.sluice")
        self.assertEqual(self.read(path), before)
        self.assertEqual(sorted(os.listdir(self.folder)), entries)
        # That very line, and then a start with what it made.
        command = line[line.index("sluice archive import"):].split()
        self.assert_fine(programs.run(SLUICE, *command[1:], cwd=self.folder))
        process, line = self.run_node("--store=true",
                                      "--store-message-db-url=sqlite://store.sqlite3.sluice")
        self.assertEqual(line, "READY")
        self.stop_node(process)
        self.assertEqual(len(programs.stored_hashes(self.path("store.sqlite3.sluice"))), 300)
        self.assertEqual(self.read(path), before)

    def test_start_imports_when_told_to(self):
        path = self.make_reference("store.sqlite3")
        before = self.read(path)
        for _ in range(2):
            process, line = self.run_node("--store=true", "--store-message-db-migration=true")
            self.assertEqual(line, "READY")
            self.stop_node(process)
            self.assertEqual(len(programs.stored_hashes(self.path("store.sqlite3.sluice"))), 300)
        self.assertEqual(self.read(path), before)

    def test_start_sets_a_damaged_index_aside(self):
        database = self.path("a.db")
        self.assert_fine(programs.replay(f"--archive=sqlite://{database}", SMALL))
        stored = programs.stored_hashes(database)
        with open(database, "r+b") as file:
            file.write(b"\x5a" * 8192)
        process, line = self.run_node(f"--archive=sqlite://{database}")
        self.assertEqual(line, "READY")
        said = self.stop_node(process)
        self.assertIn("is damaged: kept as", said)
        self.assertTrue(os.path.exists(database + ".damaged"))
        self.assertEqual(programs.stored_hashes(database), stored)

    def test_start_refuses_a_newer_schema(self):
        database = self.path("a.db")
        self.assert_fine(programs.replay(f"--archive=sqlite://{database}", SMALL))
        db = sqlite3.connect(database)
        db.execute("PRAGMA user_version = 9")
        db.close()
        result = programs.run(SLUICE, "run", "--network=false", f"--archive=sqlite://{database}")
        self.assert_refuses(result, 1, database, "newer version", "knows schema 1")

    def test_retention_of_a_start_removes_what_is_too_much(self):
        database = self.path("a.db")
        self.assert_fine(programs.replay(f"--archive=sqlite://{database}", SMALL))
        newest = programs.stored_hashes(database)[-10:]
        process, line = self.run_node(f"--archive=sqlite://{database}",
                                      "--store-message-retention-policy=capacity:10")
        self.assertEqual(line, "READY")
        end = time.monotonic() + 60
        while len(programs.stored_hashes(database)) > 10 and time.monotonic() < end:
            time.sleep(0.05)
        self.stop_node(process)
        self.assertEqual(programs.stored_hashes(database), newest)
        self.assert_refuses(
            programs.run(SLUICE, "run", "--store-message-retention-policy=size:3"), 2,
            "--store-message-retention-policy", "units")


if __name__ == "__main__":
    unittest.main()
