"""The order in which the steps of a reduction are tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def spread(items: Sequence[Any]) -> list[Any]:
    """The items in the order in which bisection visits them: the middle, then those of the halves."""
    order, ranges = [], [(0, len(items))]
    for low, high in ranges:
        if low < high:
            middle = (low + high) // 2
            order.append(items[middle])
            ranges += [(low, middle), (middle + 1, high)]
    return order
