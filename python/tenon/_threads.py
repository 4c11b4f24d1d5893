"""Threads of the libraries that programs use."""

from __future__ import annotations

import os
import pathlib
import threading

_lock = threading.Lock()
_done = False


def bound_spinning() -> None:
    """Makes OpenMP's idle threads sleep soon, before the first program is loaded.

    oneDNN computes with OpenMP, whose idle threads spin for milliseconds by default. On a machine with other work, this
    multiplies the latency of models. OpenMP reads its settings from the environment when it is loaded, so it is loaded
    here, under a bound, unless the user's environment has one.
    """
    global _done
    with _lock:  # others wait until it is done, for they load programs then
        if not _done:
            _bound_spinning()
            _done = True


def _bound_spinning() -> None:
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        return
    import ctypes

    own = pathlib.Path(__file__).parent / "lib" / "libgomp.so.1"
    os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        ctypes.CDLL(str(own) if own.exists() else own.name)
    except OSError:
        pass  # no OpenMP, so no oneDNN either
    finally:
        del os.environ["GOMP_SPINCOUNT"]
