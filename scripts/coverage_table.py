#!/usr/bin/env python3
"""Prints the line coverage of a build with TENON_COVERAGE, per folder, from what gcov reports.

    coverage_table.py BUILD [--lines FILE]

A line counts if GCC made code for it, and is covered if that ran in a test. With --lines, FILE lists the lines
that didn't, with their text.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from multiprocessing.pool import ThreadPool
from pathlib import Path

# The rows of docs/security.md. A file counts in every row whose pattern matches its path.
ROWS = [
    ("`src/vm`", r"src/vm/"),
    ("`src/c_api`", r"src/c_api/"),
    ("`src/import`", r"src/import/"),
    ("text of graph IR: `src/graph/ir`, lexer and parser",
     r"src/graph/ir/(lexer|parse_\w+|parser|imports|name_text|expected_text|expected_types|value_words"
     r"|kernel_words|weights|referenced_file)\."),
    ("assembly: `src/vm/asm`", r"src/vm/asm/"),
    ("JSON: `src/json`", r"src/json/"),
    ("graphs and provenance in files, recognising files: `src/driver`",
     r"src/driver/(model_graph|provenance|foreign_file|late_weights)\."),
    ("input files: `tools/tenon`", r"tools/tenon/(numpy/npy|numpy/npy_strings|numpy/zip_reader|numpy/input_stream|json_tensor|input_spec|parse_number)\."),
    ("binding: `python/src`", r"python/src/"),
]


def count_lines(notes: Path) -> dict[str, Counter[int]]:
    """How often the lines of each file ran, as gcov reports it for one object; its counts lie beside the notes."""
    run = subprocess.run(["gcov", "--json-format", "--stdout", notes], capture_output=True)
    if run.returncode != 0:
        said = run.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"gcov can't read {notes}: {said}; build that object again, and run the tests")
    counts: dict[str, Counter[int]] = {}
    for file in json.loads(run.stdout)["files"]:
        lines = counts.setdefault(file["file"], Counter())
        for line in file["lines"]:
            lines[line["line_number"]] += line["count"]
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--lines", type=Path)
    arguments = parser.parse_args()
    counts: dict[str, Counter[int]] = {}
    try:
        with ThreadPool(len(os.sched_getaffinity(0))) as pool:
            for part in pool.imap_unordered(count_lines, arguments.build.rglob("*.gcno")):
                for file, lines in part.items():
                    counts.setdefault(file, Counter()).update(lines)
    except RuntimeError as error:
        print(f"coverage_table: {error}", file=sys.stderr)
        return 1

    print("| code | lines | covered | percent |")
    print("| --- | --- | --- | --- |")
    listed: set[str] = set()
    complete = True
    for name, pattern in ROWS:
        files = [file for file in counts if re.match(pattern, file) and not re.search(r"_test(ing)?\.", file)]
        total = sum(len(counts[file]) for file in files)
        covered = sum(count > 0 for file in files for count in counts[file].values())
        if not total:
            print(f"coverage_table: no file of {name} was measured", file=sys.stderr)
            complete = False
            continue
        # Rounded down: 94.99 % is not 95 %.
        print(f"| {name} | {total:,} | {covered:,} | {covered * 1000 // total / 10} |")
        listed.update(files)

    if arguments.lines:
        with arguments.lines.open("w") as out:
            for file in sorted(listed):
                text = Path(file).read_text().splitlines()
                for number, count in sorted(counts[file].items()):
                    if count == 0:
                        print(f"{file}:{number}: {text[number - 1].strip()}", file=out)
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
