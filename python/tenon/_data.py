"""Values of a program's data types in Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _tenon


class DataValue:
    """A value of a program's data type: what a constructor made of its fields. It doesn't change.

    Each constructor is a class, ``exe.types.NAME``, whose instances compare by content and can be taken apart by
    ``match``. The class of a constructor without fields stands for its one value.

    >>> exe = tenon.compile(tenon.ir.parse('''
    ... type tree { Leaf, Node(tree, i64, tree) }
    ... fn @insert(%t: tree, %x: i64) -> tree {
    ...   match %t {
    ...     Leaf => { Node(Leaf, %x, Leaf) }
    ...     Node(%l, %y, %r) => {
    ...       %less = less(%x, %y)
    ...       if %less {
    ...         %new = @insert(%l, %x)
    ...         Node(%new, %y, %r)
    ...       } else {
    ...         %new = @insert(%r, %x)
    ...         Node(%l, %y, %new)
    ...       }
    ...     }
    ...   }
    ... }
    ... '''))
    >>> Leaf, Node = exe.types.Leaf, exe.types.Node
    >>> tree = exe["insert"](Node(Leaf, 2, Leaf), 1)
    >>> tree
    Node(Node(Leaf, 1, Leaf), 2, Leaf)
    >>> tree == Node(Node(Leaf, 1, Leaf), 2, Leaf)
    True
    >>> def total(t):
    ...     match t:
    ...         case Leaf():
    ...             return 0
    ...         case Node(left, x, right):
    ...             return total(left) + x + total(right)
    >>> total(tree)
    3
    >>> isinstance(tree, exe.types.tree), tree.fields[1]
    (True, 2)
    """

    __slots__ = ("_fields", "_held")
    # Of a constructor's class. A data type's own class has none.
    _arity: int | None = None
    _constructor = ""
    _tag = -1
    _definition = ""
    _plain: tuple[tuple[int, str], ...] = ()  # the fields whose values can be checked at once, and their types
    # Either of these is None: the fields, or a cell that nobody has looked into.
    _fields: tuple[Any, ...] | None
    _held: _tenon.HeldCell | None

    def __new__(cls, *fields: Any) -> DataValue:
        if cls._arity is None:
            raise TypeError(f"{cls.__name__} has no constructor of its own; its constructors are {cls._definition}")
        if len(fields) != cls._arity:
            raise TypeError(f"{cls._constructor} has {_number(cls._arity, 'field')}, not {len(fields)}: {cls._definition}")
        if cls._arity == 0:
            return cls.__dict__["_value"]
        fields = tuple(_instance(field) for field in fields)
        for index, wanted in cls._plain:
            _check_field(cls, index, fields[index], wanted)
        return _made(cls, fields)

    @property
    def fields(self) -> tuple[Any, ...]:
        """The fields, in order; ``value._0`` is the first."""
        fields = self._fields
        return _tenon.open_cell(self) if fields is None else fields

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} doesn't change: make another one")

    def __eq__(self, other: object) -> bool:
        other = _instance(other)
        return _equal(self, other) if isinstance(other, DataValue) else NotImplemented

    def __hash__(self) -> int:
        if type(self)._arity == 0:
            return hash(type(self))  # which equals it
        hashes: list[int] = []
        pending: list[Any] = [self]
        while pending:
            value = pending.pop()
            if isinstance(value, DataValue):
                hashes.append(hash(type(value)))
                pending += value.fields
            elif type(value) is tuple:
                hashes.append(len(value))
                pending += value
            else:
                hashes.append(hash(value))
        return hash(tuple(hashes))

    def __repr__(self) -> str:
        out: list[str] = []
        pending: list[Any] = [self]
        around: dict[int, None] = {}  # the ids of the lists that are being shown, in order
        while pending:
            value = pending.pop()
            if isinstance(value, _Text):
                out.append(value)
                if isinstance(value, _EndOfList):
                    around.popitem()
            elif isinstance(value, DataValue):
                out.append(type(value)._constructor)
                if value.fields:
                    _push(pending, "(", value.fields, ")")
            elif type(value) is list and id(value) in around:
                out.append("[...]")
            elif type(value) is list:
                around[id(value)] = None
                _push(pending, "[", value, _EndOfList("]"))
            elif type(value) is tuple:
                _push(pending, "(", value, ",)" if len(value) == 1 else ")")
            elif isinstance(value, bool):
                out.append("true" if value else "false")
            else:
                out.append(repr(value))
        return "".join(out)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (_flat(self),)

    def __copy__(self) -> DataValue:
        return self


class _Text(str):
    __slots__ = ()


class _EndOfList(_Text):
    __slots__ = ()


def _push(pending: list[Any], before: str, values: Any, after: str) -> None:
    pending.append(after if isinstance(after, _Text) else _Text(after))
    for i in range(len(values) - 1, -1, -1):
        pending.append(values[i])
        if i > 0:
            pending.append(_Text(", "))
    pending.append(_Text(before))


def _made(cls: type[DataValue], fields: tuple[Any, ...]) -> DataValue:
    value = object.__new__(cls)
    object.__setattr__(value, "_fields", fields)
    object.__setattr__(value, "_held", None)
    return value


def _instance(value: Any) -> Any:
    """The value that the class of a constructor without fields stands for; any other value itself."""
    if isinstance(value, type) and issubclass(value, DataValue) and value._arity == 0:
        return value.__dict__["_value"]
    return value


_PYTHON_TYPES = {"bool": bool, "i64": int, "f64": float}  # which need no closer look
_scalars: _tenon.ModuleTypes | None = None


def _check_field(cls: type[DataValue], index: int, field: Any, wanted: str) -> None:
    """What type parameters and other data types stand for is checked where the value is used."""
    global _scalars
    if type(field) is _PYTHON_TYPES.get(wanted):
        return
    family = cls.__mro__[1]
    if wanted.split("[")[0] == family.__name__:
        if isinstance(field, family):
            return
    else:
        if _scalars is None:
            _scalars = _tenon.ModuleTypes([])
        try:
            _scalars.value((field,), f"({wanted},)")
            return
        except TypeError:
            pass
    shown = repr(field)
    if len(shown) > 80:
        shown = f"an object of type '{type(field).__name__}'"
    raise TypeError(f"a value of type {wanted} is expected for field {index} of {cls._constructor}, not {shown}: {cls._definition}")


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _equal(a: Any, b: Any) -> bool:
    pending = [(a, b)]
    while pending:
        a, b = pending.pop()
        a, b = _instance(a), _instance(b)
        if a is b:
            continue
        if isinstance(a, DataValue) or isinstance(b, DataValue):
            if type(a) is not type(b):
                return False
            pending += zip(a.fields, b.fields)
        elif type(a) in (list, tuple) and type(a) is type(b):
            if len(a) != len(b):
                return False
            pending += zip(a, b)
        elif hasattr(a, "__array__") or hasattr(b, "__array__"):
            import numpy as np

            if not np.array_equal(a, b):
                return False
        elif a != b:
            return False
    return True


def _flat(value: Any) -> list[Any]:
    """The value without nesting: each container follows its items, as (kind, ..., count); other
    values are ("value", value)."""
    out: list[Any] = []
    pending: list[Any] = [value]
    while pending:
        value = _instance(pending.pop())
        if isinstance(value, DataValue):
            cls = type(value)
            out.append(("data", cls._definition, cls._tag, len(value.fields)))
            pending += value.fields
        elif type(value) in (list, tuple):
            out.append((type(value).__name__, len(value)))
            pending += value
        else:
            out.append(("value", value))
    out.reverse()
    return out


def _unpickled(flat: list[Any]) -> Any:
    done: list[Any] = []

    def items(count: int) -> list[Any]:
        taken = done[len(done) - count :]
        del done[len(done) - count :]
        return taken

    for kind, *rest in flat:
        if kind == "data":
            definition, tag, count = rest
            classes = _known.get(definition) or _tenon.classes_of(definition)
            done.append(classes[tag](*items(count)))
        elif kind == "list":
            done.append(items(rest[0]))
        elif kind == "tuple":
            done.append(tuple(items(rest[0])))
        else:
            done.append(rest[0])
    return done[0]


def _field(index: int) -> property:
    def get(self: DataValue) -> Any:
        return self.fields[index]

    return property(get, doc=f"Field {index}.")


_known: dict[str, list[type[DataValue]]] = {}


def _classes_of(definition: str, name: str, constructors: list[tuple[str, list[str], list[int]]]) -> list[type[DataValue]]:
    """The classes of a data type's constructors, by tag. Equal definitions have the same classes. A constructor has its
    name, its fields' types, and the places of those that are checked at once."""
    if definition in _known:
        return _known[definition]
    module = "tenon.types"
    base = type(name, (DataValue,), {"__slots__": (), "__module__": module, "_definition": definition})
    base.__doc__ = f"The values of ``{definition}``."
    classes: list[type[DataValue]] = []
    for tag, (constructor, fields, plain) in enumerate(constructors):
        names = tuple(f"_{i}" for i in range(len(fields)))
        members: dict[str, Any] = {field: _field(i) for i, field in enumerate(names)}
        members |= {
            "__slots__": (),
            "__module__": module,
            "__doc__": f"``{constructor}({', '.join(fields)})`` of ``{definition}``." if fields else f"``{constructor}`` of ``{definition}``.",
            "__match_args__": names,
            "_arity": len(fields),
            "_plain": tuple((i, fields[i]) for i in plain),
            "_constructor": constructor,
            "_tag": tag,
        }
        made = type(constructor, (base,), members)
        if not fields:
            made._value = _made(made, ())  # type: ignore[attr-defined]
        classes.append(made)
    return _known.setdefault(definition, classes)


