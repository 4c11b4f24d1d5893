"""Protobuf's wire format, as far as ONNX models need it; the field numbers are those of src/import/onnx/onnx.proto."""

import struct

FLOAT, INT64, BOOL = 1, 7, 9


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """A message of fields (number, value): integers as varints, texts and inner messages with their length."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [varint(number << 3), varint(value)]
        else:
            data = value.encode() if isinstance(value, str) else value
            parts += [varint(number << 3 | 2), varint(len(data)), data]
    return b"".join(parts)


def attribute(name: str, value: int | bytes) -> bytes:
    """An INT, or a GRAPH as bytes."""
    if isinstance(value, int):
        return message((1, name), (3, value), (20, 2))
    return message((1, name), (6, value), (20, 5))


def node(op: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes) -> bytes:
    fields = [(1, name) for name in inputs] + [(2, name) for name in outputs] + [(4, op), (7, domain)]
    return message(*fields, *[(5, attribute(name, value)) for name, value in attributes.items()])


def value_info(name: str, dims: list[int | str], element: int = FLOAT) -> bytes:
    shape = [(1, message((1, d) if isinstance(d, int) else (2, d))) for d in dims]
    return message((1, name), (2, message((1, message((1, element), (2, message(*shape)))))))


def tensor(name: str, dims: list[int], values: list, element: int = FLOAT) -> bytes:
    raw = struct.pack(f"<{len(values)}{'f' if element == FLOAT else 'q'}", *values)
    return message(*[(1, d) for d in dims], (2, element), (8, name), (9, raw))


def graph(
    name: str,
    nodes: list[bytes],
    inputs: list[bytes],
    outputs: list[bytes],
    weights: list[bytes] = [],
    infos: list[bytes] = [],
) -> bytes:
    parts = [(1, n) for n in nodes] + [(2, name)] + [(5, w) for w in weights]
    return message(*parts, *[(11, i) for i in inputs], *[(12, o) for o in outputs], *[(13, i) for i in infos])


def model(
    nodes: list[bytes],
    inputs: list[bytes],
    outputs: list[bytes],
    weights: list[bytes] = [],
    infos: list[bytes] = [],
    functions: list[bytes] = [],
) -> bytes:
    opsets = [(8, message((1, domain), (2, version))) for domain, version in (("", 17), ("local", 1))]
    body = graph("graph", nodes, inputs, outputs, weights, infos)
    return message((1, 8), *opsets, (7, body), *[(25, f) for f in functions])
