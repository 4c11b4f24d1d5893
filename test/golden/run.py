#!/usr/bin/env python3
"""Runs golden files: command, input and expected text in one file (format: README.md beside this).

Usage: run.py [--tenon PROGRAM] [--bless] [--roundtrip] [FILE or FOLDER...]

  --tenon PROGRAM  the `tenon` to test; by default the newest one below build/
  --bless          write the output of the commands as the expected text
  --roundtrip      instead check that the printed text of each valid .tn case prints to itself
  --poison         run programs with `--poison`, in files that run any; the output must be the same
  --bytecode       the same with `--mode bytecode`

Without files: every golden file below this folder. Prints a diff for each file that differs, and then
exits with 1.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 120
RUNS_A_MACHINE = re.compile(r"(?<!\()\btenon (run|check)\b(?![^|&;]*--(?:mode interpret|help))")
NEEDS_PTY = re.compile(r"^\S+ NEEDS: pty$", re.MULTILINE)
RUN = re.compile(r"(\S+)\s+RUN(?:\s+(\d+))?:\s*(.*)")
NOTE = re.compile(r"\s*(?P<comment>//|;|#)\s*error(?:@(?P<offset>[+-]\d+))?:\s*(?P<text>.*?)\s*$")


class Malformed(Exception):
    """A golden file that does not follow the format."""


@dataclass
class Command:
    exit_code: int | None  # None: 0, or any failure when errors are expected
    text: str


@dataclass
class Case:
    """One program of a file: the text between two `-----` lines."""

    first_line: int
    lines: list[str]  # without EXPECT blocks
    expected: list[list[str]] = field(default_factory=list)
    notes: dict[int, tuple[int, str]] = field(default_factory=dict)  # at line: (of line, text)


@dataclass
class Golden:
    path: Path
    comment: str
    commands: list[Command]
    cases: list[Case]


def parse(path: Path) -> Golden:
    lines = path.read_text().split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    path = path.resolve()
    comment, commands = "", []
    for line in lines:
        match = RUN.fullmatch(line)
        if match and (not comment or match.group(1) == comment):
            comment = match.group(1)
            commands.append(Command(int(match.group(2)) if match.group(2) else None, match.group(3)))
    if not commands:
        raise Malformed(f"{path}: no line such as `// RUN: tenon opt %s`")
    cases = [Case(1, [])]
    block = None
    for number, line in enumerate(lines, 1):
        case = cases[-1]
        if line.strip() == f"{comment} -----":
            cases.append(Case(number + 1, []))
            block = None
        elif line.strip() == f"{comment} EXPECT:":
            block = []
            case.expected.append(block)
        elif block is not None and line.startswith(comment):
            block.append(line[len(comment) :].removeprefix(" "))
        elif block is not None and line.strip():
            raise Malformed(f"{path}:{number}: the program continues after its EXPECT block")
        elif block is None:
            note = NOTE.search(line)
            if note and note.group("comment") == comment:
                case.notes[number] = (number + int(note.group("offset") or 0), note.group("text"))
            case.lines.append(line)
    for case in cases:
        while case.lines and not case.lines[-1].strip():
            case.lines.pop()
    return Golden(path, comment, commands, cases)


class Runner:
    def __init__(self, tenon: Path):
        self.tenon = tenon.resolve()

    def run(self, command: str, name: str, text: str, source: Path) -> tuple[int, str]:
        """Exit code and output of a command on a file of that name and text."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "bin").mkdir()
            Path(folder, "bin", "tenon").symlink_to(self.tenon)
            work = Path(folder, "work")
            work.mkdir()
            (work / name).write_text(text)
            command = command.replace("%s", name).replace("%d", str(source.parent))
            command = command.replace("%t", "out")
            env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
            try:
                done = subprocess.run(
                    ["bash", "-o", "pipefail", "-c", command],
                    cwd=work,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=TIMEOUT_S,
                )
            except subprocess.TimeoutExpired:
                return 124, f"stopped: `{command}` ran longer than {TIMEOUT_S} s"
            output = done.stdout + (done.stderr if done.returncode else "")
            output = output.replace(str(source.parent), "%d").replace(str(work), "%w")
            return done.returncode if done.returncode >= 0 else 128 - done.returncode, output


