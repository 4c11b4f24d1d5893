"""Text with repetitions, for the graph IR and the assembly."""

from collections.abc import Callable

Text = Callable[[int], str]  # from an index


def lines(n: int, line: Text) -> str:
    return "".join(line(i) for i in range(n))


def commas(n: int, item: Text) -> str:
    return ", ".join(item(i) for i in range(n))


# ---- graph IR; names include their sigil ----


def function(parameters: str, result: str, body: str, name: str = "main") -> str:
    return f"fn @{name}({parameters}) -> {result} {{\n{body}}}\n"


def values(n: int, name: str, value: Text) -> str:
    """Bindings of {name}0 to {name}{n-1}."""
    return lines(n, lambda i: f"  {name}{i} = {value(i)}\n")


def links(n: int, value: Text, name: str = "%v", before: Text = lambda i: "") -> str:
    """Bindings of {name}1 to {name}{n}, where `value(i)` uses {name}{i}. `before(i)` is the lines ahead of each."""
    return lines(n, lambda i: f"{before(i)}  {name}{i + 1} = {value(i)}\n")


def chain_of(n: int, value: Text, name: str = "%v", before: Text = lambda i: "") -> str:
    """The body of a function: `links`, and the last of them as its result."""
    return links(n, value, name, before) + f"  {name}{n}\n"


def fold(n: int, first: str, name: str, operator: str = "add", before: Text = lambda i: "") -> str:
    """The end of a body: applies the operator to `first` and {name}0, to that and {name}1, and so on."""
    return f"  %s0 = {first}\n" + chain_of(n, lambda i: f"{operator}(%s{i}, {name}{i})", "%s", before)


def reversed_fold(n: int, first: str, name: str, operator: str = "add") -> str:
    """Like `fold`, from {name}{n-1} down to {name}0."""
    steps = lines(n, lambda i: f"  %s{n - 1 - i} = {operator}(%s{n - i}, {name}{n - 1 - i})\n")
    return f"  %s{n} = {first}\n{steps}  %s0\n"