class Types:
    """The data types of a program: the classes of their constructors, and those of the types themselves, by name.

    >>> exe = tenon.compile(tenon.ir.parse('''
    ... type color { Red, Green, Mixed(color, color) }
    ... fn @next(%c: color) -> color {
    ...   match %c {
    ...     Red => { Green }
    ...     Green => { Mixed(Red, Green) }
    ...     Mixed(_, %b) => { %b }
    ...   }
    ... }
    ... '''))
    >>> exe.types
    <tenon.Types: color { Red, Green, Mixed(color, color) }>
    >>> exe["next"](exe.types.Red) == exe.types.Green
    True
    >>> exe["next"](exe.types.Green)
    Mixed(Red, Green)
    """

    def __init__(self, families: dict[str, tuple[str, list[type]]]) -> None:
        self._definitions = [definition for definition, _ in families.values()]
        self._classes: dict[str, type] = {name: classes[0].__mro__[1] for name, (_, classes) in families.items()}
        for _, classes in families.values():
            self._classes |= {cls.__name__: cls for cls in classes}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._classes:
            raise AttributeError(f"the program has no constructor or data type '{name}'; it has {'; '.join(self._definitions) or 'none'}")
        return self._classes[name]

    def __getitem__(self, name: str) -> Any:
        """The same for names that are words of Python: ``exe.types["None"]``."""
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._classes})

    def __repr__(self) -> str:
        return f"<tenon.Types: {'; '.join(self._definitions) or 'none'}>"
