#!/usr/bin/env python3
"""Compares the time and memory that tenon needs for hostile inputs of growing sizes.

Usage: growth.py TENON [--json CLIENT] [--seconds S | --instructions] [--phases] [--list] [FILTER...]

Without --seconds, each shape is measured in its first size and in four times that. With it, the sizes are n, 2n and
4n, where the command needs at least S seconds of CPU time for n. FILTERs choose shapes whose label, as --list prints
it, contains one of them.

Fails if user CPU time or peak memory grow by more than 2.3 for each doubling. Without --seconds, 3 is allowed,
because small amounts vary and growing inputs leave the processor's caches: work in proportion to the input takes 2.2
to 2.6 times as long on a busy machine, and work in proportion to its square 4 times. --instructions counts
instructions instead of time, with valgrind, and allows 2.3: exact, but 50 times slower.

What the command needs for a tiny input doesn't count. A shape that fails is measured again, up to five times. Other
programs on the machine can only lengthen a measurement, so the least time for each size counts. The peak memory that
the kernel reports can be some megabytes too small as well as too large, because each processor counts its pages apart,
so memory passes if it passes in one of the measurements. Where valgrind is installed, a shape whose time still grows
too fast is judged by its instructions.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import assembly_shapes
import graph_shapes
import json_shapes
import onnx_shapes
import tensor_shapes
from shapes import COMMANDS, READERS, Shape

SHAPES = (
    graph_shapes.SHAPES + tensor_shapes.SHAPES + assembly_shapes.SHAPES + onnx_shapes.SHAPES + json_shapes.SHAPES
)

LIMIT = 2.3  # per doubling
SHORT_LIMIT = 3.0
TRIES = 5
# Smaller amounts are noise: growth is measured from at least these.
LEAST_SECONDS = 0.03
LEAST_KB = 4000

# With OpenMP's variable set, the command doesn't start itself anew.
ENVIRONMENT = {**os.environ, "GOMP_SPINCOUNT": "1000"}


class Failed(Exception):
    pass


def measure(arguments: list[str]) -> tuple[float, int]:
    """User CPU seconds and peak memory in KB of a command that succeeds or reports what it doesn't support."""
    with open(os.devnull, "w") as null, tempfile.TemporaryFile() as errors:
        to = [(os.POSIX_SPAWN_DUP2, null.fileno(), 1), (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)]
        pid = os.posix_spawn(arguments[0], arguments, ENVIRONMENT, file_actions=to)
        _, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, 3):
            errors.seek(0)
            raise Failed(f"{' '.join(arguments)}: exit code {code}: {errors.read(500).decode(errors='replace')}")
    return usage.ru_utime, usage.ru_maxrss


