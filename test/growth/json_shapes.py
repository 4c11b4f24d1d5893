"""Shapes in the JSON form of values, whose nodes refer to each other by number and so can share much."""

from shapes import Shapes
from text import commas

SHAPES = Shapes("json")

NODE = '{"node": 0}'


def document(nodes: list[str]) -> str:
    return f'{{"tenon": 1, "root": null, "nodes": [{", ".join(nodes)}]}}'


@SHAPES.register(json=2048)
def records_that_share_an_array(n: int) -> str:
    one = '{"$type": "graph.Pattern"}'
    patterns = f'{{"array": [{commas(3 * n, lambda i: NODE)}]}}'
    return document([one, patterns, *['{"$type": "graph.Pattern", "fields": {"node": 1}}'] * n])


@SHAPES.register(json=2048)
def records_that_share_a_map(n: int) -> str:
    one = '{"$type": "graph.AdtDefinition", "name": "t"}'
    definitions = '{"map": [' + commas(3 * n, lambda i: f'["t{i}", {NODE}]') + "]}"
    return document([one, definitions, *['{"$type": "graph.Module", "adts": {"node": 1}}'] * n])
