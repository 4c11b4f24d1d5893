"""Python classes of Tenon's values. The binding makes their instances."""

from __future__ import annotations

from . import _tenon


class Shape(tuple[int, ...]):
    """The sizes of a tensor as a value of its own: what functions with parameters of type ``shape`` take and return.

    >>> Shape((2, 3))
    Shape(2, 3)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Shape({', '.join(map(str, self))})"


class _Bytes:
    """A tensor's bytes as an array, which keeps the tensor alive."""

    def __init__(self, tensor: _tenon.Tensor, address: int, size: int, read_only: bool) -> None:
        self._tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, read_only),
        }


class _Type(_tenon.Object):
    """A type of the language. ``str(type)`` is its text."""

    def __str__(self) -> str:
        from . import _compiler

        return _compiler.call("tenon.print", self)


_classes: dict[str, type] = {}


def _class_of(type_key: str) -> type:
    """The Python class of a type: "graph.Call" is Call."""
    if type_key not in _classes:
        name = type_key.rpartition(".")[2]
        base = _Type if name.endswith(("Type", "TypeVar")) else _tenon.Object
        made = type(name, (base,), {"__module__": "tenon.ir", "__doc__": f"An object of type ``{type_key}``."})
        _classes.setdefault(type_key, made)  # another thread may have made one
    return _classes[type_key]
