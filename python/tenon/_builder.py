"""Building modules from Python."""

from __future__ import annotations

import builtins
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _compiler
from ._tenon import Object

_call = _compiler.call


class Builder:
    """Builds a module, one function after the other.

    Operators are methods: ``b.relu(x)`` calls ``relu``, with attributes by keyword (docs/operators.md). Operands are
    what these return, and numbers, shapes, arrays and tensors, which become constants. Where the type is known (an
    argument, a field, a loop's variable), a number becomes a scalar of that type and a Python tuple a tuple. Types and
    sizes are written as in the language: ``"tensor[n, 4; f32]"``, ``"2*n"``.

    >>> b = tenon.ir.Builder()
    >>> with b.function("main", x="tensor[n, 4; f32]") as x:
    ...     y = b.reshape(x, shape=["2*n", 2])
    ...     b.result(b.add(y, y))
    >>> exe = tenon.compile(b.module())
    >>> exe(np.ones((1, 4), "float32")).tolist()
    [[2.0, 2.0], [2.0, 2.0]]

    A function may call the functions built before it. One that calls itself, or is called before it is built, is declared first:

    >>> b = tenon.ir.Builder()
    >>> b.declare("count", "fn(i64) -> i64")
    >>> with b.function("count", n="i64") as n:
    ...     b.result(b.if_(b.less(n, 1), lambda: 0, lambda: b.add(b.call("count", b.sub(n, 1)), 1)))
    >>> b.module().interpret("count", 7)
    7

    Data types are stated in the language, and their values made and matched by name:

    >>> b = tenon.ir.Builder()
    >>> b.define("type tree { Leaf, Node(tree, i64, tree) }")
    >>> b.declare("total", "fn(tree) -> i64")
    >>> with b.function("total", t="tree") as t:
    ...     b.result(b.match(t, {
    ...         "Leaf": lambda: 0,
    ...         "Node(l, x, r)": lambda l, x, r: b.add(b.add(b.call("total", l), x), b.call("total", r)),
    ...     }))
    >>> with b.function("main", x="i64") as x:
    ...     b.result(b.call("total", b.construct("Node", b.construct("Leaf"), x, b.construct("Leaf"))))
    >>> b.module().interpret("main", 7)
    7

    Functions may be polymorphic, written in the language, or imported:

    >>> b = tenon.ir.Builder()
    >>> b.import_("std/list.tn", "l")
    >>> b.define("fn @twice(%x: i64) -> i64 { mul(%x, 2) }")
    >>> with b.function("last", type_params=["T"], xs="list[T]", otherwise="T") as (xs, otherwise):
    ...     b.result(b.match(b.call("l.reverse", xs), {"Nil": lambda: otherwise, "Cons(x, _)": lambda x: x}))
    >>> with b.function("main", xs="list[i64]") as xs:
    ...     b.result(b.call("last", b.call("l.map", b.function_value("twice"), xs), 0))
    >>> b.module().interpret("main", [1, 2, 3])
    6
    """

    def __init__(self) -> None:
        self._builder: Object = _call("tenon.build_begin")
        self._in_function = False
        self._result: Any = None

    def module(self) -> Any:
        """The module of the functions that were built or defined so far, checked."""
        return _call("tenon.build_module", self._builder)

    def define(self, text: str) -> None:
        """Adds what a text in the language defines, data types, functions and kernels:
        ``b.define("type tree[T] { Leaf, Node(tree[T], T, tree[T]) }")``."""
        _call("tenon.build_define", self._builder, text)

    def import_(
        self,
        file: str,
        name: str,
        *,
        import_path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        """Makes the data types and functions of a file known: after ``b.import_("std/list.tn", "l")``,
        ``b.call("l.map", f, xs)`` calls its function ``map``. Other files lie in the current folder, in one of the folders of
        ``import_path``, or below them."""
        _call("tenon.build_import", self._builder, file, name, _compiler.import_path_of(import_path))

    def declare(self, name: str, type: str | Object) -> None:
        """Declares a function that is built later with this type, so that it and others can call it:
        ``b.declare("length", "fn[T](list[T]) -> i64")``."""
        _call("tenon.build_declare", self._builder, name, type)

    @contextlib.contextmanager
    def function(
        self,
        name: str,
        params: Mapping[str, str | Object] | None = None,
        /,
        *,
        type_params: Sequence[str] = (),
        export: bool = True,
        inline: bool = True,
        results: Sequence[str] | None = None,
        **more: str | Object,
    ) -> Iterator[Any]:
        """A function with these parameters, as a context that gives its operands: one, or a tuple of several.

        Parameters are keyword arguments, or a dict for other names; ``type_params`` are what their types may name beside
        the language's. ``results`` names the results. Without ``export``, hosts can't call it; without ``inline``, its calls
        stay calls.
        """
        if self._in_function:
            raise ValueError("a function is being built: end its block first")
        self._in_function = True
        self._result = None
        try:
            for t in type_params:
                _call("tenon.build_type_param", self._builder, t)
            types = {**(params or {}), **more}
            operands = tuple(_call("tenon.build_param", self._builder, n, t) for n, t in types.items())
            yield operands[0] if len(operands) == 1 else operands
            if self._result is None:
                raise ValueError(f"'{name}' has no result: call b.result(...) at the end of its block")
            attributes: dict[str, Any] = {k: v for k, v in {"export": export, "inline": inline}.items() if not v}
            if results is not None:
                attributes["results"] = list(results)
            _call("tenon.build_finish", self._builder, name, self._result[0], attributes)
        finally:
            self._in_function = False
            _call("tenon.build_discard", self._builder)

    def result(self, *values: Any) -> None:
        """Sets the result of the function: one operand, or a tuple of several."""
        if self._result is not None:
            raise ValueError("the function has its result already: several are b.result(x, y)")
        self._result = (values[0] if len(values) == 1 else values,)

    def op(self, name: str, /, *operands: Any, **attributes: Any) -> Object:
        """Calls an operator; None leaves out an optional operand. A float beside an f32 operand is f32."""
        return _call("tenon.build_op", self._current, name, list(operands), attributes)

    def __getattr__(self, name: str) -> Callable[..., Object]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *operands, **attributes: self.op(name, *operands, **attributes)

    def at(self, node: str) -> None:
        """Sets the source node of what follows, for errors and profiles."""
        _call("tenon.build_at", self._current, node)

    def construct(self, constructor: str, /, *fields: Any, type: str | Object | None = None) -> Object:
        """A value of a data type. ``type`` is needed where the fields don't determine its type arguments:
        ``b.construct("Nil", type="list[i64]")``."""
        return _call("tenon.build_construct", self._current, constructor, list(fields), type)

    def match(self, value: Any, arms: Mapping[str, Callable[..., Any]]) -> Object:
        """A match: the first arm whose pattern fits. An arm gets the variables of its pattern, in order, builds its result
        and returns it. Patterns are ``"Node(l, x, _)"``, ``"(a, None)"``, ``"3"``, ``"true"``, a variable's name, or ``"_"``.
        """

        functions = [_of_list(arm) for arm in arms.values()]
        return _call("tenon.build_match", self._current, value, list(arms), functions)

    def function_value(self, function: str, *arguments: Any, type_arguments: Sequence[str | Object] = ()) -> Object:
        """A function of the module as a value, with its first arguments."""
        return _call("tenon.build_closure", self._current, function, list(arguments), list(type_arguments))

    def array(self, element: str | Object, *elements: Any) -> Object:
        """An array of elements of that type. Words such as ``array_get`` are methods: ``b.array_get(a, 0)``."""
        return _call("tenon.build_array", self._current, element, list(elements))

    def size(self, size: int | str) -> Object:
        """A size as an i64: ``b.size("2*n")``."""
        return _call("tenon.build_size", self._current, size)

    def scalar(self, value: float | bool, dtype: str) -> Object:
        """A scalar constant: ``b.scalar(0.5, "f32")``."""
        if dtype == "u64" and isinstance(value, int) and not isinstance(value, bool):
            if not 0 <= value < 2**64:
                raise OverflowError(f"{value} doesn't fit u64, which goes from 0 to {2**64 - 1}")
            value = value - 2**64 if value >= 2**63 else value  # its bits
        return _call("tenon.build_scalar", dtype, value)

    def constant(self, value: Any) -> Object:
        """A constant: a tensor or array, number, bool, shape or str."""
        return _call("tenon.build_constant", value)

    def call(
        self, function: str | Object, *operands: Any, type_arguments: Sequence[str | Object] = ()
    ) -> Object:
        """Calls a function of the module by name, or a function value. Type arguments are needed where the operands
        don't determine those of a function: ``b.call("none", type_arguments=["i64"])``.
        """
        if isinstance(function, str):
            return _call("tenon.build_call", self._current, function, list(operands), list(type_arguments))
        if type_arguments:
            raise TypeError("a function value has no type parameters; type_arguments are for a function's name")
        return _call("tenon.build_call_closure", self._current, function, list(operands))

    def packed(self, name: str, *operands: Any, result: str | Object) -> Object:
        """Calls a registered function whose result has the type ``result``."""
        return _call("tenon.build_call_packed", self._current, name, list(operands), result)

    def tuple(self, *fields: Any) -> Object:
        return _call("tenon.build_tuple", self._current, list(fields))

    def field(self, tuple: Object, index: int) -> Object:
        """A field of a tuple, counted from 0."""
        return _call("tenon.build_field", self._current, tuple, index)

    def match_shape(self, value: Object, sizes: Sequence[int | str]) -> Object:
        """Checks a tensor's sizes and binds the new symbols among them."""
        return _call("tenon.build_match_shape", self._current, value, list(sizes))

    def match_elements(self, value: Any, sizes: Sequence[int | str]) -> Object:
        """The same for the elements of a small integer tensor, a shape or an integer."""
        return _call("tenon.build_match_elements", self._current, value, list(sizes))

    def check(self, kind: str, left: int | str, right: int | str, message: str) -> None:
        """Checks two sizes at run time; ``kind`` is "equal", "less_equal" or "broadcast"."""
        _call("tenon.build_check", self._current, kind, left, right, message)

    def if_(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Object:
        """An if; ``then`` and ``otherwise`` build the arms and return their results."""
        return _call("tenon.build_if", self._current, condition, then, otherwise)

    def loop(
        self,
        init: Mapping[str, builtins.tuple[str | Object, Any]],
        condition: Callable[..., Any],
        body: Callable[..., Any],
    ) -> Object:
        """A loop over variables: ``init`` maps their names to type and first value.

        ``condition(*variables)`` builds a boolean, ``body(*variables)`` the next value, or a tuple of the next values.
        """

        types, values = zip(*init.values())
        return _call(
            "tenon.build_loop",
            self._current,
            list(init),
            list(types),
            list(values),
            _of_list(condition),
            _of_list(body),
        )

    def closure(
        self,
        params: Mapping[str, str | Object],
        result: str | Object,
        body: Callable[..., Any],
        *,
        self_name: str = "",
    ) -> Object:
        """A function literal: ``body(*parameters)`` builds it and returns its result. It may use the operands of the
        function around it. With ``self_name``, the body also gets the literal itself, as its last argument.

        >>> b = tenon.ir.Builder()
        >>> with b.function("main", x="i64") as x:
        ...     twice = b.closure({"y": "i64"}, "i64", lambda y: b.add(b.add(y, y), x))
        ...     b.result(b.call(twice, 10))
        >>> "fn(" in str(b.module())
        True
        """

        names, types = list(params), list(params.values())
        return _call("tenon.build_function", self._current, self_name, names, types, result, _of_list(body))

    def node(self, type_key: str, /, **fields: Any) -> Any:
        """An object of a type that has fields: ``b.node("graph.Tuple", fields=[x, y])``."""
        return _call("tenon.build_node", type_key, fields)

    def bind(self, node: Any, name: str = "") -> Object:
        """Binds a right-hand side that ``node`` made, under a name in the module's text."""
        return _call("tenon.build_bind", self._current, node, name)

    @property
    def _current(self) -> Object:
        if not self._in_function:
            raise ValueError("no function is being built: use `with b.function(name, ...)`")
        return self._builder


def _of_list(function: Callable[..., Any]) -> Callable[[Sequence[Object]], Any]:
    """The function as one of a list of its arguments."""
    return lambda arguments: function(*arguments)
