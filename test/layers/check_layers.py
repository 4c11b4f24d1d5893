#!/usr/bin/env python3
"""Checks every #include of src, tools, python, test, bench and examples against layers.txt.

A file belongs to the longest folder of layers.txt that contains it. It may include its own folder and
those in the folder's line (`*`: all folders). Tests (`*_test.cc`, `*_testing.h`) may also include the
folders of the `+test` line; a header of src that only tests include must be named so. An edge that no #include uses is a violation too. Only the folders of a line
`<PREFIX>: FOLDER...` may include headers with that prefix. The lines of MARKS are for
cmake/layers.cmake. A source that has a header of its name must
include it first, which proves that the header compiles alone (other headers get a generated source:
cmake/layers.cmake).

Usage: check_layers.py [ROOT]; exits 1 after a line for each violation:
  src/vm/isa/a.cc:3: includes loop/ir.h of src/loop; src/vm/isa may include src/support src/object
"""

import os
import re
import sys
from pathlib import Path

WALKED = ("include", "src", "tools", "python", "test", "bench", "examples")
SUFFIXES = (".h", ".cc", ".c", ".inc", ".def")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
TESTS = ("_test.cc", "_testing.h")
LINE = re.compile(r"(<?[\w./+*-]+>?):\s*(.*)")
MARKS = ("end of runtime", "end of the runtime's libraries")
# Not layers: input to tests, and programs built against an installed Tenon or a peer.
PUBLIC = "include/tenon"


class Layers:
    """The content of layers.txt: folders and what they may include, lowest first."""

    def __init__(self, text: str):
        self.allowed: dict[str, list[str]] = {}
        self.extra_for_tests: dict[str, list[str]] = {}
        self.external: dict[str, list[str]] = {}
        self.errors: list[str] = []
        # The edges that no #include has used so far: (name of the line, folder) to the line's number.
        self.unused: dict[tuple[str, str], int] = {}
        # Each included file, and whether anything but tests includes it.
        self.is_shipped: dict[str, bool] = {}
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].strip()
            match = LINE.fullmatch(line)
            if not line or line in MARKS:
                continue
            if not match:
                self.errors.append(f"layers.txt:{number}: expected FOLDER: FOLDER..., found {line!r}")
                continue
            name, folders = match.group(1), match.group(2).split()
            if name.startswith("<"):
                self.external[name.strip("<>")] = folders
                continue
            for other in folders:
                if other not in ("*", PUBLIC):
                    self.unused[name, other] = number
            if name.endswith("+test"):
                self.extra_for_tests[name.removesuffix("+test")] = folders
                continue
            for folder in folders:
                if folder not in self.allowed and folder not in ("*", PUBLIC):
                    self.errors.append(
                        f"layers.txt:{number}: {name} may not include {folder}: it is not above it"
                    )
            self.allowed[name] = folders

    def folder_of(self, path: str) -> str | None:
        """The longest folder of layers.txt that contains `path`, a file relative to the root."""
        parts = path.split("/")[:-1]
        while parts:
            folder = "/".join(parts)
            if folder in self.allowed or folder == PUBLIC:
                return folder
            parts.pop()
        return None


def resolve(root: Path, path: str, quoted: str) -> str:
    """The file, relative to the root, that `#include "quoted"` in `path` means; it may be generated."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), quoted))
    for candidate in (beside, f"src/{quoted}", f"include/{quoted}", quoted):
        if (root / candidate).exists():
            return candidate
    return f"src/{quoted}" if "/" in quoted else beside


def check_file(root: Path, path: str, layers: Layers) -> list[str]:
    errors = []
    folder = layers.folder_of(path)
    if folder is None:
        return [f"{path}:1: is not in any folder of layers.txt"]
    allowed = [] if folder == PUBLIC else [PUBLIC] + layers.allowed[folder]
    line_of_tests = f"{folder}+test"
    is_test = path.endswith(TESTS)
    if is_test:
        allowed = allowed + layers.extra_for_tests.get(folder, [])
    own_header = re.sub(r"(_test)?\.cc?$", ".h", path)
    first_quoted = None
    for number, line in enumerate((root / path).read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, name = match.groups()
        owners = next((o for prefix, o in layers.external.items() if name.startswith(prefix)), None)
        if owners is not None:
            if not {folder, path, "*"} & set(owners):
                errors.append(f"{path}:{number}: includes {name}; only {' '.join(owners)} may")
            continue
        if bracket == "<" and not name.startswith("tenon/"):
            continue
        target = resolve(root, path, name)
        if first_quoted is None:
            first_quoted = (number, target)
        for_tests = is_test or path.startswith("test/")
        layers.is_shipped[target] = layers.is_shipped.get(target, False) or not for_tests
        other = layers.folder_of(target)
        if other is None:
            errors.append(f"{path}:{number}: includes {name}, which is not in any folder of layers.txt")
            continue
        layers.unused.pop((line_of_tests if is_test else folder, other), None)
        if other != folder and other not in allowed and "*" not in allowed:
            may = " ".join(allowed[1:]) or "nothing else"
            errors.append(f"{path}:{number}: includes {name} of {other}; {folder} may include {may}")
    if path.endswith(".cc") and not path.endswith("_test.cc") and (root / own_header).exists():
        if first_quoted is None or first_quoted[1] != own_header:
            line = first_quoted[0] if first_quoted else 1
            errors.append(f"{path}:{line}: includes something before its own header {own_header}")
    return errors


def check(root: Path) -> tuple[int, list[str]]:
    """Returns the number of files checked, and the violations."""
    layers = Layers((root / "layers.txt").read_text())
    errors, files = list(layers.errors), 0
    for top in WALKED:
        for directory, folders, names in os.walk(root / top):
            # `testdata` folders contain inputs of tests, not sources of this tree.
            folders[:] = sorted(f for f in folders if f not in ("testdata", "build"))
            for name in sorted(names):
                if name.endswith(SUFFIXES):
                    files += 1
                    path = str(Path(directory, name).relative_to(root))
                    errors += check_file(root, path, layers)
    for header, is_shipped in sorted(layers.is_shipped.items()):
        if is_shipped or header.endswith(TESTS) or not re.fullmatch(r"src/.*\.h", header):
            continue
        if (root / header).exists():  # not generated
            errors.append(f"{header}:1: only tests include it, so its name must end in _testing.h")
    for (name, other), number in layers.unused.items():
        errors.append(f"layers.txt:{number}: nothing in {name} includes {other}")
    return files, errors


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    files, errors = check(root)
    for error in errors:
        print(error)
    print(f"layers: {files} files, {len(errors)} violations")
    return 1 if errors or not files else 0


if __name__ == "__main__":
    sys.exit(main())
