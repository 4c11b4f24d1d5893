"""Python classes of Tenon's values. The binding makes their instances."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from . import _tenon


class Shape(tuple[int, ...]):
    """The sizes of a tensor as a value of its own: what functions with parameters of type ``shape`` take and return.

    >>> Shape((2, 3))
    Shape(2, 3)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Shape({', '.join(map(str, self))})"


class DType(str):
    """A dtype by NumPy's name. NumPy's own dtypes and scalar types equal it.

    >>> tenon.Tensor(np.zeros(2, "float32")).dtype == np.float32
    True
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        numpy = sys.modules.get("numpy")
        if isinstance(other, str) or numpy is None or not isinstance(other, (type, numpy.dtype)):
            return str.__eq__(self, other)
        try:
            return bool(numpy.dtype(other).name == str(self))
        except TypeError:  # a type that isn't a dtype
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    @property
    def name(self) -> str:
        return str(self)


_dtypes: dict[str, DType] = {}


def _dtype_of(name: str) -> DType:
    return _dtypes.get(name) or _dtypes.setdefault(name, DType(name))


def _tensor_of(dtype: tuple[int, int, int], shape: Sequence[int], elements: bytes) -> _tenon.Tensor:
    """What pickles and copies of a tensor call."""
    return _tenon.tensor_of(dtype, shape, elements)


def _strings_of(array: Any) -> _tenon.Tensor:
    """The same for a tensor of strings."""
    return _tenon.Tensor(array)


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


# The kinds of numbers, each of which the later ones take, by NumPy's letter; V is that of ml_dtypes' floats.
_KINDS = {
    "b": ("booleans", 0),
    "i": ("integers", 1),
    "u": ("integers", 1),
    "f": ("floats", 2),
    "V": ("floats", 2),
    "c": ("complex numbers", 3),
}


def _array_of(numbers: Any, name: str) -> Any:
    """A number, or nested lists of numbers, as a NumPy array of the dtype of that name. Its kind must take them: floats
    aren't truncated to integers, and integers that the dtype lacks don't wrap."""
    import numpy as np

    if name == "string":
        return np.asarray(numbers, dtype=object)
    dtype = _numpy_dtype(name)
    found = np.asarray(numbers)
    if found.size == 0:
        return found.astype(dtype)
    if found.dtype.kind == "O" and all(isinstance(n, int) for n in found.flat):
        kind, rank = "integers", 1
    else:
        kind, rank = _KINDS.get(found.dtype.kind, (f"values of dtype {found.dtype}", 4))
    if rank > _KINDS[dtype.kind][1]:
        number = found.astype(object).flat[0]
        raise TypeError(
            f"{kind} such as {number!r} can't become a tensor of {name}: pass {_KINDS[dtype.kind][0]}, or convert them "
            f'with np.asarray(values).astype("{name}")'
        )
    if kind == "integers" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        beyond = [int(n) for n in (found.min(), found.max()) if not limits.min <= n <= limits.max]
        if beyond:
            raise OverflowError(f"{beyond[0]} doesn't fit {name}, which goes from {limits.min} to {limits.max}")
    return found.astype(dtype)


def _numpy_dtype(name: str) -> Any:
    import numpy as np

    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # NumPy knows its dtypes by name once it is imported

        return np.dtype(getattr(ml_dtypes, name))


def _text_of_type(self: _tenon.Object) -> str:
    from . import _compiler

    return _compiler.call("tenon.print", self)


class Cell(_tenon.Object):
    """A value of a data type where the program doesn't state which: the tag of its constructor, and its fields."""

    @property
    def tag(self) -> int:
        return _tenon.cell_of(self)[0]

    @property
    def fields(self) -> tuple[Any, ...]:
        return _tenon.cell_of(self)[1]


_classes: dict[str, type] = {"cell": Cell}


def _class_of(type_key: str) -> type:
    """The Python class of a type: "graph.TensorType" is TensorType, which derives from the class of its parent, Type."""
    from . import _compiler

    if type_key not in _classes:
        package, _, name = type_key.rpartition(".")
        parent = _compiler.call("tenon.type_parent", type_key) if package == "graph" else None  # the compiler's types
        base = _tenon.Object if parent is None else _class_of(parent)
        module = "tenon.ir" if package == "graph" else "tenon"
        made = type(name, (base,), {"__module__": module, "__doc__": f"An object of type ``{type_key}``."})
        if type_key == "graph.Type":  # and those derived from it
            made.__str__ = _text_of_type  # type: ignore[method-assign,assignment]
        _classes.setdefault(type_key, made)  # another thread may have made one
    return _classes[type_key]
