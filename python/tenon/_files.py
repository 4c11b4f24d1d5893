"""Writing files whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat


def write_whole(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Writes a file under a temporary name and renames it; a device or pipe is written into."""
    path = os.fsdecode(path)
    target = os.path.realpath(path)
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as file:
            file.write(data)
        return
    temporary = f"{target}.{secrets.token_hex(8)}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
