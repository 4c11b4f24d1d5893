"""The memory that this process may have.

The command line reads the same files in tools/tenon/available_memory.cc, for what is left of that memory now. The
binding sees only the runtime's C interface, which does not offer either.
"""

from __future__ import annotations

import functools
import os
import pathlib
from collections.abc import Iterator

# Of each version of control groups: the folder, the controller's name in /proc/self/cgroup, and the limit's file.
_VERSIONS = (("", "", "memory.max"), ("memory", "memory", "memory.limit_in_bytes"))


def _group_of(memberships: str, controller: str) -> str:
    """The path in the line of /proc/self/cgroup, such as ``4:cpu,memory:/a``, that names a controller."""
    for line in memberships.splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if controller in names.split(","):
            return path
    return "/"


def _limits_around(root: pathlib.Path, group: str, file: str) -> Iterator[int]:
    """The limits of a group and those around it."""
    folder = root / group.strip("/")
    for around in (folder, *folder.parents):
        try:
            yield int((around / file).read_text())
        except (OSError, ValueError):  # ValueError: "max"
            pass
        if around == root:
            return


def limit_of_groups(groups: pathlib.Path, memberships: str) -> int | None:
    """The least limit, in bytes, of the control groups in ``memberships`` and those around them; None for no limit.

    ``groups`` is the folder of all groups, and ``memberships`` the text of /proc/self/cgroup.
    """
    limits: list[int] = []
    for folder, controller, file in _VERSIONS:
        limits += _limits_around(groups / folder, _group_of(memberships, controller), file)
    return min(limits, default=None)


@functools.cache
def of_machine() -> int:
    """The machine's memory in bytes, or what the process's container has of it; -1 if that is unknown."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return -1
    try:
        memberships = pathlib.Path("/proc/self/cgroup").read_text()
    except OSError:
        memberships = ""
    limit = limit_of_groups(pathlib.Path("/sys/fs/cgroup"), memberships)
    # Version 1 says "no limit" by a number of pages that no machine has.
    return memory if limit is None else min(memory, limit)


def ceiling(memory: float | None) -> int:
    """A limit in bytes as the runtime takes it: the machine's memory for None, -1 for infinity."""
    if memory is None:
        return of_machine()
    if isinstance(memory, (bool, str)) or not hasattr(memory, "__float__"):
        raise TypeError(f"memory is a number of bytes, not {memory!r}")
    if not memory >= 1:
        raise ValueError(f"memory is {memory}; expected at least 1 byte, math.inf, or None for the machine's")
    return -1 if memory >= 1 << 63 else int(memory)
