"""Times calls."""

from __future__ import annotations

import dataclasses
import statistics
import time
from typing import Any


@dataclasses.dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per call, one value for each repetition."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        return statistics.pstdev(self.results)


@dataclasses.dataclass(frozen=True)
class TimeEvaluator:
    """Times a function: ``repeat`` times, each the mean of ``number`` calls after one call that isn't timed.

    ``number`` grows until a repetition takes ``min_repeat_ms``. After every ``repeats_to_cooldown`` repetitions, it
    pauses for ``cooldown_interval_ms``.
    """

    function: Any
    number: int
    repeat: int
    min_repeat_ms: float
    cooldown_interval_ms: float
    repeats_to_cooldown: int

    def __call__(self, *args: Any, **kwargs: Any) -> BenchmarkResult:
        if self.number < 1 or self.repeat < 1:
            raise ValueError("number and repeat must be at least 1")
        self.function(*args, **kwargs)
        number, results = self.number, []
        for done in range(1, self.repeat + 1):
            while True:
                start = time.perf_counter()
                for _ in range(number):
                    self.function(*args, **kwargs)
                elapsed = time.perf_counter() - start
                if elapsed * 1e3 >= self.min_repeat_ms:
                    break
                wanted = self.min_repeat_ms / max(elapsed * 1e3, 1e-6)
                number = max(number + 1, min(round(number * wanted * 1.2), number * 100))
            results.append(elapsed / number)
            if self.cooldown_interval_ms and done % self.repeats_to_cooldown == 0 and done < self.repeat:
                time.sleep(self.cooldown_interval_ms / 1e3)
        return BenchmarkResult(tuple(results))
