# SPDX-License-Identifier: MIT
"""A strict reader of the text format that Prometheus scrapes (exposition format 0.0.4)."""

import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
TYPES = ("counter", "gauge", "histogram")


class Malformed(Exception):
    pass


def _labels(text, line):
    labels = {}
    while text:
        match = LABEL.match(text)
        if not match:
            raise Malformed(f"labels: {line}")
        if match[1] in labels or match[1].startswith("__"):
            raise Malformed(f"label {match[1]}: {line}")
        labels[match[1]] = match[2]
        text = text[match.end():]
        if text:
            if not text.startswith(",") or text == ",":
                raise Malformed(f"labels: {line}")
            text = text[1:]
    return labels


def _sample(line):
    match = NAME.match(line)
    if not match:
        raise Malformed(f"name: {line}")
    rest, labels = line[match.end():], {}
    if rest.startswith("{"):
        end = rest.rindex("}")
        labels, rest = _labels(rest[1:end], line), rest[end + 1:]
    if not rest.startswith(" ") or not re.fullmatch(r"[0-9.eE+-]+|[+-]?Inf|NaN", rest[1:]):
        raise Malformed(f"value: {line}")
    return match[0], labels, float(rest[1:])


def read(page):
    """{family: (type, {(sample name, labels): value})}; raises Malformed."""
    if not page.endswith("\n"):
        raise Malformed("the last line has no end")
    families, current, helped = {}, None, None
    for line in page[:-1].split("\n"):
        if line.startswith("# HELP "):
            helped = line.split(" ", 3)[2]
            if helped in families:
                raise Malformed(f"family twice: {line}")
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            if name != helped or kind not in TYPES or name in families:
                raise Malformed(f"type: {line}")
            current, families[name] = name, (kind, {})
        else:
            name, labels, value = _sample(line)
            kind, samples = families.get(current, (None, None))
            allowed = [current]
            if kind == "histogram":
                allowed = [current + end for end in ("_bucket", "_sum", "_count")]
            if name not in allowed:
                raise Malformed(f"outside its family: {line}")
            key = (name, tuple(sorted(labels.items())))
            if key in samples:
                raise Malformed(f"twice: {line}")
            if kind == "counter" and (value < 0 or math.isnan(value)):
                raise Malformed(f"counter: {line}")
            samples[key] = value
    for name, (kind, samples) in families.items():
        if not samples:
            raise Malformed(f"{name} is empty")
        if kind == "histogram":
            _check_histogram(name, samples)
    return families


def _check_histogram(name, samples):
    buckets = [(float(dict(labels)["le"]), value) for (sample, labels), value in samples.items()
               if sample == name + "_bucket"]
    bounds = [bound for bound, _ in buckets]
    counts = [count for _, count in buckets]
    if bounds != sorted(bounds) or bounds[-1] != math.inf or counts != sorted(counts):
        raise Malformed(f"{name}: classes {buckets}")
    if counts[-1] != samples[(name + "_count", ())] or (name + "_sum", ()) not in samples:
        raise Malformed(f"{name}: count and sum")


def value(families, name, **labels):
    """The one sample with that name and at least those labels; None when there is none."""
    found = [value for _, samples in families.values() for (sample, has), value in samples.items()
             if sample == name and all(dict(has).get(key) == wanted for key, wanted in labels.items())]
    if len(found) > 1:
        raise Malformed(f"{name} {labels}: {len(found)} samples")
    return found[0] if found else None
