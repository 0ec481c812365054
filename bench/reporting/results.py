# SPDX-License-Identifier: MIT
"""Reads result files: the CSV of message_path and its heap series, the JSON of the other programs."""
import csv
import json
import pathlib
import re
import statistics

ROUND = re.compile(r"_run(\d+)$")
HEAP_HEADER = "message,allocated_bytes"
PATH_HEADER = "scenario,msgs"


class Results:
    """Everything that was read, by kind."""

    def __init__(self):
        self.paths = {}  # scenario -> {column: [value of each round]}
        self.reference = []  # rows of reference.csv
        self.heaps = []  # (name, rows)
        self.floods = []  # (name, object)
        self.fanouts = []  # rows
        self.rings = []  # (name, object)
        self.lines = []  # rows of programs that print one object a line
        self.peers = {}  # stack -> rows of the foreign peers' bench.sh

    def is_empty(self):
        return not any(vars(self).values())


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def read_path_csv(results, lines):
    """Rounds are kept; a median that the program printed counts only where its rounds are missing."""
    header, medians = None, {}
    for row in csv.reader(lines):
        if row[:2] == PATH_HEADER.split(","):
            header = row
        elif header and len(row) == len(header):
            name = ROUND.sub("", row[0])
            values = {column: number(text) for column, text in zip(header, row)}
            target = results.paths if name != row[0] else medians
            columns = target.setdefault(name, {})
            for column, value in values.items():
                if value is not None:
                    columns.setdefault(column, []).append(value)
    for name, columns in medians.items():
        results.paths.setdefault(name, columns)


def read_heap(results, name, lines):
    rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(lines)]
    if rows:
        results.heaps.append((name, rows))


def take_object(results, name, item):
    if "latency_us" in item or "frames_per_second" in item:
        results.floods.append((name, item))
    elif item.get("bench") == "fanout":
        results.fanouts.append(item)
    elif isinstance(item.get("rows"), list):
        results.rings.append((name, item))
    elif "stack" in item:
        results.peers.setdefault(item["stack"], []).append(item)
    elif "bench" in item:
        results.lines.append(item)
    else:
        raise ValueError(f"{name}: a JSON object of no program that is known here")


def read_json(results, name, text):
    """One object, or one a line."""
    try:
        objects = [json.loads(text)]
    except json.JSONDecodeError:
        objects = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    for item in objects:
        take_object(results, name, item)


def read_file(results, path):
    path = pathlib.Path(path)
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("{"):
        read_json(results, path.stem, text)
    elif first.startswith(HEAP_HEADER):
        read_heap(results, path.stem, lines)
    elif any(line.startswith(PATH_HEADER) for line in lines):
        read_path_csv(results, lines)
    else:
        raise ValueError(f"{path}: neither CSV of message_path nor JSON of a benchmark")


def read_reference(results, path):
    with open(path, encoding="utf-8", newline="") as file:
        results.reference = [
            {key: value if number(value) is None else number(value) for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def median(values):
    return statistics.median(values) if values else None
