"""Writing files whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile


def write_whole(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Writes a file under a temporary name and renames it; a device or pipe is written into."""
    path = os.fspath(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        mode = stat.S_IFREG | (0o666 & ~umask)
    if not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            file.write(data)
        return
    target = os.path.realpath(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=os.path.dirname(target))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
