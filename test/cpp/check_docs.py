"""Compiles the samples of docs/cpp.md as one program, and runs it on a model.

check_docs.py COMPILER INCLUDE LIBRARY MODEL.onnx FOLDER [FLAG...]"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

compiler, include, library, model, folder, *flags = sys.argv[1:]
page = Path(__file__).resolve().parents[2] / "docs" / "cpp.md"
samples = re.findall(r"^```cpp\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
assert len(samples) > 5, f"found {len(samples)} samples in {page}"
lines = "".join(samples).splitlines(keepends=True)
includes = [line for line in lines if line.startswith("#include")]
body = [line for line in lines if not line.startswith("#include")]

work = Path(folder)
shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
shutil.copy(model, work / "model.onnx")
source = work / "samples.cc"
source.write_text("#include <cstdio>\n" + "".join(includes) + "int main() {\n" + "".join(body) + "}\n")
command = [compiler, "-std=c++20", f"-I{include}", "-Wall", "-Wextra", "-Werror", "-Wno-unused", *flags]
command += [str(source), "-o", str(work / "samples"), library, f"-Wl,-rpath,{Path(library).parent}"]
subprocess.run(command, check=True)
done = subprocess.run([str(work / "samples")], cwd=work, stdout=subprocess.PIPE, text=True, check=True)
for expected in ("(images: tensor[1, 1, 8, 8; f32])", "expected ", "level 2", "relu(%x)", "2, a leaf: 1", "42 <closure @adder.add>", "total 7"):
    assert expected in done.stdout, f"no '{expected}' in:\n{done.stdout}"
