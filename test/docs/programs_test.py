#!/usr/bin/env python3
"""The pages of examples/programs are true: each command prints what follows it, and excerpts are of the program.

Usage: programs_test.py --tenon PROGRAM [--bless]

In a fenced block, `$ COMMAND` is run by bash where `examples/programs` is what the repository has; the lines up to the
next command are its output. A `tn` block is text of the page's program. Every program has a page, and README.md
lists it. `--bless` writes the output into the pages.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples/programs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 120


def output_of(command: str, tenon: Path, folder: Path) -> str:
    """Standard output, then standard error, of a command that must succeed."""
    env = {**os.environ, "PATH": f"{tenon.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    failed = f"exit code {done.returncode}\n" if done.returncode else ""
    return done.stdout + done.stderr + failed


def rerun(block: str, tenon: Path, folder: Path) -> str:
    """The block with the output that its commands have now."""
    out = ""
    for line in block.splitlines():
        if line.startswith("$ "):
            out += line + "\n" + output_of(line[2:], tenon, folder)
    return out


def check_page(page: Path, tenon: Path, bless: bool) -> list[str]:
    text = page.read_text()
    program = page.with_suffix(".tn")
    source = program.read_text() if program.exists() else ""
    problems = []

    with tempfile.TemporaryDirectory() as folder:
        examples = Path(folder, "examples")
        examples.mkdir()
        (examples / "programs").symlink_to(FOLDER)

        def renew(block: re.Match) -> str:
            language, body = block.groups()
            if language == "tn" and body not in source:
                problems.append(f"{page.name}: not in {program.name}:\n{body}")
            return f"```{language}\n{rerun(body, tenon, Path(folder))}```" if body.startswith("$ ") else block.group()

        renewed = BLOCK.sub(renew, text)
    if bless:
        page.write_text(renewed)
    elif renewed != text:
        lines = difflib.unified_diff(text.splitlines(), renewed.splitlines(), str(page), "what it prints", lineterm="")
        problems.append("\n".join(lines))
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    parser.add_argument("--bless", action="store_true")
    options = parser.parse_args()
    pages = {page.stem: page for page in sorted(FOLDER.glob("*.md"))}
    readme = pages["README"].read_text()
    problems = [
        f"{program.name} has no page, or README.md doesn't link it"
        for program in sorted(FOLDER.glob("*.tn"))
        if program.stem not in pages or f"({program.stem}.md)" not in readme
    ]
    for page in pages.values():
        problems += check_page(page, options.tenon.resolve(), options.bless)
    for problem in problems:
        print(problem)
    print(f"{len(pages)} pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