def count(arguments: list[str]) -> tuple[float, int]:
    """Billions of instructions, about a third of the seconds that they take; no memory."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*tool, *arguments], env=ENVIRONMENT, capture_output=True, text=True)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode not in (0, 3) or not counted:
        raise Failed(f"{' '.join(arguments)}: exit code {done.returncode}: {done.stderr[:500]}")
    return int(counted[1]) / 1e9, 0


class Measured:
    """A shape in several sizes, with the least time and the last memory seen for each."""

    def __init__(self, programs: dict[str, str], shape: Shape, folder: Path, counted: bool) -> None:
        self.programs, self.shape, self.folder, self.counted = programs, shape, folder, counted
        self.measure = count if counted else measure
        self.seen: dict[int, tuple[float, int]] = {}
        self.run(2)

    def command(self, name: str, source: Path, out: Path) -> list[str]:
        program = self.programs["json" if name == "json" else "tenon"]
        return [program, *({"$I": str(source), "$O": str(out)}.get(word, word) for word in COMMANDS[name])]

    def input(self, n: int) -> Path:
        text = self.folder / f"{n}.{self.shape.suffix}"
        made = text.with_suffix(".tnx") if self.shape.command in READERS else text
        if not made.exists():
            # In a process of its own, because the peak memory of this one counts as the command's.
            child = os.fork()
            if child == 0:
                content = self.shape.make(n)
                text.write_bytes(content if isinstance(content, bytes) else content.encode())
                os._exit(0)
            os.waitpid(child, 0)
            if made != text:
                measure(self.command("asm", text, made))
        return made

    def of(self, n: int) -> list[str]:
        return self.command(self.shape.command, self.input(n), self.folder / "out")

    def run(self, n: int) -> None:
        time, memory = self.measure(self.of(n))
        self.seen[n] = (min(time, self.seen[n][0]) if n in self.seen else time), memory

    def own(self, n: int) -> tuple[float, int]:
        """What size n needs beyond a tiny input."""
        return self.seen[n][0] - self.seen[2][0], self.seen[n][1] - self.seen[2][1]

    def sizes(self, seconds: float | None) -> tuple[int, ...]:
        n = self.shape.first
        if seconds is None:
            return n, 4 * n
        self.run(n)
        while self.own(n)[0] < seconds and 8 * n <= self.shape.most:
            n *= 2
            self.run(n)
        return n, 2 * n, 4 * n

    def compare(self, sizes: tuple[int, ...], limit: float) -> tuple[bool, bool]:
        """Whether time and memory each grow by at most `limit` from the smallest to the largest size. Prints a row."""
        memory_good = False
        for _ in range(TRIES):
            for n in sizes:
                self.run(n)
            (time, memory), (most_time, most_memory) = self.own(sizes[0]), self.own(sizes[-1])
            growth = most_time / max(time, LEAST_SECONDS), most_memory / max(memory, LEAST_KB)
            memory_good = memory_good or growth[1] <= limit
            good = growth[0] <= limit, memory_good
            if all(good):
                break
            self.run(2)
        seconds = " ".join(f"{self.seen[n][0]:6.2f}" for n in sizes)
        row = f"{sizes[0]:7} {seconds} {'G' if self.counted else 's'} {max(growth[0], 0) ** 0.5:5.2f}"
        if not self.counted:
            space = " ".join(f"{self.seen[n][1] / 1024:6.0f}" for n in sizes)
            row += f" {space} MB {max(growth[1], 0) ** 0.5:5.2f}"
        print(f"{self.shape.label:42} {row}{'' if all(good) else '  too fast'}", flush=True)
        return good

    def print_phases(self, sizes: tuple[int, ...]) -> None:
        """The rows of --time-passes that grow too fast."""
        tables = []
        for n in sizes:
            done = subprocess.run([*self.of(n), "--time-passes"], env=ENVIRONMENT, capture_output=True, text=True)
            rows = [line.split() for line in done.stdout.splitlines() if line.endswith(" ms")]
            tables.append({row[0]: float(row[1]) for row in rows if len(row) == 3})
        for name, last in tables[-1].items():
            if last > 20 and last > LIMIT**2 * tables[0].get(name, 0):
                print(f"    {name:30}" + " ".join(f"{table.get(name, 0):9.1f} ms" for table in tables))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("filter", nargs="*")
    parser.add_argument("--json", help="json_both_ways; without it, its shapes are left out")
    parser.add_argument("--seconds", type=float, help="least CPU time for the smallest size")
    parser.add_argument("--instructions", action="store_true", help="count instructions with valgrind")
    parser.add_argument("--phases", action="store_true", help="print the passes that grow too fast")
    parser.add_argument("--list", action="store_true", help="print the labels")
    options = parser.parse_intermixed_args()
    programs = {"tenon": str(Path(options.tenon).resolve())}
    if options.json:
        programs["json"] = str(Path(options.json).resolve())
    chosen = [
        s
        for s in SHAPES
        if (options.json or s.command != "json")
        and (not options.filter or any(f in s.label for f in options.filter))
    ]
    if options.list:
        print("\n".join(s.label for s in chosen))
        return 0
    limit = LIMIT if options.seconds or options.instructions else SHORT_LIMIT
    failures = 0
    for shape in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                measured = Measured(programs, shape, Path(folder), options.instructions)
                sizes = measured.sizes(options.seconds)
                time_good, memory_good = measured.compare(sizes, limit**2)
                if not time_good and not options.instructions and shutil.which("valgrind"):
                    counted = Measured(programs, shape, Path(folder), True)
                    time_good = all(counted.compare(sizes, LIMIT**2))
            except Failed as failed:
                print(f"{shape.label:42} {failed}", flush=True)
                failures += 1
                continue
            if time_good and memory_good:
                continue
            failures += 1
            print(f"{shape.label:42} FAILED", flush=True)
            if options.phases and COMMANDS[shape.command][0] == "compile":
                measured.print_phases(sizes)
    print(f"{len(chosen)} shapes, {failures} failed. Columns: n, the CPU time (s) or instructions (G) of each size, the mean")
    print(f"growth per doubling, and the same for memory. Growth may be {limit:.1f}.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
