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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _compiler, _tenon, _values
from ._data import Types
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
        found = self.functions.get(function)
        types = self._types()
        given = list(arguments)
        if found is not None and len(given) == len(found.params):
            given = [types.value(value, str(p.type)) for value, p in zip(given, found.params)]
        result = _compiler.call("tenon.interpret", self, function, given, options)
        return result if found is None else types.object(result, str(found.result_type))

    @property
    def data_types(self) -> Types:
        """The module's data types and the prelude's, as an executable has them in ``types``.

        >>> module = tenon.ir.parse("type color { Red, Green } fn @same(%c: color) -> color { %c }")
        >>> module.interpret("same", module.data_types.Green)
        Green
        """
        return Types(self._types().families())

    def _types(self) -> _tenon.ModuleTypes:
        return _tenon.ModuleTypes([_definition(adt) for adt in self.adts.values()])

    def __reduce__(self) -> tuple[Any, ...]:
        return from_json, (self.to_json(),)

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


def _definition(adt: Object) -> str:
    """A data type's definition as the files of compiled programs have it."""
    params = f"[{', '.join(adt.type_params)}]" if adt.type_params else ""
    constructors = []
    for constructor in adt.constructors:
        fields = ", ".join(map(str, constructor.__getattr__("fields")))  # the node's, not the names of its fields
        constructors.append(f"{constructor.name}({fields})" if fields else constructor.name)
    return f"{adt.name}{params} {{ {', '.join(constructors)} }}"


_values._classes["graph.Module"] = Module

from ._builder import Builder  # noqa: E402: it makes modules


def parse(text: str, name: str = "<string>", *, import_path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = ()) -> Module:
    """The module of a program in Tenon's language.

    ``name`` is the file's name in errors; files that the program imports lie in its folder or below it, or in the folders
    of ``import_path`` or below them.
    """
    return _compiler.call("tenon.parse", text, name, _compiler.import_path_of(import_path))


def open(  # noqa: A001: as tenon.open of the compiler's library
    path: str | os.PathLike[str],
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    import_path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
) -> Module:
    """Reads an ONNX model or a program in Tenon's language, which may import files below its folder or ``import_path``."""
    from ._compile import _module_of

    return _module_of(os.fspath(path), dims, shapes, _compiler.import_path_of(import_path))


def from_json(text: str) -> Any:
    """The module, or other value, that ``to_json`` wrote."""
    return _compiler.call("tenon.from_json", text, None)


def type(text: str) -> Object:  # noqa: A001: the field's own word
    """A type from its text: ``tensor[n, 4; f32]``."""
    return _compiler.call("tenon.build_type", text)
