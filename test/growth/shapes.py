"""The shapes: generators of hostile programs, each of which repeats one construct n times.

The modules named `*_shapes` each register the shapes of one format. The text of a shape of size 2n is about twice as
long as that of size n. Where nesting is limited, a shape repeats its deepest nest instead (`nests`).
"""

from collections.abc import Callable
from dataclasses import dataclass

# Commands by name; $I is the input, $O an output file. Those in READERS read what `asm` makes of the input.
COMMANDS = {
    "check": ("opt", "$I", "--passes", ""),
    "compile": ("compile", "$I", "-o", "$O"),
    "plan": ("compile", "$I", "--stop-after", "plan_memory"),
    "schedule": ("compile", "$I", "--stop-after", "schedule"),
    "json": ("$I",),  # of json_both_ways
    "inspect": ("inspect", "$I"),
    "asm": ("asm", "$I", "-o", "$O"),
    "disasm": ("disasm", "$I", "-o", "$O"),
    "verify": ("verify", "$I"),
    "dump": ("dump", "--text", "$I"),
    "picture": ("dump", "--graph", "$I"),
    "picture_of_code": ("dump", "--graph", "$I"),
}
READERS = ("disasm", "verify", "dump", "picture_of_code")

Make = Callable[[int], str | bytes]  # from the size


def nests(n: int, deepest: int) -> list[int]:
    """The depths of nests with n constructs in all, as many of the deepest as fit."""
    rest = n % deepest
    return [deepest] * (n // deepest) + [rest] * (rest > 0)


@dataclass(frozen=True)
class Shape:
    name: str
    make: Make
    command: str
    suffix: str  # of the input file
    first: int  # the smallest size to measure
    most: int  # the largest size that tenon accepts

    @property
    def label(self) -> str:
        return f"{self.suffix}/{self.name}/{self.command}"


class Shapes(list[Shape]):
    """The shapes of one format, in order of registration."""

    def __init__(self, suffix: str) -> None:
        super().__init__()
        self.suffix = suffix

    def register(self, most: int = 1 << 20, **first: int) -> Callable[[Make], Make]:
        """Decorates a function: adds a shape of its name for each command, with the smallest size to measure."""

        def add(make: Make) -> Make:
            self.extend(Shape(make.__name__, make, command, self.suffix, n, most) for command, n in first.items())
            return make

        return add
