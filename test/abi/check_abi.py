"""Checks that the C interface still has everything that its last release had, unchanged.

check_abi.py COMPILER HEADER LIBRARY RELEASE.txt           compares
check_abi.py COMPILER HEADER LIBRARY RELEASE.txt --bless   writes RELEASE.txt, for a release

RELEASE.txt has a line for each constant, type, struct, field and function of the header: its number, size,
offset or declaration. A line that has no equal any more is a violation; new lines aren't. A struct that
begins with its size may grow. The library must export every function of RELEASE.txt under TENON_1."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path


def squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


class Header:
    """The declarations of a C header in the style of tenon/c_api.h."""

    def __init__(self, text: str):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        lines = text.replace("\\\n", " ").splitlines()
        self.constants = ["TENON_C_API_VERSION"]
        text = "\n".join(line for line in lines if not line.startswith("#"))
        for body in re.findall(r"\benum\s*\{(.*?)\}", text, re.DOTALL):
            self.constants += re.findall(r"(\w+)\s*=", body)
        self.structs = {}
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\n\} (\w+);", text, re.DOTALL):
            self.structs[name] = self.fields(body)
        functions = re.findall(r"TENON_API\s+([^;]*?)(\w+)\(([^;]*)\);", text)
        self.functions = {name: squeeze(f"{result}{name}({args})") for result, name, args in functions}
        pointers = re.findall(r"typedef\s+([^;{]*?\(\*(\w+)\)\([^;]*\));", text)
        self.pointers = {name: squeeze(declaration) for declaration, name in pointers}

    @staticmethod
    def fields(body: str) -> dict[str, str]:
        """Field to declaration, also of unions within the struct: "v", "v.i"."""
        found = {}
        for inner, name in re.findall(r"union\s*\{(.*?)\}\s*(\w+);", body, re.DOTALL):
            found[name] = "union"
            found |= {f"{name}.{field}": text for field, text in Header.fields(inner).items()}
        for line in re.sub(r"union\s*\{.*?\}\s*\w+;", "", body, flags=re.DOTALL).split(";"):
            declaration = squeeze(line)
            match = re.search(r"\(\*(\w+)\)|(\w+)(\[\w+\])?$", declaration)
            if match:
                found[match.group(1) or match.group(2)] = declaration
        return found


def measured(compiler: str, path: Path, header: Header) -> list[str]:
    """Numbers of constants, sizes of structs and offsets of fields, as the compiler sees them."""
    prints = [f'printf("constant {c} = %lld\\n", (long long)({c}));' for c in header.constants]
    for name, fields in header.structs.items():
        prints.append(f'printf("struct {name}: %zu bytes\\n", sizeof({name}));')
        for field, declaration in fields.items():
            size = f"sizeof((({name}*)0)->{field})"
            prints.append(
                f'printf("field {name}.{field} at %zu, %zu bytes: {declaration}\\n", '
                f"offsetof({name}, {field}), {size});"
            )
    body = "\n".join(prints)
    program = f'#include <stdio.h>\n#include <stddef.h>\n#include "{path.resolve()}"\nint main(void) {{\n{body}\n}}\n'
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "measure.c"), Path(folder, "measure")
        source.write_text(program)
        include = path.resolve().parents[1]
        subprocess.run([compiler, f"-I{include}", str(source), "-o", str(out)], check=True)
        return subprocess.run([str(out)], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def described(compiler: str, path: Path) -> list[str]:
    header = Header(path.read_text())
    lines = measured(compiler, path, header)
    lines += [f"type {declaration}" for declaration in header.pointers.values()]
    lines += [f"function {declaration}" for declaration in header.functions.values()]
    return sorted(lines)


def grows(line: str, now: list[str]) -> bool:
    """Whether `line` is the size of a struct that begins with its size, and is greater now."""
    match = re.fullmatch(r"struct (\w+): (\d+) bytes", line)
    if not match or not any(n.startswith(f"field {match[1]}.size at 0, 4 bytes") for n in now):
        return False
    sizes = [re.fullmatch(rf"struct {match[1]}: (\d+) bytes", n) for n in now]
    return any(s and int(s[1]) > int(match[2]) for s in sizes)


def violations(released: list[str], now: list[str]) -> list[str]:
    return [line for line in released if line not in now and not grows(line, now)]


def not_exported(released: list[str], library: Path) -> list[str]:
    symbols = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    exported = set(re.findall(r" (\w+)@@TENON_1$", symbols, re.MULTILINE))
    names = [re.search(r"(\w+)\(", line).group(1) for line in released if line.startswith("function ")]
    return [name for name in names if name not in exported]


def main(compiler: str, header: str, library: str, release: str, *options: str) -> int:
    now = described(compiler, Path(header))
    if "--bless" in options:
        Path(release).write_text("\n".join(now) + "\n")
        return 0
    released = Path(release).read_text().splitlines()
    broken = violations(released, now)
    for line in broken:
        print(f"{Path(release).name}: no longer in the header: {line}")
    missing = not_exported(released, Path(library))
    for name in missing:
        print(f"{Path(library).name} doesn't export {name}")
    print(f"{len(released)} lines of {Path(release).name} compared, {len(now) - len(released)} more in the header")
    return 1 if broken or missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
