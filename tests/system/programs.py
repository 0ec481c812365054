# SPDX-License-Identifier: MIT
"""How the system tests run the built programs."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

BIN = os.environ["SLUICE_BIN"]
IS_SLOW = os.environ.get("SLUICE_IS_SLOW") == "1"  # a sanitizer is compiled in
SLUICE = os.path.join(BIN, "sluice")
FLOOD = os.path.join(BIN, "flood")
CAPTURES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "captures")
SMALL = os.path.join(CAPTURES, "relay-small.cap")
MIXED = os.path.join(CAPTURES, "relay-mixed.cap")
LIMIT_S = 240  # a program that is still running then hangs


class Result:
    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    def json(self):
        return json.loads(self.out)


def run(program, *arguments, **options):
    done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=LIMIT_S, check=False, **options)
    return Result(done)


def replay(*arguments, **options):
    return run(SLUICE, "replay", *arguments, **options)


def query(database, *arguments):
    return run(SLUICE, "query", f"--archive=sqlite://{database}", *arguments)


def stored_hashes(database):
    """All message hashes of an archive, in store order."""
    result = query(database, "--limit=1000000", "--json")
    if result.status != 0:
        raise AssertionError(f"query: {result.status}: {result.err}")
    return [message["hash"] for message in result.json()["messages"]]


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    longMessage = True
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-system-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def assert_fine(self, result):
        self.assertEqual(result.status, 0, result.err + result.out[-2000:])
        self.assertEqual(result.err, "")

    def assert_fails(self, result, status, *named):
        """One line on standard error, which names the thing, and that exit status."""
        self.assertEqual(result.status, status, result.err + result.out[-2000:])
        lines = result.err.splitlines()
        self.assertEqual(len(lines), 1, result.err)
        for name in named:
            self.assertIn(name, lines[0])
