# SPDX-License-Identifier: MIT
"""What a router must make of a capture, written a second time and as simply as possible."""

import hashlib
import struct

TOLERANCE_NS = 20 * 10**9
SIGNED_FIELDS = (1, 3, 5, 6)  # from, seqno, signature, key


class Malformed(Exception):
    pass


def read_varint(data, at):
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise Malformed("varint")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 1 << 64:
                raise Malformed("varint")
            return value, at
    raise Malformed("varint")


def read_fields(data):
    """(number, value) of every field of a protobuf message; bytes or int."""
    at = 0
    fields = []
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            raise Malformed("field 0")
        if wire_type == 0:
            value, at = read_varint(data, at)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
            value, at = data[at:at + size], at + size
        elif wire_type == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise Malformed("wire type")
        if at > len(data):
            raise Malformed("cut short")
        fields.append((number, value))
    return fields


def read_records(path):
    """(receive time, peer, frame, offset) of every record of a capture."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    records = []
    while at < len(data):
        begin = at
        received, peer = struct.unpack_from(">QI", data, at)
        length, at = read_varint(data, at + 12)
        records.append((received, peer, data[at:at + length], begin))
        at += length
    return records


class Message:
    def __init__(self, topic, data, received):
        fields = dict(read_fields(data))  # the last one counts
        self.topic = topic
        self.received = received
        self.bytes = data
        self.payload = fields.get(1, b"")
        self.content_topic = fields.get(2, b"")
        self.meta = fields.get(11, b"")
        zigzag = fields.get(10, 0)
        self.timestamp = (zigzag >> 1) ^ -(zigzag & 1)
        self.is_ephemeral = fields.get(31, 0) != 0
        self.content_topic.decode()
        digest = hashlib.sha256(topic + self.payload + self.content_topic + self.meta +
                                struct.pack(">q", self.timestamp))
        self.hash = digest.hexdigest()

    def is_accepted(self):
        return self.payload != b"" and self.content_topic != b"" and len(self.meta) <= 64

    def is_in_range(self):
        return abs(self.timestamp - self.received) <= TOLERANCE_NS

    def is_stored(self):
        return self.is_in_range() and not self.is_ephemeral


def accepted_messages(path):
    """Every different message that is good for relay and filter."""
    seen = set()
    accepted = []
    for received, _, frame, _ in read_records(path):
        try:
            entries = [read_fields(value) for number, value in read_fields(frame) if number == 2]
        except Malformed:
            continue
        for entry in entries:
            names = dict(entry)
            if any(number in names for number in SIGNED_FIELDS):
                continue
            topic, data = names[4], names[2]
            try:
                message = Message(topic, data, received)
            except (Malformed, UnicodeDecodeError, TypeError, AttributeError):
                continue
            if message.is_accepted() and (topic, data) not in seen:
                seen.add((topic, data))
                accepted.append(message)
    return accepted


def store_order(messages):
    return sorted((m for m in messages if m.is_stored()), key=lambda m: (m.timestamp, m.hash))
