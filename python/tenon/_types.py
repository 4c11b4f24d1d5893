"""Types of the host as values of programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

from . import _tenon

_Class = TypeVar("_Class", bound=type)


def register_type(key: str, *, fields: Sequence[str] | None = None) -> Callable[[_Class], _Class]:
    """Registers a class as a type of values, under a key; as a decorator.

    Its instances can be passed to programs, which hold them and pass them on (as ``opaque["KEY"]``), and to functions,
    and come back as the same instances. ``fields`` are the attributes that other languages see, with the values they had
    when the instance was passed: by default a dataclass's fields, or the annotated attributes. An object of the type that
    another language made becomes an instance by calling the class with its fields as keyword arguments.

    >>> @tenon.register_type("example.Point")
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> same = tenon.Function(lambda point: point)
    >>> point = Point(1.0, 2.0)
    >>> same(point) is point
    True
    """

    def register(cls: _Class) -> _Class:
        if fields is not None:
            names = list(fields)
        elif dataclasses.is_dataclass(cls):
            names = [field.name for field in dataclasses.fields(cls)]
        else:
            names = list(getattr(cls, "__annotations__", {}))
        _tenon.register_type(key, names, cls)
        return cls

    return register
