"""The compiler's library, which is loaded when it is first needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any

from . import _memory, _tenon

_lock = threading.Lock()
_functions: dict[str, _tenon.Function] = {}
_loaded = False


def _load() -> None:
    global _loaded
    with _lock:
        if not _loaded:
            _tenon.load_library("tenon_compiler", [])
            _loaded = True


def function(name: str) -> _tenon.Function:
    """A function of the compiler's library (docs/compiler-library.md)."""
    if name not in _functions:
        _load()
        _functions[name] = _tenon.find(name)
    return _functions[name]


def call(name: str, *arguments: Any) -> Any:
    return function(name)(*arguments)


def limits_of(deadline: float | None, memory: float | None) -> dict[str, int]:
    """The limit options of a function: ``deadline`` in seconds, ``memory`` in bytes, by default the machine's."""
    limits = {"deadline_ns": nanoseconds(deadline), "memory": _memory.ceiling(memory)}
    return {name: limit for name, limit in limits.items() if limit != -1}


def import_path_of(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> dict[str, Any]:
    """The option import_path of a function: one folder, or several."""
    folders = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return {"import_path": [os.fsdecode(folder) for folder in folders]} if folders else {}


def nanoseconds(seconds: float | None) -> int:
    """-1 for None."""
    if seconds is None:
        return -1
    if isinstance(seconds, (bool, str)) or not hasattr(seconds, "__float__"):
        raise TypeError(f"a deadline is a number of seconds, not {seconds!r}")
    if not seconds >= 0:
        raise ValueError(f"a deadline is a number of seconds, at least 0, not {seconds!r}")
    return round(min(seconds, 1e9) * 1e9)