def padded(case: Case) -> str:
    """The case alone, at its line numbers; without error comments, since an error may quote its line."""
    lines = [
        NOTE.sub("", line) if number in case.notes else line
        for number, line in enumerate(case.lines, case.first_line)
    ]
    return "\n" * (case.first_line - 1) + "\n".join(lines) + "\n"


def varied(golden: Golden, flag: str) -> Golden | None:
    """The file with a flag in every command that runs a machine; None if none does or some already have it."""
    name = "--mode (bytecode|compiled)" if flag.startswith("--mode") else flag
    if any(re.search(name, command.text) for command in golden.commands):
        return None
    commands = [Command(c.exit_code, RUNS_A_MACHINE.sub(rf"tenon \1 {flag}", c.text)) for c in golden.commands]
    return replace(golden, commands=commands) if commands != golden.commands else None


def errors_of(output: str, name: str) -> list[tuple[int, str, str]]:
    """(line, message, whole text) of each error in the output; line 0 if it names none."""
    found = []
    for paragraph in re.split(r"^(?=error: )", output, flags=re.M):
        if not paragraph.startswith("error: "):
            continue
        flat = " ".join(paragraph.split())
        place = re.search(re.escape(name) + r":(\d+)", flat)
        message = paragraph.splitlines()[0].removeprefix("error: ")
        message = re.sub(re.escape(name) + r":\d+(:\d+)?:\s*", "", message)
        found.append((int(place.group(1)) if place else 0, " ".join(message.split()), flat))
    return found


def check_notes(golden: Golden, case: Case, output: str) -> list[str]:
    """The missing and unexpected errors, compared with the error comments."""
    problems = []
    left = errors_of(output, golden.path.name)
    for at, (line, text) in sorted(case.notes.items()):
        wanted = " ".join(text.split())
        for error in left:
            if error[0] == line and wanted in error[2]:
                left.remove(error)
                break
        else:
            problems.append(f"{golden.path}:{at}: expected at line {line}: error: {text}")
    for line, message, _ in left:
        problems.append(f"{golden.path}:{line}: unexpected error: {message}")
    return problems


def outputs_of(runner: Runner, golden: Golden, case: Case) -> list[tuple[int, str]]:
    return [
        runner.run(command.text, golden.path.name, padded(case), golden.path)
        for command in golden.commands
    ]


def check_exit(golden: Golden, case: Case, command: Command, code: int, output: str) -> list[str]:
    if command.exit_code is None:
        right, wanted = (code > 0, "an error") if case.notes else (code == 0, "0")
    else:
        right, wanted = code == command.exit_code, str(command.exit_code)
    if right and code not in (70, 124, 134, 139):
        return []
    where = f"{golden.path}:{case.first_line}"
    return [f"{where}: `{command.text}` exited with {code}, expected {wanted}\n{output}"]


def text_lines(output: str) -> list[str]:
    return [line.rstrip() for line in output.rstrip("\n").split("\n")]


def check(runner: Runner, golden: Golden) -> list[str]:
    problems = []
    for case in golden.cases:
        if not case.notes and len(case.expected) != len(golden.commands):
            problems.append(
                f"{golden.path}:{case.first_line}: {len(golden.commands)} RUN lines and "
                f"{len(case.expected)} EXPECT blocks; write them with --bless"
            )
            continue
        for index, (code, output) in enumerate(outputs_of(runner, golden, case)):
            problems += check_exit(golden, case, golden.commands[index], code, output)
            if case.notes:
                problems += check_notes(golden, case, output)
            elif case.expected[index] != text_lines(output):
                diff = difflib.unified_diff(
                    case.expected[index], text_lines(output), "expected", "found", lineterm=""
                )
                where = f"{golden.path}:{case.first_line}: `{golden.commands[index].text}`"
                problems.append("\n".join([where, *diff]))
    return problems


def bless_notes(golden: Golden, case: Case, output: str) -> list[str]:
    """The case's lines with an error comment beside each line that has an error."""
    errors = {}
    for line, message, _ in errors_of(output, golden.path.name):
        errors.setdefault(line, message)
    if 0 in errors:
        raise Malformed(f"{golden.path}: an error names no line: {errors[0]}")
    kept = {of: at for at, (of, _) in case.notes.items()}
    lines = []
    for number, line in enumerate(case.lines, case.first_line):
        if number in case.notes:
            of = case.notes[number][0]
            offset = "" if of == number else f"@{of - number:+d}"
            line = line[: NOTE.search(line).start()].rstrip()
            if of in errors:
                gap = "  " if line else ""
                line += f"{gap}{golden.comment} error{offset}: {errors[of]}"
        if number in errors and number not in kept:
            line += f"  {golden.comment} error: {errors[number]}"
        lines.append(line)
    return lines


