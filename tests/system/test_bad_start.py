# SPDX-License-Identifier: MIT
"""What `sluice run` says when it cannot start: the option by its name, in one line, and no key is made.

Exit status 2 is for a fault of the configuration, 1 for one of the world.
"""

import os
import re
import socket
import subprocess
import unittest

import programs
from programs import SLUICE, run

TABLE = os.path.join(os.path.dirname(programs.CAPTURES), "..", "base", "options.def")
WRONG = {"BOOL": "perhaps", "NUMBER": "-1", "BYTES": "1XB", "SECONDS": "soon"}
# Texts of which any will do.
FREE = {"peer-store-file", "agent-string", "pubsub-topic", "rest-allow-origin", "log-file", "key-file",
        "archive-spill", "websocket-secure-key-path", "websocket-secure-cert-path"}
# With these the option is looked at.
WITH = {"store-message-db-url": ["--store=true"],
        "metrics-names": ["--metrics-server=true", "--metrics-server-port=0"]}
READY_S = 60


def options_of_node():
    """(name, type)"""
    with open(TABLE, encoding="utf-8") as file:
        return re.findall(r'^OPTION\("([^"]+)",\s*(\w+)', file.read(), re.M)


class Case(programs.Case):
    def start(self, *arguments, **more):
        return run(SLUICE, "run", "--tcp-port=0", "--listen-address=127.0.0.1", *arguments,
                   cwd=self.folder, **more)

    def assert_refused(self, result, status, *named):
        """Among the log's lines one says why, with these words."""
        self.assertEqual(result.status, status, result.err)
        lines = [line for line in result.err.splitlines() if not re.match(r"(INF|NTC|WRN) ", line)]
        self.assertEqual(len(lines), 1, result.err)
        for name in named:
            self.assertIn(name, lines[0])

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)


class WrongValues(Case):
    def test_every_value_that_cannot_be_read_is_named(self):
        """All in one file: each has its line."""
        names = [(name, WRONG[kind]) for name, kind in options_of_node() if kind in WRONG]
        self.assertGreater(len(names), 80)
        path = self.write("node.toml", "".join(f'{name} = "{value}"\n' for name, value in names))
        result = run(SLUICE, "run", f"--config-file={path}", cwd=self.folder)
        self.assertEqual(result.status, 2, result.err)
        for number, (name, value) in enumerate(names, 1):
            self.assertRegex(result.err, rf"(?m)^{re.escape(path)}:{number}:.*{name}")
        self.assertEqual(os.listdir(self.folder), ["node.toml"])

    def test_every_text_that_means_nothing_is_named(self):
        for name, kind in options_of_node():
            if kind not in ("TEXT", "LIST") or name in FREE:
                continue
            with self.subTest(option=name):
                result = self.start(f"--{name}=%%wrong%%", *WITH.get(name, []))
                self.assert_refused(result, 2, f"--{name}")
                self.assertEqual(os.listdir(self.folder), [])

    def test_in_the_environment(self):
        for variable, option in (("SLUICE_TCP_PORT=many", "tcp-port"), ("WAKUNODE2_SHARD=%", "shard"),
                                 ("SLUICE_NODEKEY=12", "nodekey")):
            with self.subTest(variable=variable):
                name, value = variable.split("=")
                result = run(SLUICE, "run", cwd=self.folder, env={**os.environ, name: value})
                self.assertEqual(result.status, 2)
                self.assertRegex(result.err, f"{option}|{name}")

    def test_what_contradicts(self):
        for arguments in (["--store=true", "--archive=none"],
                          ["--mesh-degree=6", "--mesh-degree-low=7"],
                          ["--peer-store-capacity=10", "--max-connections=20"],
                          ["--ports-shift=65535", "--rest=true", "--tcp-port=0"],
                          ["--websocket-secure-support=true"],
                          ["--websocket-secure-support=true", "--websocket-secure-cert-path=x"]):
            with self.subTest(arguments=arguments):
                name = re.match("--([a-z-]+)", arguments[0])[1]
                self.assert_refused(self.start(*arguments), 2, name)


class TheWorld(Case):
    def test_files_that_cannot_be_had(self):
        for arguments in (["--key-file=/nonexistent/x"], ["--key-file=/"], ["--log-file=/nonexistent/x"],
                          ["--log-file=/"], ["--config-file=/nonexistent"], ["--config-file=/"],
                          ["--archive=sqlite:///nonexistent/x"], ["--archive=sqlite:///"],
                          ["--store-message-db-url=sqlite:///nonexistent/x", "--store=true"],
                          ["--archive-spill=/nonexistent/x", "--archive=sqlite://a.db"],
                          ["--archive-spill=/", "--archive=sqlite://a.db"],
                          ["--peer-store-file=/nonexistent/x", "--peer-persistence=true"],
                          ["--peer-store-file=/", "--peer-persistence=true"],
                          ["--websocket-secure-cert-path=/nonexistent", "--websocket-secure-key-path=/",
                           "--websocket-secure-support=true", "--websocket-port=0"]):
            with self.subTest(arguments=arguments):
                name = arguments[0].split("=")[0]
                status = 2 if name in ("--log-file", "--config-file") else 1
                self.assert_refused(self.start(*arguments), status, name)

    def test_files_that_hold_something_else(self):
        other = self.write("other", "something else, and more of it than a header has\n")
        empty = self.write("empty", "")
        for arguments in ([f"--key-file={other}"], [f"--key-file={empty}"],
                          [f"--archive=sqlite://{other}"],
                          [f"--archive-spill={other}", "--archive=sqlite://a.db"],
                          [f"--websocket-secure-cert-path={other}", f"--websocket-secure-key-path={empty}",
                           "--websocket-secure-support=true", "--websocket-port=0"]):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.start(*arguments), 1, arguments[0].split("=")[0])
        with open(other, encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("something else"))
        self.assertEqual(os.path.getsize(empty), 0)

    def test_a_folder_that_others_may_not_write(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become somebody else")
        os.chmod(self.folder, 0o755)
        for arguments in (["--key-file=node.key"], ["--archive=sqlite://a.db"],
                          ["--peer-store-file=p", "--peer-persistence=true"]):
            with self.subTest(arguments=arguments):
                result = self.start(*arguments, user=65534, group=65534)
                self.assert_refused(result, 1, arguments[0].split("=")[0])
        self.assertEqual(os.listdir(self.folder), [])

    def test_ports_that_are_taken(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            for arguments in ([f"--tcp-port={port}"],
                              [f"--websocket-port={port}", "--websocket-support=true"],
                              [f"--rest-port={port}", "--rest=true"],
                              [f"--metrics-server-port={port}", "--metrics-server=true"]):
                with self.subTest(arguments=arguments):
                    self.assert_refused(self.start(*arguments), 1, arguments[0].split("=")[0], str(port),
                                        "Address already in use")

    def test_two_nodes_on_one_archive(self):
        with subprocess.Popen([SLUICE, "run", "--tcp-port=0", "--listen-address=127.0.0.1",
                               "--archive=sqlite://a.db"], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as first:
            self.addCleanup(first.kill)
            while "READY" not in first.stdout.readline():
                self.assertIsNone(first.poll())
            self.assert_refused(self.start("--archive=sqlite://a.db"), 1, "--archive", "a.db")
            self.assert_refused(self.start("--archive=sqlite://b.db", "--archive-spill=a.db.spill"), 1,
                                "--archive-spill", "a.db.spill")
            first.terminate()
            self.assertEqual(first.wait(READY_S), 0)


if __name__ == "__main__":
    unittest.main()
