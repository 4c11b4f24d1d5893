#!/usr/bin/env python3
"""Runs ONNX's cases of one family and compares the results with the list of passing cases.

Usage: onnx_cases.py --tenon PROGRAM FAMILY [--bless] [--jobs N] [-- CHECK ARGUMENT...]

FAMILY is a folder of $TENON_ONNX_DATA (by default ../shared/onnx beside the checkout) such as `node`;
passing/FAMILY.txt lists the cases that must pass. Fails if one of them does not, or if any case
crashes or hangs. --bless adds cases that newly pass; remove a case by hand, with the reason. Exits
with 77, which counts as skipped, if the data is missing.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ATOL = {"gen": "1e-5", "light_filled": "1e-5"}


def data_folder() -> Path:
    return Path(os.environ.get("TENON_ONNX_DATA") or HERE.parents[2] / "shared" / "onnx")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    parser.add_argument("family")
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--jobs", default="0")
    parser.add_argument("rest", nargs="*")
    options = parser.parse_args()
    folder = data_folder() / options.family
    if not folder.is_dir():
        print(f"skipped: no ONNX cases at {folder}; TENON_ONNX_DATA names their folder")
        return 77
    command = [options.tenon, "check", folder, "--json", "-q", "--jobs", options.jobs]
    # Long enough for a large model on a busy machine.
    command += ["--timeout", "900", "--atol", ATOL.get(options.family, "1e-7"), *options.rest]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    try:
        report, _ = json.JSONDecoder().raw_decode(done.stdout)
    except ValueError:
        print(f"`tenon check` exited with {done.returncode} and no report\n{done.stdout}{done.stderr}")
        return 1
    outcome = {Path(case["case"]).name: case for case in report["cases"]}
    passed = {name for name, case in outcome.items() if case["outcome"] == "passed"}
    listed_in = HERE / "passing" / f"{options.family}.txt"
    listed = set(listed_in.read_text().split()) if listed_in.exists() else set()

    problems = []
    for name in sorted(listed - passed):
        reason = outcome[name]["reason"] if name in outcome else "there is no such case"
        problems.append(f"no longer passes: {name}: {reason}")
    for name, case in outcome.items():
        if case["reason"].startswith(("crashed", "did not end", "ended without")):
            problems.append(f"{case['reason'].splitlines()[0]}: {name}")
    for problem in problems:
        print(problem)
    if options.bless:
        listed_in.parent.mkdir(exist_ok=True)
        listed_in.write_text("\n".join(sorted(listed | passed)) + "\n")
    new = len(passed - listed)
    print(
        f"{options.family}: {len(passed)} of {len(outcome)} pass, {len(listed)} must"
        + (f"; {new} newly pass{', now listed' if options.bless else ': list them with --bless'}" if new else "")
    )
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
