"""Reading NumPy's archives within limits."""

from __future__ import annotations

import os
import time
import zipfile
from typing import IO, Any

from . import _errors

_PART = 1 << 20


def read(path: str | os.PathLike[str], limits: dict[str, int]) -> dict[str, Any]:
    """The arrays of an .npz file by name. ``limits`` are those of ``_compiler.limits_of``, which hold from now on."""
    budget = _Budget(os.fsdecode(path), limits)
    with zipfile.ZipFile(path) as archive:
        return {
            member.filename.removesuffix(".npy"): _read_array(archive, member, budget)
            for member in archive.infolist()
            if member.filename.endswith(".npy")
        }


class _Budget:
    def __init__(self, name: str, limits: dict[str, int]) -> None:
        self.name = name
        self._memory = limits.get("memory", -1)
        self._left = self._memory
        self._deadline = limits.get("deadline_ns", -1)
        self._start = time.monotonic_ns()

    def take(self, size: int) -> None:
        self._left -= size
        if self._memory >= 0 > self._left:
            raise self._stopped("exceeds its memory limit", "memory", f"at most {self._memory} bytes")

    def check_time(self) -> None:
        if 0 <= self._deadline < time.monotonic_ns() - self._start:
            raise self._stopped("ran past its deadline", "deadline", f"at most {self._deadline / 1e6:g} ms")

    def _stopped(self, what: str, limit: str, expected: str) -> _errors.Error:
        return _errors.stopped(
            f"reading {self.name} {what}", limit, expected=expected, help=f"raise the {limit} limit for loading"
        )


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: _Budget) -> Any:
    import numpy as np

    with archive.open(member) as file:
        shape, fortran_order, dtype = _read_header(file)
        if dtype.hasobject:
            raise _damaged(budget, member, "Python objects")
        size = dtype.itemsize
        for dim in shape:
            size *= dim
        budget.take(size)
        array = np.empty(shape, dtype, "F" if fortran_order else "C")
        data = array.reshape(-1, order="A").view("u1") if size else array
        for begin in range(0, size, _PART):
            budget.check_time()
            part = data[begin : begin + _PART]
            if _read_into(file, memoryview(part.data)) != len(part):
                raise _damaged(budget, member, "fewer elements than its header says")
    return array


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, Any]:
    from numpy.lib import format

    version = format.read_magic(file)
    if version == (1, 0):
        return format.read_array_header_1_0(file)
    if version == (2, 0):
        return format.read_array_header_2_0(file)
    raise ValueError(f"an array in version {version} of NumPy's format, which is for dtypes with names of fields")


def _read_into(file: IO[bytes], to: memoryview) -> int:
    """As many bytes as there are."""
    done = 0
    while done < len(to) and (n := file.readinto(to[done:])):  # type: ignore[attr-defined]
        done += n
    return done


def _damaged(budget: _Budget, member: zipfile.ZipInfo, found: str) -> _errors.Error:
    return _errors.usage(f"{budget.name} has an array that can't be read: {member.filename}", found=found)
