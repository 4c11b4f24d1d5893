#!/usr/bin/env python3
"""Runs a model with an operator of its own, computed by the library of examples/custom.

Usage: custom_operators.py --tenon PROGRAM --library libtenon_acme.so
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = """
ir_version: 8
opset_import { version: 17 }
opset_import { domain: "com.acme" version: 1 }
graph {
  name: "g"
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } dim { dim_value: 2 } } } } }
  node { name: "/relu" op_type: "Relu" input: "x" output: "a" }
  node { name: "/scale" op_type: "Scale" domain: "com.acme" input: "a" output: "b" ATTRIBUTE }
  node { name: "/neg" op_type: "Neg" input: "b" output: "y" }
  output { name: "y" }
}
"""
FACTOR = 'attribute { name: "factor" type: FLOAT f: 3 }'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    parser.add_argument("--library", type=Path, required=True)
    options = parser.parse_args()
    failures = []

    def tenon(*arguments: str) -> tuple[int, str]:
        run = subprocess.run([options.tenon.resolve(), *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
        return run.returncode, run.stdout + run.stderr

    def expect(what: str, found: tuple[int, str], code: int, *texts: str) -> None:
        missing = [text for text in texts if text not in found[1]]
        if found[0] != code or missing:
            failures.append(f"{what}: exit code {found[0]} (expected {code}), no {missing} in:\n{found[1]}")

    with tempfile.TemporaryDirectory() as folder:
        for name, attribute in (("given", FACTOR), ("default", "")):
            text = Path(folder, f"{name}.pbtxt")
            text.write_text(MODEL.replace("ATTRIBUTE", attribute))
            subprocess.run([ROOT / "test/golden/onnx/data/to_onnx", text, f"{folder}/{name}.onnx"], check=True)
        library = ["--custom", str(options.library.resolve())]
        ones = ["--dim", "n=1", "--input", "x=random:5..5"]
        unbound = tenon("compile", "given.onnx", "-o", "m.tnx")
        expect("without the library", unbound, 3, "com.acme:Scale  not implemented", "docs/custom-operators.md")
        expect("inspect", tenon("inspect", "given.onnx", *library), 0, "all nodes are supported")
        expect("an attribute", tenon("run", "given.onnx", *library, *ones), 0, "-15")
        interpreted = tenon("run", "given.onnx", "--mode", "interpret", *library, *ones)
        expect("interpreted", interpreted, 0, "-15")
        expect("its default", tenon("run", "default.onnx", *library, *ones), 0, "-10")
        expect("compile", tenon("compile", "given.onnx", "-o", "m.tnx", *library), 0)
        expect("a compiled file", tenon("run", "m.tnx", *library, *ones), 0, "-15")
        expect("dump", tenon("dump", "m.tnx"), 0, "acme")
        alone = tenon("run", "m.tnx", *ones)
        expect("a compiled file without the library", alone, 3, "needs libraries that this process lacks", "no acme")
        untrusted = tenon("run", "m.tnx", "--untrusted", *library, *ones)
        expect("an untrusted file", untrusted, 3, "the required library acme")
        expect("a wrong name", tenon("run", "given.onnx", "--custom", "acme.so"), 2, "libtenon_NAME.so")
        expect("a missing file", tenon("run", "given.onnx", "--custom", "libtenon_no.so"), 2, "there is no file")

    page = (ROOT / "docs/custom-operators.md").read_text()
    for block in re.findall(r"```c\n(.*?)```", page, re.DOTALL):
        if block not in (ROOT / "examples/custom/acme.c").read_text():
            failures.append(f"docs/custom-operators.md differs from examples/custom/acme.c:\n{block}")
    print("\n\n".join(failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
