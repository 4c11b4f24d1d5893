"""What an ONNX file says about its model, read from protobuf's encoding: the package doesn't need onnx, and weights are
skipped."""

from __future__ import annotations

import dataclasses
import mmap
import os
from collections.abc import Iterator
from typing import Any


@dataclasses.dataclass(frozen=True)
class ModelMetadata:
    """What ``InferenceSession.get_modelmeta`` returns. A compiled file has only its producer, and the name that stands
    for the program in errors."""

    graph_name: str
    producer_name: str
    custom_metadata_map: dict[str, str] = dataclasses.field(default_factory=dict)
    description: str = ""
    domain: str = ""
    graph_description: str = ""
    version: int = 0


# The fields' numbers in onnx.proto.
_PRODUCER, _DOMAIN, _VERSION, _DOC, _GRAPH, _PROPS = 2, 4, 5, 6, 7, 14
_GRAPH_NAME, _INITIALIZER, _GRAPH_DOC, _INPUT, _SPARSE = 2, 5, 10, 11, 15
_KEY, _VALUE = 1, 2  # of a StringStringEntryProto
_TENSOR_NAME, _INPUT_NAME, _SPARSE_VALUES = 8, 1, 1


class _NoModel(Exception):
    pass


def read(model: Any) -> tuple[ModelMetadata, frozenset[str]] | None:
    """The metadata of an ``onnx.ModelProto``, a path or bytes, and the inputs that have an initializer, which ONNX
    Runtime lets a caller override. None for what is no ONNX model."""
    try:
        if isinstance(model, (bytes, bytearray, memoryview)):
            return _read(memoryview(model))
        if hasattr(model, "SerializeToString"):
            return _read(memoryview(model.SerializeToString()))
        if isinstance(model, (str, os.PathLike)):
            with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                with memoryview(content) as view:
                    return _read(view)
    except (_NoModel, OSError, ValueError):
        pass
    return None


def _read(model: memoryview) -> tuple[ModelMetadata, frozenset[str]]:
    texts = dict.fromkeys((_PRODUCER, _DOMAIN, _DOC), "")
    graph_texts = dict.fromkeys((_GRAPH_NAME, _GRAPH_DOC), "")
    props: dict[str, str] = {}
    version = 0
    inputs: set[str] = set()
    initializers: set[str] = set()
    for number, start, end, value in _fields(model, 0, len(model)):
        if number in texts:
            texts[number] = _text(model, start, end)
        elif number == _VERSION:
            version = value - (1 << 64) if value >> 63 else value
        elif number == _PROPS:
            entry = _texts(model, start, end)
            props[entry.get(_KEY, "")] = entry.get(_VALUE, "")
        elif number == _GRAPH:
            for part, first, last, _ in _fields(model, start, end):
                if part in graph_texts:
                    graph_texts[part] = _text(model, first, last)
                elif part == _INPUT:
                    inputs.add(_texts(model, first, last).get(_INPUT_NAME, ""))
                elif part == _INITIALIZER:
                    initializers.add(_name_of_tensor(model, first, last))
                elif part == _SPARSE:
                    for inner, a, b, _ in _fields(model, first, last):
                        if inner == _SPARSE_VALUES:
                            initializers.add(_name_of_tensor(model, a, b))
    metadata = ModelMetadata(
        graph_texts[_GRAPH_NAME],
        texts[_PRODUCER],
        props,
        texts[_DOC],
        texts[_DOMAIN],
        graph_texts[_GRAPH_DOC],
        version,
    )
    return metadata, frozenset(inputs & initializers)


def _fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The number of each field, where its bytes begin and end, and its value if that is an integer."""
    while start < end:
        key, start = _varint(data, start, end)
        value, length = 0, {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            value, after = _varint(data, start, end)
            length = after - start
        elif key & 7 == 2:
            length, start = _varint(data, start, end)
        if length is None or length > end - start:
            raise _NoModel
        yield key >> 3, start, start + length, value
        start += length


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at == end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, at
    raise _NoModel


def _text(data: memoryview, start: int, end: int) -> str:
    return bytes(data[start:end]).decode("utf-8", "replace")


def _texts(data: memoryview, start: int, end: int) -> dict[int, str]:
    """The texts of a small message whose first two fields are texts."""
    return {number: _text(data, a, b) for number, a, b, _ in _fields(data, start, end) if number <= _VALUE}


def _name_of_tensor(data: memoryview, start: int, end: int) -> str:
    return next((_text(data, a, b) for number, a, b, _ in _fields(data, start, end) if number == _TENSOR_NAME), "")
