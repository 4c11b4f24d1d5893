"""Recordings of where the time goes."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable
from typing import Any

from . import _compiler, _files


class Profile:
    """What the process did while ``tenon.profile()`` was open: compiling, loading, calls, kernels, threads, memory.

    >>> with tenon.profile() as p:
    ...     y = exe(np.ones(2, dtype="float32"))
    >>> [row["calls"] for row in p.layers()]
    [1]
    """

    def __init__(self, calls: bool = False) -> None:
        self._calls = calls
        self._recording: Callable[[str], Any] | None = None

    def __enter__(self) -> Profile:
        _compiler.call("tenon.record_start", self._calls)
        # A recording that nobody can end any more, of a generator that was dropped for example, ends with its profile.
        self._abandon = weakref.finalize(self, _compiler.call, "tenon.record_stop")
        self._abandon.atexit = False
        return self

    def __exit__(self, *exception: object) -> None:
        self._abandon.detach()
        self._recording = _compiler.call("tenon.record_stop")

    def _as(self, path: str) -> bytes:
        if self._recording is None:
            raise RuntimeError("the profile is still being recorded: leave its `with` block first")
        return bytes(self._recording(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file in the format that its name chooses.

        ``t.json``: Chrome's trace events with ONNX Runtime's keys. ``t.pftrace``: Perfetto's trace. ``t.layers.json``:
        times by layer. ``t.html``: a page to look at. Another name is a ``tenon.UsageError``.
        """
        name = os.fsdecode(path)
        _files.write_whole(name, self._as(name))

    def layers(self) -> list[dict[str, Any]]:
        """A dictionary for each call in the code, in the order of their first calls.

        Among its keys are ``name`` (the ONNX nodes), ``op``, ``calls``, ``timeMs``, ``averageMs``, ``percentage``,
        ``bytes``, ``flops`` (None if unknown) and ``roofline`` (the share of what the machine could do at best).
        """
        layers: list[dict[str, Any]] = json.loads(self._as("layers.json"))
        return layers[1:]

    def table(self) -> str:
        """The layers as text, the slowest first."""
        rows = [_HEADING, *self._rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADING))]
        lines = []
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row[:-2], widths)]
            lines.append("  ".join([*cells, row[-2].ljust(widths[-2]), row[-1]]).rstrip())
        return "\n".join(lines)

    def _rows(self) -> list[tuple[str, ...]]:
        layers = sorted(self.layers(), key=lambda layer: -layer["timeMs"])
        return [
            (
                f"{layer['timeMs']:.3f}",
                f"{layer['percentage']:.1f} %",
                str(layer["calls"]),
                f"{layer['averageMs'] * 1000:.1f}",
                "" if layer["flops"] is None else f"{layer['flops'] / max(layer['timeMs'], 1e-9) / 1e6:.1f}",
                "" if layer["roofline"] is None else f"{100 * layer['roofline']:.0f} %",
                layer.get("kernel") or layer.get("function", ""),
                ", ".join(layer["nodes"]),
            )
            for layer in layers
        ]

    def __repr__(self) -> str:
        return "<tenon.Profile, recording>" if self._recording is None else self.table()

    def _repr_html_(self) -> str:
        from ._html import table

        return table(_HEADING, self._rows())


_HEADING = ("ms", "share", "calls", "µs/call", "GFLOP/s", "roofline", "kernel", "ONNX nodes")


def profile(*, calls: bool = False) -> Profile:
    """Records what the process does in a ``with`` block; one recording at a time.

    ``calls`` also records calls between the functions of programs, which slows down those that make many.
    An executable that was compiled with ``keep_graph=True`` has the operations of its kernels, and its page shows the
    model's graph.

    >>> with tenon.profile() as p:
    ...     y = exe(np.ones(2, dtype="float32"))
    >>> p.save("t.json")
    """
    return Profile(calls)
