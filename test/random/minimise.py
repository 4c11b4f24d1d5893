#!/usr/bin/env python3
"""Minimises a failing program: deletes bindings and functions and shrinks numbers while it still fails.

Usage: minimise.py FILE.tn -- COMMAND...

COMMAND is run with the path of each candidate in place of FILE.tn. A candidate fails like the original
if the command exits with the same code, not 0. For a finding of `graph_programs` with seed 17:

  minimise.py 17.tn -- build/dev/test/random/graph_programs 17.tn 17

Prints the smallest program that it finds as a golden file, with a RUN line that compares the compiled
program with the interpreted one. If that line does not reproduce the finding, write another.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

BINDING = re.compile(r"^\s*(%[\w.]+)(?:: [^=]*)? = (.*)$")
VARIABLE = re.compile(r"%[\w.]+")
TIMEOUT_S = 60


class Failure:
    """Whether a text still fails like the original."""

    def __init__(self, path, command):
        self.path, self.command = path, command
        self.folder = tempfile.TemporaryDirectory()
        self.tried = {}
        self.code = self.run(path.read_text())
        if self.code == 0:
            sys.exit(f"{path} does not fail: {' '.join(command)}")

    def run(self, text):
        candidate = Path(self.folder.name) / self.path.name
        candidate.write_text(text)
        command = [str(candidate) if word == str(self.path) else word for word in self.command]
        try:
            return subprocess.run(command, capture_output=True, timeout=TIMEOUT_S).returncode
        except subprocess.TimeoutExpired:
            return "timeout"

    def stays(self, lines):
        text = "".join(lines)
        if text not in self.tried:
            self.tried[text] = self.run(text) == self.code
        return self.tried[text]


def without_lines(lines, failure):
    """Deletes ranges of lines, long ones first: bindings, arms, unused functions."""
    size = max(1, len(lines) // 2)
    while size >= 1:
        at = 0
        while at < len(lines):
            rest = lines[:at] + lines[at + size :]
            if rest and failure.stays(rest):
                lines = rest
            else:
                at += size
        size //= 2
    return lines


def without_bindings(lines, failure):
    """Deletes bindings, last first, and replaces their uses by one of their operands."""
    for at in reversed(range(len(lines))):
        match = BINDING.match(lines[at])
        if not match:
            continue
        name = re.escape(match[1]) + r"(?![\w.])"
        for operand in dict.fromkeys(VARIABLE.findall(match[2])):
            rest = [re.sub(name, operand, line) for line in lines[:at] + lines[at + 1 :]]
            if failure.stays(rest):
                return without_bindings(rest, failure)
    return lines


def with_smaller_numbers(lines, failure):
    """Replaces each number by 0, 1, 2, half of its value or one less."""
    number = re.compile(r"(?<![\w.%@])\d+(?![\w.])")
    for at in range(len(lines)):
        place = 0
        while match := number.search(lines[at], place):
            place = match.end()
            value = int(match[0])
            for smaller in dict.fromkeys((0, 1, 2, value // 2, value - 1)):
                if not 0 <= smaller < value:
                    continue
                line = f"{lines[at][: match.start()]}{smaller}{lines[at][match.end() :]}"
                if failure.stays(lines[:at] + [line] + lines[at + 1 :]):
                    lines = lines[:at] + [line] + lines[at + 1 :]
                    place = match.start() + len(str(smaller))
                    break
    return lines


def minimised(lines, failure):
    steps = (without_lines, without_bindings, with_smaller_numbers)
    while True:
        before = lines
        for step in steps:
            lines = step(lines, failure)
        if lines == before:
            return lines


def golden(lines):
    signature = re.search(r"fn @main\((.*?)\) ->", "".join(lines), re.DOTALL)
    names = re.findall(r"%([\w.]+):", signature[1]) if signature else []
    inputs = "".join(f" --input {name}=random" for name in names)
    return f"// RUN: tenon run -q %s{inputs} --seed 1 --compare interpret >/dev/null\n" + "".join(lines)


def main():
    if "--" not in sys.argv or sys.argv.index("--") != 2 or len(sys.argv) < 4:
        sys.exit(__doc__)
    path = Path(sys.argv[1])
    failure = Failure(path, sys.argv[3:])
    sys.stdout.write(golden(minimised(path.read_text().splitlines(keepends=True), failure)))


if __name__ == "__main__":
    main()
