"""Values of a program's data types in Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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
        done: list[int] = []  # of what no container holds yet
        known: dict[Any, int] = {}
        kept: list[Any] = []  # so that what the keys name stays
        pending: list[Any] = [self]
        while pending:
            value = pending.pop()
            if type(value) is _End:
                kind, count = value.entry
                whole = hash((kind, *done[len(done) - count :]))
                del done[len(done) - count :]
                done.append(whole)
                known[value.key] = whole
            elif isinstance(value, DataValue) and type(value)._arity == 0:
                done.append(hash(type(value)))
            elif isinstance(value, DataValue) or type(value) is tuple:
                key, keeps_it = _identity(value)
                if key in known:
                    done.append(known[key])
                    continue
                kept.append(keeps_it)
                items = value.fields if isinstance(value, DataValue) else value
                pending.append(_End(key, (type(value), len(items))))
                pending += reversed(items)
            else:
                done.append(hash(value))
        return done[0]

    def __repr__(self) -> str:
        text = _text(self, _MOST_SHOWN)
        return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (_flat(self),)

    def __copy__(self) -> DataValue:
        return self


# Of a value's text, as of the C interface's: a small value may have more paths than there is memory for their text.
_MOST_SHOWN = 1 << 16


class _Text(str):
    __slots__ = ()


class _EndOfList(_Text):
    __slots__ = ()


def _text(value: Any, most: int | None = None) -> str:
    """As repr() shows it, without recursion; where that is longer than `most`, at least as much of its beginning."""
    out: list[str] = []
    pending: list[Any] = [value]
    around: dict[int, None] = {}  # the ids of the lists that are being shown, in order
    while pending and (most is None or len(out) <= most):
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


def _brief(value: Any) -> str:
    """The value in an error."""
    value = _instance(value)
    most = 80
    shown = _text(value, most) if isinstance(value, (DataValue, list, tuple)) else repr(value)
    return shown if len(shown) <= most else f"an object of type '{type(value).__name__}'"


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
    raise TypeError(f"a value of type {wanted} is expected for field {index} of {cls._constructor}, not {_brief(field)}: {cls._definition}")


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _identity(value: Any) -> tuple[Any, Any]:
    """What a container is, and what must be kept so that nothing else is it: a program's cell is the same in all
    instances that nobody has looked into."""
    held = value._held if isinstance(value, DataValue) else None
    return (id(value), value) if held is None else (held.key, held)


def _equal(a: Any, b: Any) -> bool:
    pending = [(a, b)]
    compared: dict[tuple[Any, Any], tuple[Any, Any]] = {}  # by what they are: values may share parts
    while pending:
        a, b = pending.pop()
        a, b = _instance(a), _instance(b)
        if a is b:
            continue
        if isinstance(a, DataValue) or isinstance(b, DataValue):
            if type(a) is not type(b):
                return False
            (of_a, kept_a), (of_b, kept_b) = _identity(a), _identity(b)
            if (of_a, of_b) not in compared:
                compared[of_a, of_b] = (kept_a, kept_b)
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


class _End(NamedTuple):
    """Of the items of a container."""

    key: Any
    entry: tuple[Any, ...]


def _flat(value: Any) -> list[Any]:
    """The value without nesting: each container follows its items, as (kind, ..., count). A container that another one
    holds, too, is there once, and then ("again", its place). Other values are ("value", value)."""
    out: list[Any] = []
    places: dict[Any, int] = {}  # of containers; -1 before their end
    kept: list[Any] = []  # so that what the keys name stays
    pending: list[Any] = [value]
    while pending:
        value = pending.pop()
        if type(value) is _End:
            places[value.key] = len(out)
            out.append(value.entry)
            continue
        value = _instance(value)
        if not isinstance(value, DataValue) and type(value) not in (list, tuple):
            out.append(("value", value))
            continue
        key, keeps_it = _identity(value)
        if (place := places.get(key)) is not None:
            if place < 0:
                raise ValueError(f"an object of type '{type(value).__name__}' contains itself, which no value of a program does")
            out.append(("again", place))
            continue
        places[key] = -1
        kept.append(keeps_it)
        if isinstance(value, DataValue):
            items = value.fields
            entry: tuple[Any, ...] = ("data", type(value)._definition, type(value)._tag, len(items))
        else:
            items = tuple(value)
            entry = (type(value).__name__, len(items))
        pending.append(_End(key, entry))
        pending += reversed(items)
    return out


def _unpickled(flat: list[Any]) -> Any:
    done: list[Any] = []  # what no container holds yet
    made: list[Any] = []  # of each entry

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
        elif kind == "again":
            done.append(made[rest[0]])
        else:
            done.append(rest[0])
        made.append(done[-1])
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
