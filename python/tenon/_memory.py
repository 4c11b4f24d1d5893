"""The memory that this process may have."""

from __future__ import annotations

import functools
import os
import pathlib

_GROUPS = pathlib.Path("/sys/fs/cgroup")


def limit_of_group(groups: pathlib.Path, own: str) -> int | None:
    """The least ``memory.max`` of a control group (version 2) and those around it, in bytes; None for no limit."""
    limits = []
    for folder in (groups / own.strip("/"), *(groups / own.strip("/")).parents):
        try:
            limits.append(int((folder / "memory.max").read_text()))
        except (OSError, ValueError):  # ValueError: "max"
            pass
        if folder == groups:
            break
    return min(limits, default=None)


@functools.cache
def of_machine() -> int:
    """The machine's memory in bytes, or what the process's container has of it; -1 if that is unknown."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return -1
    try:
        own = pathlib.Path("/proc/self/cgroup").read_text().rpartition("0::")[2].splitlines()[0]
    except (OSError, IndexError):
        own = "/"
    limit = limit_of_group(_GROUPS, own)
    return memory if limit is None else min(memory, limit)


def ceiling(memory: float | None) -> int:
    """A limit in bytes as the runtime takes it: the machine's memory for None, -1 for infinity."""
    if memory is None:
        return of_machine()
    if isinstance(memory, (bool, str)) or not hasattr(memory, "__float__"):
        raise TypeError(f"memory is a number of bytes, not {memory!r}")
    if not memory > 0:
        raise ValueError(f"memory is {memory}; expected a positive number of bytes, math.inf, or None for the machine's")
    return -1 if memory >= 1 << 63 else int(memory)
