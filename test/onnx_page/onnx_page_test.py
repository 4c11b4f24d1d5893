#!/usr/bin/env python3
"""Tests that docs/onnx.md lists the operators that the importer takes, with the element types of ONNX's schemas.

Usage: onnx_page_test.py TENON PAGE REQUIREMENTS. With TENON_BLESS=1 it writes the page. Exits with 77 where the onnx
package of REQUIREMENTS is missing: another version has other schemas.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

try:
    import onnx
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


# ONNX's names of element types, in the order in which the page lists them.
NAMES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "bfloat16": "bf16", "float16": "f16", "float": "f32", "double": "f64",
    "string": "string", "int2": "i2", "int4": "i4", "uint2": "u2", "uint4": "u4", "float4e2m1": "f4e2m1fn",
    "float8e4m3fn": "f8e4m3fn", "float8e4m3fnuz": "f8e4m3fnuz", "float8e5m2": "f8e5m2",
    "float8e5m2fnuz": "f8e5m2fnuz", "float8e8m0": "f8e8m0fnu",
}  # fmt: skip
SETS = {
    "integers": "i8 i16 i32 i64 u8 u16 u32 u64",
    "floats": "bf16 f16 f32 f64",
    "2-bit": "i2 u2",
    "4-bit": "i4 u4 f4e2m1fn",
    "8-bit floats": "f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz",
}
REFUSED = ("complex64", "complex128", "float6e2m3", "float6e3m2")
# Types that ONNX allows and that operators refuse.
EXCEPTIONS = {"string": ("Col2Im", "GridSample", "NonZero", "Resize", "Trilu", "Upsample")}
# What types alone don't tell.
NOTES = {"Cast": "not from string to bool", "CastLike": "not from string to bool"}
HELD = {"seq": "sequences", "optional": "optional values", "map": "maps"}

HEAD = """# ONNX operators

The operators of models that are imported, from opset 7 on, with their versions and the element types of the newest one;
older versions take what ONNX says of them. Generated from `tenon ops` and ONNX's schemas (onnx {version}).

- integers: {integers}
- floats: {floats}
- 2-bit: {2-bit}; 4-bit: {4-bit}
- 8-bit floats: {8-bit floats}; f8e8m0fnu is named on its own

Complex numbers (`complex64`, `complex128`), which ONNX allows where elements are only moved, and floats of 6 bits are
refused by name, and so is whatever else isn't imported, with a list of all such nodes of the model.
"""

# Why stored cases of ONNX and of other projects disagree with Tenon.
TAIL = """
## Results that differ

Published cases with other results than Tenon's:

| case | why |
| --- | --- |
| `dft_inverse`, opsets 17 and 19 | the stored output is that of another length |
| `maxunpool_export_with_output_shape`, `resize_downsample_scales_cubic_align_corners`, `resize_nearest` of opset 5 | the stored outputs contradict ONNX's text; ONNX Runtime differs, too |
| `affine_grid_*_expanded` | an If whose arms have results of different rank, of which one never runs |
| an integer power or a conversion to an integer beyond its range | undefined in ONNX: Tenon wraps and saturates ([semantics.md](semantics.md)) |
| TopK with `sorted=0` | the order isn't defined |
| f16 values that are stored between operators | runtimes that compute in f32 throughout round less |
| a model's input that is also an initializer | is a constant for Tenon, not a default |
"""


def types_of(allowed, operator):
    """The sets and names that stand for a list such as tensor(float), seq(tensor(float)) of an operator."""
    found, held = set(), []
    for text in allowed:
        kind, inner = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
        if kind != "tensor":
            held.append(HELD[kind])
        elif inner not in REFUSED and operator not in EXCEPTIONS.get(inner, ()):
            found.add(NAMES[inner])
    parts = []
    for name, members in SETS.items():
        if set(members.split()) <= found:
            parts.append(name)
            found -= set(members.split())
    return parts + [name for name in NAMES.values() if name in found] + sorted(set(held))


def row_of(schemas, since, least):
    """A row of an operator, whose schemas are in order of their versions."""
    ends = [later.since_version for later in schemas[1:]] + [None]
    versions = [
        schema.since_version
        for schema, end in zip(schemas, ends)
        if not schema.deprecated and schema.since_version >= since and (end is None or end > least)
    ]
    newest = [schema for schema in schemas if not schema.deprecated][-1]
    variables = {}
    for constraint in newest.type_constraints:
        variables.setdefault(", ".join(types_of(constraint.allowed_type_strs, newest.name)), []).append(constraint.type_param_str)
    fixed = {value.type_str for value in [*newest.inputs, *newest.outputs]} - {
        constraint.type_param_str for constraint in newest.type_constraints
    }
    parts = [f"{', '.join(names)}: {types}" for types, names in variables.items() if types]
    parts += sorted({", ".join(types_of([text], newest.name)) for text in fixed})
    if newest.name in NOTES:
        parts.append(NOTES[newest.name])
    return f"| {newest.name} | {', '.join(map(str, versions))} | {'; '.join(parts)} |"


def section(title, domain, since, least):
    schemas = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == domain:
            schemas.setdefault(schema.name, []).append(schema)
    lines = ["", f"## {title}", "", "| operator | versions | element types |", "| --- | --- | --- |"]
    missing = []
    for name in sorted(schemas):
        history = sorted(schemas[name], key=lambda schema: schema.since_version)
        if name in since:
            lines.append(row_of(history, since[name], least))
        elif not history[-1].deprecated:
            missing.append(name)
    if missing:
        lines += ["", f"Not imported: {', '.join(missing)}."]
    return lines


def page(tenon):
    rows = json.loads(subprocess.run([tenon, "ops", "--json"], check=True, capture_output=True).stdout)["operators"]
    by_domain = {}
    for row in rows:
        domain, _, name = row["name"].rpartition(":")
        by_domain.setdefault(domain, {}).setdefault(name, row["since"])
    lines = HEAD.format(version=onnx.__version__, **SETS).splitlines()
    lines += section("The default domain", "", by_domain[""], least=7)
    lines += section("ai.onnx.ml", "ai.onnx.ml", by_domain["ai.onnx.ml"], least=1)
    lines += ["", "## com.microsoft", ""]
    line = ""
    for name in sorted(by_domain["com.microsoft"]):
        if len(line) + len(name) > 116:
            lines.append(line.rstrip())
            line = ""
        line += f"{name}, "
    lines.append(f"{line.removesuffix(', ')}.")
    return "\n".join(lines + TAIL.splitlines()) + "\n"


def main():
    tenon, path, requirements = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    pinned = re.search(r"^onnx==(.*)$", requirements.read_text(), re.MULTILINE).group(1)
    if onnx.__version__ != pinned:
        print(f"skipped: onnx {onnx.__version__}, not {pinned}")
        sys.exit(77)
    made = page(tenon)
    if os.environ.get("TENON_BLESS"):
        path.write_text(made)
    if not path.exists() or path.read_text() != made:
        sys.exit(f"{path} is out of date: run this test with TENON_BLESS=1")


if __name__ == "__main__":
    main()
