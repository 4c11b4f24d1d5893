"""Functions that compute a model's own operators."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from . import _tenon


def register_op(
    name: str,
    signature: str | Callable[[list[Any], dict[str, Any]], Any],
    function: Callable[..., Any] | None = None,
    *,
    effect: str = "pure",
    override: bool = False,
) -> Any:
    """Binds an operator of another domain than ONNX's, ``"com.acme:Scale"``, to a Python function; also as a decorator.

    ``signature`` states the types of a node's inputs and outputs in the language's notation. Or it is a function: called
    with the types of a node's inputs (None for one that is left out) and its attributes, it returns the signature or
    only the result's type, as text or as a type.

    The function gets a node's inputs, and its attributes by name as keyword-only parameters, whose defaults are those of
    attributes that a node leaves out; without keyword-only parameters, it gets the attributes' values after the inputs,
    in the order of their names. It returns an array, or a tuple for several outputs. With ``effect="ordered"``, calls
    are neither dropped nor joined. Compile models with the operator
    after this call, and load compiled files after it, too: they refer to the function by name.

    >>> @tenon.register_op("com.acme:Scale", "(tensor[n, m; f32]) -> tensor[n, m; f32]")
    ... def scale(x, *, factor=2.0):
    ...     return np.asarray(x) * np.float32(factor)

    docs/custom-operators.md describes signatures, and functions in C and C++.
    """
    domain, _, operator = name.rpartition(":")
    if not domain or not operator:
        raise ValueError(f"an operator's name has its domain: 'com.acme:Scale', not {name!r}")

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        attributes = [p for p in _parameters(f) if p.kind == p.KEYWORD_ONLY]
        names = [p.name for p in attributes]
        promise = [] if effect == "pure" else [f'effect = "{effect}"']
        listed = ", ".join([*map(_listed, attributes), *promise])
        if isinstance(signature, str):
            _with_attributes(signature, listed, names)  # so that a clash is an error here

        def compute(*arguments: Any) -> Any:
            inputs = len(arguments) - len(names)
            return f(*arguments[:inputs], **dict(zip(names, arguments[inputs:])))

        def state(types: Any, attributes: Any) -> Any:
            stated = signature(list(types), dict(attributes)) if callable(signature) else signature
            return _with_attributes(stated, listed, names) if listed else stated

        _tenon.register(name, compute if names else f, override)
        _tenon.register(f"{name}.signature", state, override)
        return f

    return register if function is None else register(function)


def _parameters(f: Callable[..., Any]) -> Iterable[inspect.Parameter]:
    try:
        return inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return ()


def _listed(parameter: inspect.Parameter) -> str:
    """An attribute in a signature's text."""
    default = parameter.default
    if default is parameter.empty:
        return parameter.name
    if not isinstance(default, (bool, int, float, str)) or isinstance(default, str) and '"' in default:
        raise TypeError(
            f"the default of '{parameter.name}' can't be an attribute's: a number, True, False or text, not {default!r}"
        )
    text = f'"{default}"' if isinstance(default, str) else json.dumps(default)
    return f"{parameter.name} = {text}"


def _with_attributes(stated: Any, listed: str, names: list[str]) -> str:
    """A signature or a result's type as a signature that lists the attributes; those of these names are the function's."""
    text = str(stated).strip()
    if not text.startswith("(") or "->" not in text:
        return f"(...; {listed}) -> {text}"
    depth, attributes = 0, None  # where the signature's own begin
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == ";" and depth == 1 and attributes is None:
            attributes = i + 1
        if depth == 0:
            if attributes is not None and names:
                raise TypeError(
                    f"the signature lists attributes ({text[attributes:i].strip()}), and so does the function with its "
                    f"keyword-only parameters ({', '.join(names)}): leave them out of the signature"
                )
            return f"{text[:i]}{';' if attributes is None else ','} {listed}{text[i:]}"
    return text


def one_or_several(option: str, given: Any) -> list[Any]:
    """The paths or names of an option that takes several: one is a list of itself."""
    if isinstance(given, (str, os.PathLike)):
        return [given]
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{option} takes a str or path, or a list of these, not {given!r}")
    return list(given)


def load_libraries(files: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Loads libraries of functions, and returns the names that compiled files have for them."""
    names = []
    for file in files:
        folder, base = os.path.split(os.fspath(file))
        name = base.removeprefix("libtenon_").removesuffix(".so")
        if base != f"libtenon_{name}.so":
            raise ValueError(f"a library is named libtenon_NAME.so, as files refer to it by NAME; not {base}")
        _tenon.load_library(f"tenon_{name}", [folder or "."])
        names.append(name)
    return names
