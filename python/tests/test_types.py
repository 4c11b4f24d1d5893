"""tenon.register_type."""

import dataclasses
import gc
import weakref

import pytest

import tenon


@tenon.register_type("test.Point")
@dataclasses.dataclass
class Point:
    x: float
    label: str


PROGRAM = """
fn @main(%p: opaque["test.Point"], %n: i64) -> (opaque["test.Point"], i64) {
  %y = packed "test.weight"(%p, %n) -> i64
  (%p, %y)
}
"""


def test_instances_pass_through_programs():
    seen = []

    @tenon.register_func("test.weight", override=True)
    def weight(point, n):
        seen.append(point)
        return n + int(point.x)

    exe = tenon.compile(tenon.ir.parse(PROGRAM))
    point = Point(3.0, "here")
    same, total = exe(point, 4)
    assert same is point and seen[0] is point and total == 7


def test_their_fields_are_seen_from_outside():
    text = tenon.Function(lambda p: repr(p))
    assert text(Point(3.0, "here")) == "Point(x=3.0, label='here')"


def test_instances_are_released():
    point = Point(1.0, "a")
    gone = weakref.ref(point)
    tenon.Function(lambda p: None)(point)
    del point
    gc.collect()
    assert gone() is None


def test_fields_are_annotations_or_given():
    @tenon.register_type("test.Annotated")
    class Annotated:
        a: int = 1

    @tenon.register_type("test.Given", fields=["b"])
    class Given:
        def __init__(self):
            self.b = 2

    same = tenon.Function(lambda v: v)
    for instance in (Annotated(), Given()):
        assert same(instance) is instance


def test_a_key_has_one_list_of_fields():
    with pytest.raises(tenon.UsageError, match='the type "test.Point" is registered with other fields'):
        tenon.register_type("test.Point", fields=["z"])(type("Other", (), {}))
    with pytest.raises(tenon.UsageError, match="needs a key"):
        tenon.register_type("")(type("Other", (), {}))
    with pytest.raises(tenon.UsageError, match="graph.Module.* needs a key of its own"):
        tenon.register_type("graph.Module")(type("Other", (), {}))


@tenon.register_type("test.Link")
@dataclasses.dataclass
class Link:
    next: object


def test_instances_that_nest_too_deep_are_an_error():
    same = tenon.Function(lambda v: v)
    cycle = Link(None)
    cycle.next = cycle
    chain = None
    for _ in range(30000):
        chain = Link(chain)
    for nested in (cycle, chain):
        with pytest.raises(RecursionError):
            same(nested)


def test_a_type_may_be_registered_while_an_instance_is_converted():
    class Registering:
        @property
        def first(self):
            tenon.register_type("test.Registered", fields=["other"])(Registering)
            return 1

        second = other = 2

    tenon.register_type("test.Registering", fields=["first", "second"])(Registering)
    instance = Registering()
    assert tenon.Function(lambda v: v)(instance) is instance


def test_another_type_is_refused():
    identity = tenon.compile(tenon.ir.parse('fn @main(%p: opaque["test.Point"]) -> opaque["test.Point"] { %p }'))
    for other in (3, "text", None, tenon.Tensor(memoryview(b"a"))):
        with pytest.raises(tenon.UsageError, match="input 'p' does not fit") as caught:
            identity(other)
        assert caught.value.expected == 'opaque["test.Point"]'
    tenon.register_func("test.made", lambda: 3, override=True)
    made = tenon.compile(tenon.ir.parse('fn @main() -> opaque["test.Point"] { packed "test.made"() -> opaque["test.Point"] }'))
    with pytest.raises(tenon.ExecutionError, match="doesn't match its signature"):
        made()
