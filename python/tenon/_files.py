"""Writing files whole or not at all."""

from __future__ import annotations

import os

from . import _compiler
from ._errors import Error


def write_whole(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Writes a file, of which others see all or nothing; a device or pipe is written into. Raises an OSError."""
    path = os.fsdecode(path)
    try:
        _compiler.call("tenon.write_file", path, data)
    except Error as error:
        if error._errno is None:
            raise
        raise OSError(error._errno, os.strerror(error._errno), path) from None
