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