def bless(runner: Runner, golden: Golden) -> list[str]:
    """Rewrites the file; returns wrong exit codes, which can't be blessed."""
    problems, parts = [], []
    for case in golden.cases:
        ran = outputs_of(runner, golden, case)
        for command, (code, output) in zip(golden.commands, ran):
            problems += check_exit(golden, case, command, code, output)
        lines = list(case.lines)
        if case.notes:
            lines = bless_notes(golden, case, ran[0][1])
        else:
            for _, output in ran:
                lines += ["", f"{golden.comment} EXPECT:"]
                lines += [f"{golden.comment} {line}".rstrip() for line in text_lines(output)]
        parts.append("\n".join(lines))
    if not problems:
        text = f"\n\n{golden.comment} -----\n".join(parts) + "\n"
        if text != golden.path.read_text():
            golden.path.write_text(text)
            print(f"blessed {golden.path}")
    return problems


def check_roundtrip(runner: Runner, golden: Golden) -> list[str]:
    """Checks that the printed text of a valid program parses and prints to itself."""
    problems = []
    for case in golden.cases:
        if case.notes or golden.path.suffix != ".tn" or not golden.commands[0].text.startswith("tenon"):
            continue
        if golden.commands[0].exit_code not in (None, 0):
            continue
        name = golden.path.name
        code, once = runner.run("tenon opt %s", name, padded(case), golden.path)
        again, twice = runner.run("tenon opt %s", name, once, golden.path)
        if code or again or once != twice:
            diff = difflib.unified_diff(text_lines(once), text_lines(twice), "once", "twice", lineterm="")
            problems.append("\n".join([f"{golden.path}:{case.first_line}: exits {code}, {again}", *diff]))
    return problems


def find_tenon() -> Path:
    built = list(HERE.parents[1].glob("build/*/**/tenon"))
    built = [path for path in built if path.is_file() and os.access(path, os.X_OK)]
    if not built:
        sys.exit("run.py: no built `tenon` below build/; give one with --tenon")
    return max(built, key=lambda path: path.stat().st_mtime)


def files_below(path: Path) -> list[Path]:
    """All golden files: not the runner's own files or those in folders named `data`."""
    if path.is_file():
        return [path]
    files = (p for p in path.rglob("*") if p.is_file() and "data" not in p.relative_to(path).parts)
    skipped = (".py", ".md", ".pyc")
    return sorted(p for p in files if p.suffix not in skipped and p.name != "CMakeLists.txt")


def lacks_what_it_needs(file: Path) -> bool:
    """Whether the file's head says `NEEDS: pty` but pseudo-terminals can't be opened."""
    if not NEEDS_PTY.search(file.read_text()):
        return False
    try:
        for end in os.openpty():
            os.close(end)
    except OSError:
        return True
    return False


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, default=[HERE])
    parser.add_argument("--tenon", type=Path)
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--roundtrip", action="store_true")
    parser.add_argument("--poison", dest="flag", action="store_const", const="--poison")
    parser.add_argument("--bytecode", dest="flag", action="store_const", const="--mode bytecode")
    options = parser.parse_args(arguments)
    if options.flag and (options.bless or options.roundtrip):
        parser.error(f"{options.flag} only checks")
    runner = Runner(options.tenon or find_tenon())
    action = check_roundtrip if options.roundtrip else bless if options.bless else check
    files, failed, skipped = 0, 0, 0
    for path in options.paths:
        for file in files_below(path):
            if lacks_what_it_needs(file):
                print(f"{file.name}: no pseudo-terminals can be opened here")
                skipped += 1
                continue
            try:
                golden = parse(file)
                if options.flag and not (golden := varied(golden, options.flag)):
                    continue
                problems = action(runner, golden)
            except Malformed as error:
                problems = [str(error)]
            files += 1
            failed += bool(problems)
            for problem in problems:
                print(problem)
    print(f"golden: {files} files, {failed} failed")
    if skipped and not files:
        return 77
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
