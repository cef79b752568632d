"""Reads the curves in a job's event files (docs/formats/events.md) without TensorBoard."""
import pathlib
import struct

_STEP, _SUMMARY = 2, 5    # of an Event
_VALUE = 1                # of a Summary
_TAG, _SIMPLE_VALUE = 1, 2  # of a Value


def curve(directory, tag):
    """The values of `tag` in the job's directory, by step. A step that stands there twice has its last value."""
    values = {}
    for path in sorted(pathlib.Path(directory, "events").glob("*tfevents*")):
        for event in _records(path.read_bytes()):
            parts = list(_fields(event))
            step = next((part for number, part in parts if number == _STEP), 0)
            for summary in (part for number, part in parts if number == _SUMMARY):
                for value in (dict(_fields(part)) for number, part in _fields(summary) if number == _VALUE):
                    if value.get(_TAG) == tag.encode() and _SIMPLE_VALUE in value:
                        values[step] = struct.unpack("<f", value[_SIMPLE_VALUE])[0]
    return values


def _records(data):
    """A record is its length, a checksum of the length, the bytes, and a checksum of those."""
    place = 0
    while place + 12 <= len(data):
        length = struct.unpack_from("<Q", data, place)[0]
        yield data[place + 12:place + 12 + length]
        place += length + 16


def _fields(message):
    """The number and the value of each field of a protocol buffer: a number, or bytes."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(message, place)
        else:
            if kind == 2:
                length, place = _varint(message, place)
            else:
                length = {1: 8, 5: 4}[kind]
            value = message[place:place + length]
            place += length
        yield key >> 3, value


def _varint(message, place):
    value, shift = 0, 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
