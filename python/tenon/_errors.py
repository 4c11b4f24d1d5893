"""Tenon's exceptions. The binding makes them from errors of the C interface."""

from __future__ import annotations

from collections.abc import Mapping

from . import _tenon


class Error(Exception):
    """An error of Tenon.

    ``str(error)`` is the whole text, as the command line prints it. Its parts are attributes:

    - ``message``: what happened, without the place
    - ``found``, ``expected``, ``where``, ``rule``, ``help``: the lines below it; None where there is none
    - ``span``: the place in the program's source or the names of ONNX nodes, or None
    - ``frames``: the machine's frames, innermost first
    - ``stopped_by``: what stopped the call or the compilation: ``"fuel"``, ``"deadline"``, ``"memory"``, ``"depth"``,
      ``"stack"`` or ``"cancel"``; None if it failed by itself
    - ``rows``: all lines below the message, each as (label, text, note)
    - ``also``: further errors of the same work, such as a program's other mistakes
    - ``spans``: the span of this error and of those in ``also``
    """

    _kind: int
    _errno: int | None = None  # the system's number, where it refused something
    message: str = ""
    found: str | None = None
    expected: str | None = None
    where: str | None = None
    rule: str | None = None
    help: str | None = None
    span: str | None = None
    frames: tuple[str, ...] = ()
    stopped_by: str | None = None
    rows: tuple[tuple[str, str, str], ...] = ()
    also: tuple[Error, ...] = ()

    @property
    def spans(self) -> tuple[str, ...]:
        return tuple(e.span for e in (self, *self.also) if e.span is not None)


class UsageError(Error, ValueError):
    """Arguments, a model or a program that don't fit; nothing was changed."""

    _kind = _tenon.ERROR_USAGE


class UnsupportedError(Error, NotImplementedError):
    """Something that Tenon doesn't do, such as an operator."""

    _kind = _tenon.ERROR_UNSUPPORTED


class DamagedError(Error, ValueError):
    """A file that is damaged or isn't what its name says."""

    _kind = _tenon.ERROR_DAMAGED


class ExecutionError(Error, RuntimeError):
    """A call that failed or that a limit stopped. The machine stays usable."""

    _kind = _tenon.ERROR_RUNTIME


class InternalError(Error, RuntimeError):
    """A bug in Tenon."""

    _kind = _tenon.ERROR_INTERNAL


_CLASSES = {c._kind: c for c in (UsageError, UnsupportedError, DamagedError, ExecutionError, InternalError)}

# Of the C interface: (label, text, note).
_Parts = tuple[tuple[str, str, str], ...]
_LABELS = ("found", "expected", "where", "rule", "help", "span")


def usage(message: str, **rows: str | None) -> Error:
    """A UsageError of this package's own code, with rows such as found, expected and help, where they aren't None."""
    return _own(UsageError._kind, message, rows)


def stopped(message: str, limit: str, **rows: str | None) -> Error:
    """An ExecutionError of this package's own code, which a limit stopped."""
    return _own(ExecutionError._kind, message, {".stopped_by": limit, **rows})


def _own(kind: int, message: str, rows: Mapping[str, str | None]) -> Error:
    parts = tuple((label, text, "") for label, text in rows.items() if text is not None)
    return _make(kind, message, _tenon.error_text(kind, message, parts), parts)


def _make(kind: int, message: str, text: str, parts: _Parts) -> Error:
    """An error with the text that the command line prints."""
    text = text.removeprefix("error: ").removeprefix("internal error: ")
    # Each further error begins with its message.
    starts = [i for i, (label, _, _) in enumerate(parts) if label == "error"]
    error = _with_parts(kind, message, text, parts[: starts[0] if starts else None])
    error.also = tuple(
        _with_parts(kind, parts[start][1], parts[start][1], parts[start + 1 : end])
        for start, end in zip(starts, [*starts[1:], None])
    )
    return error


def _with_parts(kind: int, message: str, text: str, parts: _Parts) -> Error:
    error = _CLASSES[kind](text)
    error.message = message
    rows = []
    frames = []
    for label, line, note in parts:
        if label == "at":
            frames.append(line)
            continue
        if label == ".stopped_by":
            error.stopped_by = line
        if label == ".errno":
            error._errno = int(line)
        if label in _LABELS and getattr(error, label) is None:
            setattr(error, label, line)
        if label not in ("help", "span") and not label.startswith("."):
            rows.append((label, line, note))
    error.frames = tuple(frames)
    error.rows = tuple(rows)
    return error


def _add_frames(exception: BaseException, parts: _Parts) -> None:
    frames = [line for label, line, _ in parts if label == "at"]
    if frames:
        exception.add_note("in a function of Tenon:\n" + "\n".join(f"  at {frame}" for frame in frames))
