# SPDX-License-Identifier: MIT
"""sluice query on a replayed archive, against a list that is filtered and sorted by hand."""

import itertools
import unittest

import model
import programs
from programs import MIXED, SMALL, query


class Query(programs.Case):
    def setUp(self):
        super().setUp()
        self.database = self.path("archive.db")
        self.assert_fine(programs.replay(f"--archive=sqlite://{self.database}", SMALL, MIXED))
        self.rows = model.store_order(model.accepted_messages(SMALL) +
                                      model.accepted_messages(MIXED))

    def ask(self, *arguments):
        result = query(self.database, "--json", *arguments)
        self.assert_fine(result)
        return result.json()

    def assert_page(self, page, rows):
        self.assertEqual([m["hash"] for m in page["messages"]], [m.hash for m in rows])
        self.assertEqual(page["count"], len(rows))
        for shown, row in zip(page["messages"], rows):
            self.assertEqual(shown["timestamp"], str(row.timestamp))
            self.assertEqual(shown["pubsub_topic"], row.topic.decode())
            self.assertEqual(shown["content_topic"], row.content_topic.decode())
            self.assertEqual(shown["payload_bytes"], len(row.payload))

    def page_through(self, rows, limit, is_backward, *arguments):
        """Follows the cursors; every page must be what the model says."""
        left = list(rows)
        cursor = []
        direction = ["--backward"] if is_backward else []
        for _ in range(len(rows) // limit + 2):
            page = self.ask(f"--limit={limit}", *direction, *cursor, *arguments)
            if is_backward:
                expected, left = left[-limit:], left[:-limit]
            else:
                expected, left = left[:limit], left[limit:]
            self.assert_page(page, expected)
            if "cursor" not in page:
                break
            cursor = [f"--cursor={page['cursor']}"]
        self.assertEqual(left, [])

    def test_pages_through_everything_in_both_directions(self):
        for is_backward in (False, True):
            with self.subTest(backward=is_backward):
                self.page_through(self.rows, 250, is_backward)

    def test_pages_through_one_content_topic_of_one_shard(self):
        rows = [m for m in self.rows if m.topic == b"/waku/2/rs/16/1" and
                m.content_topic == b"/wallet/2/broadcast/json"]
        self.assertEqual(len(rows), 96)
        for limit, is_backward in itertools.product((7, 95, 96, 97), (False, True)):
            with self.subTest(limit=limit, backward=is_backward):
                self.page_through(rows, limit, is_backward, "--pubsub-topic=/waku/2/rs/16/1",
                                  "--content-topic=/wallet/2/broadcast/json")

    def test_takes_several_content_topics(self):
        topics = ["/wallet/2/broadcast/json", "/日本/1/ünï/proto"]
        rows = [m for m in self.rows if m.content_topic.decode() in topics]
        page = self.ask("--limit=5000", *[f"--content-topic={topic}" for topic in topics])
        self.assert_page(page, rows)

    def test_times_are_inclusive_at_both_ends(self):
        start, end = self.rows[100].timestamp, self.rows[400].timestamp
        rows = [m for m in self.rows if start <= m.timestamp <= end]
        self.assert_page(self.ask("--limit=5000", f"--start={start}", f"--end={end}"), rows)
        self.assert_page(self.ask("--limit=5000", f"--start={end + 1}", f"--end={end}"), [])

    def test_finds_messages_by_hash_and_passes_over_unknown_ones(self):
        some = [self.rows[5], self.rows[700], self.rows[1000]]
        asked = [f"--hash={m.hash}" for m in reversed(some)] + [f"--hash={'ab' * 32}"]
        self.assert_page(self.ask(*asked), some)

    def test_twenty_rows_are_the_default_and_the_newest_page_comes_first_backward(self):
        self.assert_page(self.ask(), self.rows[:20])
        self.assert_page(self.ask("--backward"), self.rows[-20:])

    def test_prints_a_line_a_message_without_json(self):
        result = query(self.database, "--limit=3")
        self.assert_fine(result)
        lines = result.out.splitlines()
        self.assertEqual(len(lines), 4)
        for line, row in zip(lines[:3], self.rows):
            self.assertTrue(line.startswith(f"{row.timestamp} {row.hash} {row.topic.decode()} "))
        self.assertTrue(lines[3].startswith("3 messages, cursor "))

    def test_refuses_what_makes_no_sense(self):
        unknown = "ab" * 32
        self.assert_fails(query(self.database, f"--cursor={unknown}"), 1, "cursor")
        self.assert_fails(query(self.database, f"--hash={unknown}", "--content-topic=/a/1/b/c"), 1,
                          "query")
        self.assert_fails(query(self.database, "--cursor=abc"), 2, "--cursor=abc")
        self.assert_fails(query(self.database, "--hash=xy"), 2, "--hash=xy")
        self.assert_fails(query(self.database, "--start=soon"), 2, "--start=soon")
        self.assert_fails(query(self.database, "--end=99999999999999999999"), 2, "--end=")
        self.assert_fails(query(self.database, "--limit=0"), 2, "--limit=0")
        self.assert_fails(query(self.database, "stray"), 2, "stray")


if __name__ == "__main__":
    unittest.main()
