# SPDX-License-Identifier: MIT
"""What the programs do with bad files, bad disks and bad arguments: one clear line, and no more harm."""

import os
import struct
import subprocess
import unittest

import model
import programs
from programs import FLOOD, SLUICE, SMALL, query, replay, run

HEAD = struct.pack(">QI", 1767225600 * 10**9, 1)


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


class BadCapture(programs.Case):
    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def replay_broken(self, data, *named):
        """The whole records before the fault must be in the archive."""
        file = self.write("broken.cap", data)
        database = self.path("archive.db")
        result = replay(f"--archive=sqlite://{database}", file)
        self.assert_fails(result, 1, file, *named)
        self.assertIn("ledgers: closed", result.out)
        return programs.stored_hashes(database)

    def stored_of(self, records):
        """The hashes of what the first records of the good capture leave in the archive."""
        with open(SMALL, "rb") as file:
            data = file.read()
        return [m.hash for m in model.store_order(
            model.accepted_messages(self.write("good.cap", data[:records[-1][3]])))]

    def good_part(self, count):
        records = model.read_records(SMALL)[:count + 1]
        with open(SMALL, "rb") as file:
            return file.read(records[-1][3]), records

    def test_a_capture_that_is_cut_short(self):
        good, records = self.good_part(500)
        with open(SMALL, "rb") as file:
            data = file.read()
        for extra in (1, 11, 12, 13, 40):
            with self.subTest(extra=extra):
                if os.path.exists(self.path("archive.db")):
                    os.remove(self.path("archive.db"))
                    subprocess.run(["rm", "-rf", self.path("archive.db-segments")], check=True)
                stored = self.replay_broken(data[:len(good) + extra], "record 501",
                                            f"byte {len(good)}", "ends before its length says")
                self.assertEqual(stored, self.stored_of(records))

    def test_a_record_longer_than_the_limit(self):
        good, records = self.good_part(200)
        size = 10 << 20
        stored = self.replay_broken(good + HEAD + varint(size) + b"x" * size, "record 201",
                                    "larger than the limit")
        self.assertEqual(stored, self.stored_of(records))

    def test_a_frame_whose_length_is_2_to_the_63(self):
        good, records = self.good_part(200)
        stored = self.replay_broken(good + HEAD + varint(1 << 63) + b"x" * 100, "record 201")
        self.assertEqual(stored, self.stored_of(records))

    def test_a_length_that_never_ends(self):
        good, records = self.good_part(10)
        stored = self.replay_broken(good + HEAD + b"\xff" * 40, "record 11", "variable-length")
        self.assertEqual(stored, self.stored_of(records))

    def test_an_empty_capture_is_no_fault(self):
        self.assert_fine(replay("--archive=memory", self.write("empty.cap", b"")))

    def test_a_file_that_is_not_there(self):
        missing = self.path("missing.cap")
        self.assert_fails(replay("--archive=memory", missing), 1, missing, "No such file")

    def test_a_folder_in_place_of_a_file(self):
        self.assert_fails(replay("--archive=memory", self.folder), 1, self.folder,
                          "Is a directory")

    def test_a_good_file_after_a_bad_one_is_replayed(self):
        missing = self.path("missing.cap")
        database = self.path("archive.db")
        self.assert_fails(replay(f"--archive=sqlite://{database}", missing, SMALL), 1, missing)
        self.assertEqual(len(programs.stored_hashes(database)), 1381)


