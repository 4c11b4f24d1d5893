"""Programs as objects: parsing, printing and building them.

A module's functions, bindings, operands and types are ``tenon.Object``s with fields, under the names in the C
interface: ``dir(node)`` lists a node's fields.

>>> module = tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { relu(%x) }")
>>> list(module.functions)
['main']
>>> module.functions["main"].params[0].name
'x'
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _compiler, _values
from ._tenon import Object


class Module(Object):
    """A program: its functions, kernels and types by name."""

    def __str__(self) -> str:
        return _compiler.call("tenon.print", self)

    def __repr__(self) -> str:
        names = list(self.functions)
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        return f"<tenon.ir.Module of {', '.join(f'@{name}' for name in names[:8])}{more}; print(module) shows it>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the module as text, and large constants to PATH.weights beside it."""
        if os.fsdecode(path).endswith(".onnx"):
            raise ValueError(f"a module is written in Tenon's language, not as ONNX: name it .tn, not {os.fsdecode(path)}")
        _compiler.call("tenon.save", self, os.fsdecode(path))

    def to_json(self, indent: int = 0) -> str:
        """The module as JSON, for ``from_json``."""
        return _compiler.call("tenon.to_json", self, indent)

    def interpret(self, function: str, *arguments: Any, **options: Any) -> Any:
        """Runs a function by walking its graph, without compiling the module: the reference for what it computes."""
        result = _compiler.call("tenon.interpret", self, function, list(arguments), options)
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return from_json, (self.to_json(),)

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


_values._classes["graph.Module"] = Module

from ._builder import Builder  # noqa: E402: it makes modules


def parse(text: str, name: str = "<string>") -> Module:
    """The module of a program in Tenon's language. ``name`` is the file's name in errors."""
    return _compiler.call("tenon.parse", text, name, None)


def open(  # noqa: A001: as tenon.open of the compiler's library
    path: str | os.PathLike[str], *, dims: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[int | None]] | None = None
) -> Module:
    """Reads an ONNX model or a program in Tenon's language."""
    from ._compile import _module_of

    return _module_of(os.fspath(path), dims, shapes, {})


def from_json(text: str) -> Any:
    """The module, or other value, that ``to_json`` wrote."""
    return _compiler.call("tenon.from_json", text, None)


def type(text: str) -> Object:  # noqa: A001: the field's own word
    """A type from its text: ``tensor[n, 4; f32]``."""
    return _compiler.call("tenon.build_type", text)
