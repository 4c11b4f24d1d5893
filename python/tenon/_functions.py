"""Functions by name, shared by Python, programs and the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _compiler, _tenon
from ._errors import UsageError
from ._tenon import Function


def register_func(
    name: str, function: Callable[..., Any] | None = None, *, override: bool = False, for_files: bool = False
) -> Any:
    """Registers a Python function under a name, for programs to call; also as a decorator.

    Files that are loaded as untrusted may call it only if ``for_files`` says so: it must then check every argument, of
    which nothing but the number is certain.

    Arguments arrive as numbers, strings, ``tenon.Tensor``s and so on. A tensor is valid as long as it is kept, but
    its elements may only be read. An exception ends the call and comes out of it as itself.

    >>> @tenon.register_func("example.scale")
    ... def scale(x, factor):
    ...     return np.asarray(x) * factor
    """

    if callable(name):  # the decorator without a name
        raise TypeError('a function is registered under a name: @tenon.register_func("my.name")')

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        _tenon.register(name, f, replace=override, for_files=for_files)
        return f

    return register if function is None else register(function)


def get_func(name: str, *, allow_missing: bool = False) -> Function | None:
    """The function registered under a name, such as "tenon.parse" of the compiler's library."""
    try:
        return _tenon.find(name)
    except UsageError:
        if name.startswith("tenon."):
            try:
                return _compiler.function(name)
            except UsageError:
                pass
        if allow_missing:
            return None
        raise
