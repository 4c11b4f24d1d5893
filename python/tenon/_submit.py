"""Calls on other threads."""

from __future__ import annotations

import atexit
import collections
import concurrent.futures
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from . import _tenon


class CallFuture(concurrent.futures.Future[Any]):
    """The result of a submitted call. ``cancel()`` also stops a call that runs, whose ``result()`` is then an error."""

    def __init__(self, machines: _tenon.Machines) -> None:
        super().__init__()
        self._machines = machines
        self._gate = threading.Lock()
        self._thread: int | None = None  # the one that makes the call now
        self._is_stopping = False

    def cancel(self) -> bool:
        """Cancels the call, or stops it if it runs, with a ``tenon.ExecutionError``; False if it is done."""
        if super().cancel():
            return True
        if self.done():
            return False
        with self._gate:
            first, self._is_stopping = not self._is_stopping, True
        if first:
            threading.Thread(target=self._stop, name="tenon-cancel", daemon=True).start()
        return True

    def _stop(self) -> None:
        """Stops the call. It may not have reached its machine yet, and so repeats that."""
        pause = 0.001
        while not self.done():
            self._stop_now()
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _stop_now(self) -> None:
        with self._gate:  # afterwards, the thread may make another call
            if self._thread is not None:
                self._machines.cancel(self._thread)

    def _run(self, work: Callable[[], Any]) -> None:
        if not self.set_running_or_notify_cancel():
            return
        result, error = None, None
        with self._gate:
            self._thread = threading.get_ident()
        try:
            result = work()
        except BaseException as e:
            error = e
        with self._gate:
            self._thread = None
        if error is None:
            self.set_result(result)
        else:
            self.set_exception(error)
            del self, error  # they refer to this frame, which refers to them


class _Pool:
    """As many threads as the process has processors, started when they are needed. They are daemons: the interpreter's
    end doesn't wait for calls, but stops them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: collections.deque[tuple[CallFuture, Callable[[], Any]]] = collections.deque()
        self._running: set[CallFuture] = set()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._has_ended = False

    def submit(self, machines: _tenon.Machines, work: Callable[[], Any]) -> CallFuture:
        future = CallFuture(machines)
        with self._changed:
            if self._has_ended:
                raise RuntimeError("no call can be submitted after the interpreter's end")
            self._waiting.append((future, work))
            if self._idle < len(self._waiting) and len(self._threads) < _tenon.processors():
                thread = threading.Thread(target=self._work, name=f"tenon_{len(self._threads)}", daemon=True)
                thread.start()
                self._threads.append(thread)
            else:
                self._changed.notify()
        return future

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._waiting and not self._has_ended:
                    self._changed.wait()
                self._idle -= 1
                if not self._waiting:
                    return
                future, work = self._waiting.popleft()
                self._running.add(future)
            future._run(work)
            with self._changed:
                self._running.discard(future)
            del future, work  # their results are the user's to keep

    def end(self, patience: float = 10.0) -> None:
        """Cancels what waits, stops what runs, and joins the threads; one that waits in a function of Python's is left
        after that many seconds."""
        with self._changed:
            self._has_ended = True
            waiting = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        for future, _ in waiting:
            future.cancel()
            future.set_running_or_notify_cancel()
        end = time.monotonic() + patience
        while self._threads and time.monotonic() < end:
            with self._changed:
                running = list(self._running)
            for future in running:
                future._stop_now()
            self._threads[-1].join(0.02)
            if not self._threads[-1].is_alive():
                self._threads.pop()


_pool = _Pool()


def _begin_anew() -> None:
    """A child process has none of the threads."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
# Threads that aren't daemons are joined before this, so that a program that waits for its results gets them.
atexit.register(lambda: _pool.end())


def submit(
    machines: _tenon.Machines, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CallFuture:
    """Calls a function of the machines on another thread."""
    return _pool.submit(machines, lambda: function(*args, **kwargs))
