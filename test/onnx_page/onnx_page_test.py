#!/usr/bin/env python3
"""Tests that docs/onnx.md lists the operators that the importer takes, with the element types that it takes of ONNX's.

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

import probes

HERE = pathlib.Path(__file__).parent

# ONNX's names of element types, in the order in which the page lists them.
NAMES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "bfloat16": "bf16", "float16": "f16", "float": "f32", "double": "f64",
    "string": "string", "int2": "i2", "int4": "i4", "uint2": "u2", "uint4": "u4", "float4e2m1": "f4e2m1fn",
    "float8e4m3fn": "f8e4m3fn", "float8e4m3fnuz": "f8e4m3fnuz", "float8e5m2": "f8e5m2",
    "float8e5m2fnuz": "f8e5m2fnuz", "float8e8m0": "f8e8m0fnu", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
SETS = {
    "integers": "i8 i16 i32 i64 u8 u16 u32 u64",
    "floats": "bf16 f16 f32 f64",
    "complex": "c64 c128",
    "2-bit": "i2 u2",
    "4-bit": "i4 u4 f4e2m1fn",
    "8-bit floats": "f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz",
}
HELD = {"seq": "sequences", "optional": "optional values", "map": "maps"}



def names_of(kinds):
    """The sets and names that stand for a list of types."""
    found = {NAMES[kind.element] for kind in kinds if kind.kind == "tensor"}
    held = {HELD[kind.kind.split()[0]] for kind in kinds if kind.kind != "tensor"}
    parts = []
    for name, members in SETS.items():
        if set(members.split()) <= found:
            parts.append(name)
            found -= set(members.split())
    return parts + [name for name in NAMES.values() if name in found] + sorted(held)


class Operator:
    """An operator's versions that are imported, each with the types of its variables."""

    def __init__(self, schemas, since):
        """`schemas` are in order of their versions, which are imported from `since` on."""
        least = probes.LEAST[schemas[0].domain]
        ends = [later.since_version for later in schemas[1:]] + [None]
        self.name = schemas[0].name
        self.schemas = [
            schema
            for schema, end in zip(schemas, ends)
            if not schema.deprecated and schema.since_version >= since and (end is None or end > least)
        ]
        self.variables = {
            schema.since_version: [probes.Variable(schema, c.type_param_str) for c in schema.type_constraints]
            for schema in self.schemas
        }
        self.taken = {}  # by version and variable

    def take(self, found):
        """Takes what was found out; versions none of whose types are imported are dropped."""
        for version, variables in self.variables.items():
            told = {v.name: [probe for probe in found[v] if probe.rounds] for v in variables}
            self.taken[version] = {
                v.name: known([p.kind for p in told[v.name] if p.accepted] if told[v.name] else v.kinds)
                for v in variables
            }
        self.schemas = [s for s in self.schemas if not self.taken[s.since_version] or any(self.taken[s.since_version].values())]

    def refused(self, schema):
        """By variable, what ONNX allows and isn't imported."""
        taken = self.taken[schema.since_version]
        return {v.name: set(known(v.kinds)) - set(taken[v.name]) for v in self.variables[schema.since_version]}

    def row(self, notes):
        newest = self.schemas[-1]
        variables = {}
        for name, kinds in self.taken[newest.since_version].items():
            variables.setdefault(", ".join(names_of(kinds)), []).append(name)
        fixed = {value.type_str for value in [*newest.inputs, *newest.outputs]} - set(self.taken[newest.since_version])
        parts = [f"{', '.join(names)}: {types}" for types, names in variables.items() if types]
        parts += sorted({", ".join(names_of([probes.Type(text)])) for text in fixed})
        not_now = set().union(*self.refused(newest).values())
        for schema in self.schemas[:-1]:
            for name, kinds in self.refused(schema).items():
                if kinds - not_now:
                    parts.append(f"in version {schema.since_version} {name} not {', '.join(names_of(kinds - not_now))}")
        parts += [notes[self.name]] if self.name in notes else []
        versions = ", ".join(str(schema.since_version) for schema in self.schemas)
        return f"| {self.name} | {versions} | {'; '.join(parts)} |"


def known(kinds):
    """Those of the types whose elements Tenon has."""
    return [kind for kind in kinds if kind.kind != "tensor" or kind.element in NAMES]


def operators_of(domain, since):
    """Those that are imported, and the names of the others."""
    schemas = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == domain:
            schemas.setdefault(schema.name, []).append(schema)
    made, missing = [], []
    for name in sorted(schemas):
        history = sorted(schemas[name], key=lambda schema: schema.since_version)
        if name in since:
            made.append(Operator(history, since[name]))
        elif not history[-1].deprecated:
            missing.append(name)
    return made, missing


def section(title, operators, missing, notes):
    lines = [f"## {title}", "", "| operator | versions | element types |", "| --- | --- | --- |"]
    lines += [operator.row(notes) for operator in operators if operator.schemas]
    missing = sorted(missing + [operator.name for operator in operators if not operator.schemas])
    return lines + (["", f"Not imported: {', '.join(missing)}."] if missing else []) + [""]


def names_in_lines(names):
    lines = [""]
    for name in names:
        if len(lines[-1]) + len(name) > 116:
            lines.append("")
        lines[-1] += f"{name}, "
    return [line.rstrip() for line in lines[:-1]] + [f"{lines[-1].removesuffix(', ')}."]


def page(tenon):
    rows = json.loads(subprocess.run([tenon, "ops", "--json"], check=True, capture_output=True).stdout)["operators"]
    by_domain = {}
    for row in rows:
        domain, _, name = row["name"].rpartition(":")
        by_domain.setdefault(domain, {}).setdefault(name, row["since"])
    domains = {domain: operators_of(domain, by_domain[domain]) for domain in probes.LEAST}
    operators = [operator for made, _ in domains.values() for operator in made]
    variables = [v for operator in operators for listed in operator.variables.values() for v in listed]
    found = probes.tried(variables, probes.recorded_cases(), probes.own_cases(HERE / "nodes.txt"), tenon)
    for operator in operators:
        operator.take(found)
    notes = json.loads((HERE / "notes.json").read_text())
    tables = section("The default domain", *domains[""], notes) + section("ai.onnx.ml", *domains["ai.onnx.ml"], notes)
    tables += ["## com.microsoft", "", *names_in_lines(sorted(by_domain["com.microsoft"]))]
    text = (HERE / "page.md").read_text()
    for name, value in {**SETS, "version": onnx.__version__, "tables": "\n".join(tables)}.items():
        text = text.replace(f"{{{name}}}", value)
    return text


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
