"""Writing files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Gives an OSError the caller's path, also one about writing, which has none."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None


def write_whole(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Writes a file under a temporary name and renames it; a device or pipe is written into."""
    path = os.fsdecode(path)
    target = os.path.realpath(path)
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):
        with _naming(path), open(target, "wb") as file:
            file.write(data)
        return
    temporary = f"{target}.{secrets.token_hex(8)}.tmp"
    with _naming(path):
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with _naming(path), os.fdopen(handle, "wb") as file:
            file.write(data)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