class BadDatabase(programs.Case):
    def test_a_file_that_is_no_database(self):
        database = self.path("archive.db")
        with open(database, "wb") as file:
            file.write(b"this is no database, only text\n" * 1000)
        for result in (replay(f"--archive=sqlite://{database}", SMALL), query(database),
                       run(FLOOD, "--in-process", "--messages=1", f"--archive=sqlite://{database}")):
            self.assert_fails(result, 1, database)
        with open(database, "rb") as file:
            self.assertTrue(file.read().startswith(b"this is no database"))

    def test_the_database_of_another_program(self):
        database = self.path("archive.db")
        subprocess.run(["python3", "-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
                        "c.execute('create table theirs (x)'); c.commit()", database], check=True)
        self.assert_fails(replay(f"--archive=sqlite://{database}", SMALL), 1, database)
        self.assert_fails(query(database), 1, database)

    def test_a_folder_in_place_of_a_database(self):
        for result in (replay(f"--archive=sqlite://{self.folder}", SMALL), query(self.folder)):
            self.assert_fails(result, 1, self.folder)

    def test_a_database_in_a_folder_that_is_not_there(self):
        database = self.path("nowhere/archive.db")
        self.assert_fails(replay(f"--archive=sqlite://{database}", SMALL), 1, database)
        self.assert_fails(query(database), 1, database)
        self.assertFalse(os.path.exists(self.path("nowhere")))

    def test_a_query_makes_no_database(self):
        database = self.path("archive.db")
        self.assert_fails(query(database), 1, database)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_database_that_another_process_writes(self):
        database = self.path("archive.db")
        process = subprocess.Popen(
            [FLOOD, "--in-process", "--messages=1000000", "--sizes=200:1", "--rate=100",
             f"--archive=sqlite://{database}", "--acknowledge-fd=1"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            process.stdout.readline()  # it is writing now
            self.assert_fails(replay(f"--archive=sqlite://{database}", SMALL), 1, database)
            self.assert_fine(query(database))
        finally:
            process.kill()
            process.communicate()

    def test_a_spill_file_that_is_something_else(self):
        spill = self.path("spill")
        with open(spill, "wb") as file:
            file.write(b"no spill file at all")
        result = replay(f"--archive=sqlite://{self.path('archive.db')}", f"--archive-spill={spill}",
                        SMALL)
        self.assert_fails(result, 1, spill)

    def test_an_engine_that_does_not_exist(self):
        self.assert_fails(replay("--archive=oracle://x", SMALL), 2, "oracle://x")


class BadDisk(programs.Case):
    """On file systems of their own, where this user may mount some."""

    def mount(self, *options):
        place = self.path("disk")
        os.mkdir(place)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", place],
                              stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            self.skipTest("cannot mount a tmpfs here: " + done.stderr.decode().strip())
        self.addCleanup(subprocess.run, ["umount", place], check=False)
        return place

    def test_a_full_disk(self):
        disk = self.mount("size=1m")
        database = os.path.join(disk, "archive.db")
        result = replay("--json", f"--archive=sqlite://{database}", SMALL)
        self.assert_fails(result, 1, database, "no space left")
        ledger = result.json()["ledgers"]["archive"]
        self.assertTrue(ledger["closed"])
        self.assertGreater(ledger["dropped"] + ledger["held"], 0)
        self.check_delivered(disk, ledger["delivered"])

    def check_delivered(self, disk, delivered):
        """What was counted as archived is there, once there is room again."""
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        stored = programs.stored_hashes(os.path.join(disk, "archive.db"))
        self.assertEqual(len(stored), delivered)
        self.assertLessEqual(set(stored), {m.hash for m in model.accepted_messages(SMALL)})

    def test_a_disk_that_is_full_after_some_messages(self):
        disk = self.mount("size=3m")
        database = os.path.join(disk, "archive.db")
        result = replay("--json", "--archive-batch=16", f"--archive=sqlite://{database}", SMALL)
        if result.status == 0:
            self.skipTest("all of it fits")
        self.assert_fails(result, 1, database, "no space left")
        ledger = result.json()["ledgers"]["archive"]
        self.assertTrue(ledger["closed"])
        self.assertGreater(ledger["delivered"], 0)
        self.check_delivered(disk, ledger["delivered"])

    def test_a_full_disk_ends_a_flood(self):
        disk = self.mount("size=2m")
        database = os.path.join(disk, "archive.db")
        for loop in ([], ["--open-loop"]):
            result = run(FLOOD, "--in-process", "--messages=300", "--sizes=50k:1",
                         "--memory-budget=16MiB", f"--archive=sqlite://{database}", *loop)
            self.assert_fails(result, 1, database, "no space left")

    def test_a_read_only_disk(self):
        disk = self.mount("size=16m")
        database = os.path.join(disk, "archive.db")
        self.assert_fine(replay(f"--archive=sqlite://{database}", SMALL))
        stored = programs.stored_hashes(database)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        self.assert_fails(replay(f"--archive=sqlite://{database}", SMALL), 1, database,
                          "read-only")
        new = os.path.join(disk, "new.db")
        self.assert_fails(replay(f"--archive=sqlite://{new}", SMALL), 1, new)
        self.assertEqual(programs.stored_hashes(database), stored)


class ReadOnlyFiles(programs.Case):
    def drop_root(self):
        if os.geteuid() == 0:
            os.chmod(self.folder, 0o755)
            return {"user": 65534, "group": 65534}
        return {}

    def test_a_read_only_folder(self):
        user = self.drop_root()
        place = self.path("closed")
        os.mkdir(place, 0o555)
        database = os.path.join(place, "archive.db")
        result = replay(f"--archive=sqlite://{database}", SMALL, **user)
        self.assert_fails(result, 1, database)

    def test_a_read_only_database(self):
        database = self.path("archive.db")
        self.assert_fine(replay(f"--archive=sqlite://{database}", SMALL))
        os.chmod(database, 0o444)
        user = self.drop_root()
        result = replay(f"--archive=sqlite://{database}", SMALL, **user)
        self.assert_fails(result, 1, database)


class BadArguments(programs.Case):
    def test_an_unknown_option_names_the_nearest(self):
        for command in ("replay", "query"):
            with self.subTest(command=command):
                result = run(SLUICE, command, "--archiv=memory")
                self.assert_fails(result, 2, "--archiv", "--archive")
        self.assert_fails(replay("--filter-subscrib=x", SMALL), 2, "--filter-subscribe")

    def test_a_value_out_of_range(self):
        self.assert_fails(replay("--decode-lanes=17", SMALL), 2, "--decode-lanes=17", "16")
        self.assert_fails(replay("--archive-ring=100", SMALL), 2, "--archive-ring=100",
                          "power of two")
        self.assert_fails(replay("--idle=sleep", SMALL), 2, "--idle=sleep")
        self.assert_fails(replay("--memory-budget=12", SMALL), 2, "--memory-budget=12")
        self.assert_fails(replay("--log-level=LOUD", SMALL), 2, "--log-level=LOUD")

    def test_a_pin_that_does_not_parse(self):
        for pin in ("decode", "decode:", "decode:x", "decode:0,", "nobody:0", "decode:0-", ""):
            with self.subTest(pin=pin):
                self.assert_fails(replay(f"--pin={pin}", SMALL), 2, "--pin")

    def test_a_pin_of_a_processor_that_is_not_there(self):
        missing = max(os.sched_getaffinity(0)) + 1
        for program in (lambda pin: replay(pin, SMALL),
                        lambda pin: run(FLOOD, "--in-process", "--messages=1", pin)):
            self.assert_fails(program(f"--pin=decode:{missing}"), 2, "--pin",
                              f"processor {missing}")

    def test_a_pin_of_a_processor_that_is_not_allowed(self):
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) < 2:
            self.skipTest("this process may use one processor only")
        result = run("taskset", "-c", str(allowed[0]), SLUICE, "replay",
                     f"--pin=archive:{allowed[1]}", SMALL)
        self.assert_fails(result, 2, "--pin", f"processor {allowed[1]}")

    def test_good_pins_are_taken(self):
        one = min(os.sched_getaffinity(0))
        for pin in ("none", "auto", f"decode:{one}", f"decode:{one},archive:{one},filter:{one}"):
            with self.subTest(pin=pin):
                self.assert_fine(replay(f"--pin={pin}", "--archive=memory", SMALL))

    def test_a_subscriber_without_a_content_topic(self):
        for text in ("x", ",", "/a,", ",/b"):
            with self.subTest(text=text):
                self.assert_fails(replay(f"--filter-subscribe={text}", SMALL), 2,
                                  f"--filter-subscribe={text}")

    def test_no_file_at_all(self):
        self.assert_fails(replay("--archive=memory"), 2, "capture file")
        self.assert_fails(run(SLUICE, "query"), 2, "--archive")

    def test_an_unknown_command_and_none(self):
        unknown = run(SLUICE, "replya")
        self.assertEqual(unknown.status, 2)
        self.assertIn("replya", unknown.err.splitlines()[0])
        self.assertEqual(run(SLUICE).status, 2)

    def test_help_is_no_fault_and_knows_every_option(self):
        for command, option in (("replay", "--filter-subscribe"), ("query", "--backward")):
            result = run(SLUICE, command, "--help")
            self.assert_fine(result)
            self.assertIn(option, result.out)
        result = run(FLOOD, "--in-process", "--help")
        self.assert_fine(result)
        self.assertIn("--acknowledge-fd", result.out)


if __name__ == "__main__":
    unittest.main()
