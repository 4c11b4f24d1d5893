"""Passes over modules, the compiler's and one's own.

>>> @tenon.transform.module_pass(name="example.count")
... def count(module, context):
...     print("level", context["level"], "functions", list(module.functions))
...     return module
>>> exe = tenon.compile(module, passes=[count, *tenon.transform.passes()])
level 2 functions ['main']
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from . import _compiler, _tenon
from .ir import Module


@dataclasses.dataclass(frozen=True)
class PassInfo:
    """A pass of the compiler, with the lowest level that runs it."""

    name: str
    level: int
    summary: str


class ModulePass:
    """A pass in Python: callable, and an element of a list of passes."""

    def __init__(self, function: Callable[[Module, dict[str, Any]], Module], name: str) -> None:
        self.name = name
        self.function = function
        self.__doc__ = function.__doc__
        _tenon.register(name, function, True)

    def __call__(self, module: Module, **options: Any) -> Module:
        """Runs the pass alone and checks the module that it returns."""
        return run(module, [self], **options)

    def __repr__(self) -> str:
        return f"<tenon.transform.ModulePass {self.name}>"


def module_pass(function: Callable[[Module, dict[str, Any]], Module] | None = None, *, name: str | None = None) -> Any:
    """Makes a function ``f(module, context)`` that returns a module a pass, registered under ``name``.

    ``context`` is a dict with the options and facts about the CPU (docs/compiler-library.md, "Passes of your own").
    The checker always runs on what the pass returns.
    """

    def make(f: Callable[[Module, dict[str, Any]], Module]) -> ModulePass:
        return ModulePass(f, name if name is not None else f"{f.__module__}.{f.__qualname__}")

    return make if function is None else make(function)


def list_passes() -> list[PassInfo]:
    """The compiler's passes in the order in which they run."""
    return [PassInfo(**info) for info in _compiler.call("tenon.list_passes")]


def passes(level: int = 2) -> list[str]:
    """The names of the passes that a compilation of the level runs, to insert one's own."""
    return [p.name for p in list_passes() if p.level <= level]


def run(module: Module, passes: Iterable[str | ModulePass] | None = None, **options: Any) -> Module:
    """Runs passes in order, by default all of the level; the module is checked after each."""
    names = None if passes is None else _names(passes)
    return _compiler.call("tenon.run_passes", module, names, options)


def _names(passes: Iterable[str | ModulePass] | str | ModulePass) -> list[str]:
    """The names of passes; one pass is a list of itself."""
    listed: list[Any] = [passes] if isinstance(passes, str) or callable(passes) else list(passes)
    for p in listed:
        if isinstance(p, (str, ModulePass)):
            continue
        if callable(p):
            raise TypeError(
                f"{getattr(p, '__name__', repr(p))} isn't a pass: make it one with the decorator tenon.transform.module_pass"
            )
        raise TypeError(f"a pass is a name or a tenon.transform.ModulePass, not {p!r}")
    return [p if isinstance(p, str) else p.name for p in listed]
