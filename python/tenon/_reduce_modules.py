"""Modules that are smaller than a given one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from . import ir
from ._errors import UsageError
from ._reduce_order import spread

_HEAD = re.compile(r"fn @(\S+)\((.*)\) -> (.*?)( attrs\(.*\))? \{")
_BINDING = re.compile(r"  (%\S+): (.*?) = ", re.DOTALL)


def smaller_modules(module: ir.Module) -> Iterator[ir.Module]:
    """Modules that are smaller by one step; only those that parse, which checks them."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "module.tn")
        module.save(path)  # with weights, which candidates refer to
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for candidate in _smaller_texts(text):
            try:
                parsed = ir.parse(candidate, path)
            except UsageError:
                continue
            if parsed != module:
                yield parsed


def _smaller_texts(text: str) -> Iterator[str]:
    """Each function without itself, ending at one of its bindings, beginning at one, and without one; then with smaller
    sizes."""
    parts = re.split(r"(?m)^(?=\S)(?!\})", text)  # what stands at the top level
    for i, part in enumerate(parts):
        head = _HEAD.match(part)
        if head is None:
            continue
        yield "".join(parts[:i] + parts[i + 1 :])
        for smaller in _smaller_functions(head, part[head.end() :]):
            yield "".join([*parts[:i], smaller, *parts[i + 1 :]])
    sizes = {int(n) for n in re.findall(r"(?<=[\[ ])\d+(?=[,;\]])", text)}
    for size in sorted(sizes, reverse=True):
        for smaller_size in dict.fromkeys([1, 2, size // 2]):
            if 0 < smaller_size < size:
                yield re.sub(rf"(?<=[\[ ]){size}(?=[,;\]])", str(smaller_size), text)


def _smaller_functions(head: re.Match[str], body: str) -> Iterator[str]:
    name, result = head[1], head[3]
    params = _split(head[2])
    bindings = re.split(r"(?m)^(?=  \S)(?!  [\])}])", body.rpartition("}")[0].strip("\n") + "\n")
    bindings, last = bindings[:-1], bindings[-1].strip()

    def function(params: list[str], bindings: list[str], last: str, result: str) -> str:
        used = "".join(bindings) + last
        kept = [p for p in params if re.search(re.escape(p.partition(":")[0]) + r"(?![\w.])", used)]
        return f"fn @{name}({', '.join(kept)}) -> {result} {{\n{''.join(bindings)}  {last}\n}}\n\n"

    named = [(i, m[1], m[2]) for i, b in enumerate(bindings) if (m := _BINDING.match(b))]
    for i, variable, type in spread(named):
        if variable != last:
            yield function(params, bindings[: i + 1], variable, type)
    for i, variable, type in spread(named):
        yield function([*params, f"{variable}: {type}"], bindings[:i] + bindings[i + 1 :], last, result)
    types = dict(p.split(": ", 1) for p in params) | {variable: type for _, variable, type in named}
    for i, variable, type in named:
        yield function(params, bindings[:i] + bindings[i + 1 :], last, result)
        for operand in dict.fromkeys(re.findall(r"%[\w.]+", bindings[i])):
            if operand != variable and types.get(operand) == type:
                use = re.compile(re.escape(variable) + r"(?![\w.])")
                after = [use.sub(operand, b) for b in bindings[i + 1 :]]
                yield function(params, bindings[:i] + after, use.sub(operand, last), result)


def _split(params: str) -> list[str]:
    """Splits at commas outside of brackets."""
    parts, depth = [""], 0
    for c in params:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip()]
