"""Reads the protobuf form of an OpenAPI v2 document (gnostic's Document) into what its JSON has.

Written from the numbers in OpenAPIv2.proto alone. Whatever a document has that is not here, or has
the wrong wire type, is an error: nothing is skipped.
"""
import json
import struct

VARINT, FIXED64, BYTES = 0, 1, 2


class Broken(ValueError):
    """The bytes are no document."""


def _varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Broken("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return value, at


def fields(data):
    """Each field of a message: number, wire type, value."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, at = _varint(data, at)
        elif wire == FIXED64:
            value, at = data[at:at + 8], at + 8
        elif wire == BYTES:
            size, at = _varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise Broken("a field is cut off")
        else:
            raise Broken(f"wire type {wire}")
        yield number, wire, value


def _only(data, number):
    """The value of a message that has one field."""
    found = list(fields(data))
    if len(found) != 1 or found[0][0] != number:
        raise Broken(f"{found!r} where field {number} alone belongs")
    return found[0][2]


def text(data):
    return data.decode()


def number(data):
    return struct.unpack("<d", data)[0]


def anything(data):
    return json.loads(_only(data, 2))  # YAML, but only JSON is written


def types(data):
    return text(_only(data, 1))


def one_schema(data):
    return schema(_only(data, 1))


def more(data):
    [(which, _, value)] = fields(data)
    return schema(value) if which == 1 else bool(value)


def named(read, at=1):
    """A message that is a list of {name = 1, value = 2}."""
    def inside(data):
        result = {}
        for which, _, entry in fields(data):
            if which != at:
                raise Broken(f"field {which} of a map")
            parts = {n: value for n, _, value in fields(entry)}
            if set(parts) != {1, 2} or text(parts[1]) in result:
                raise Broken(f"an entry with {sorted(parts)}")
            result[text(parts[1])] = read(parts[2])
        return result
    return inside


FLAG, INTEGER = object(), object()
WIRE = {FLAG: VARINT, INTEGER: VARINT, number: FIXED64}


def message(known, extensions):
    """Reads a message by {number: (name, type)}; a type in a list repeats."""
    def inside(data):
        result = {}
        for which, wire, value in fields(data):
            if which == extensions:
                parts = {n: v for n, _, v in fields(value)}
                result[text(parts[1])] = anything(parts[2])
                continue
            if which not in known:
                raise Broken(f"field {which} is not known")
            name, read = known[which]
            many = isinstance(read, list)
            read = read[0] if many else read
            if wire != WIRE.get(read, BYTES):
                raise Broken(f"{name} has wire type {wire}")
            if read is FLAG:
                value = bool(value)
            elif read is not INTEGER:
                value = read(value)
            if many:
                result.setdefault(name, []).append(value)
            elif name in result:
                raise Broken(f"{name} is there twice")
            else:
                result[name] = value
        return result
    return inside


def schema(data):
    return _schema(data)


_schema = message({
    1: ("$ref", text), 2: ("format", text), 3: ("title", text), 4: ("description", text),
    5: ("default", anything), 6: ("multipleOf", number), 7: ("maximum", number),
    8: ("exclusiveMaximum", FLAG), 9: ("minimum", number), 10: ("exclusiveMinimum", FLAG),
    11: ("maxLength", INTEGER), 12: ("minLength", INTEGER), 13: ("pattern", text),
    14: ("maxItems", INTEGER), 15: ("minItems", INTEGER), 16: ("uniqueItems", FLAG),
    17: ("maxProperties", INTEGER), 18: ("minProperties", INTEGER), 19: ("required", [text]),
    20: ("enum", [anything]), 21: ("additionalProperties", more), 22: ("type", types),
    23: ("items", one_schema), 25: ("properties", named(schema)), 30: ("example", anything)}, 31)

_BODY = message({1: ("description", text), 2: ("name", text), 3: ("in", text),
                 4: ("required", FLAG), 5: ("schema", schema)}, 6)
_QUERY = message({1: ("required", FLAG), 2: ("in", text), 3: ("description", text),
                  4: ("name", text), 6: ("type", text), 20: ("uniqueItems", FLAG)}, 23)
_PATH = message({1: ("required", FLAG), 2: ("in", text), 3: ("description", text),
                 4: ("name", text), 5: ("type", text), 19: ("uniqueItems", FLAG)}, 22)


def parameter(data):
    [(which, _, value)] = fields(_only(data, 1))
    if which == 1:
        return _BODY(value)
    [(which, _, value)] = fields(value)
    return {3: _QUERY, 4: _PATH}[which](value)


_RESPONSE = message({1: ("description", text), 2: ("schema", one_schema)}, 5)
_OPERATION = message({
    3: ("description", text), 5: ("operationId", text), 6: ("produces", [text]),
    7: ("consumes", [text]), 8: ("parameters", [parameter]),
    9: ("responses", named(lambda data: _RESPONSE(_only(data, 1))))}, 13)
_PATH_ITEM = message({
    2: ("get", _OPERATION), 3: ("put", _OPERATION), 4: ("post", _OPERATION),
    5: ("delete", _OPERATION), 8: ("patch", _OPERATION), 9: ("parameters", [parameter])}, 10)
document = message({
    1: ("swagger", text), 2: ("info", message({1: ("title", text), 2: ("version", text)}, 7)),
    8: ("paths", named(_PATH_ITEM, 2)), 9: ("definitions", named(schema))}, 16)


def without_defaults(value):
    """The JSON form without what protobuf cannot tell from nothing: 0, false, "" and empty lists.

    What is kept as text (defaults, examples, words, extensions) and what is a message of its own
    (properties, additionalProperties) stays.
    """
    if isinstance(value, list):
        return [without_defaults(one) for one in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for key, one in value.items():
        if key.startswith("x-") or key in ("default", "example", "enum"):
            result[key] = one
        elif key == "properties":
            result[key] = {name: without_defaults(inside) for name, inside in one.items()}
        elif key == "additionalProperties" or isinstance(one, dict) or one not in (0, "", []):
            result[key] = without_defaults(one)
    return result
