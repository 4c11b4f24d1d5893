"""What the engines compute: weights, sentences and trees, all seeded, and the sizes that published tables use."""

import random

import numpy as np

INPUT, LSTM_SIZES, TREE_HIDDEN = 300, (512, 64), 150
SENTENCES, MEAN_WORDS = 8, 19  # the Stanford Sentiment Treebank has about 19 words a sentence
DEGENERATE_WORDS = 100
threads = 1  # that every engine may use

# A tree is a word's index in its sentence, or a pair of trees.
Tree = int | tuple["Tree", "Tree"]


def weights(seed: int, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Uniform as PyTorch initialises them; products are x @ w."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.uniform(-1, 1, shape).astype("float32") / np.float32(np.sqrt(shape[0]))
        for name, shape in shapes.items()
    }


def lstm_weights(hidden: int) -> dict[str, np.ndarray]:
    """Of two layers; gates are in PyTorch's order: input, forget, cell, output."""
    shapes = {}
    for layer, inputs in enumerate((INPUT, hidden)):
        shapes[f"w_{layer}"] = (inputs, 4 * hidden)
        shapes[f"r_{layer}"] = (hidden, 4 * hidden)
        shapes[f"b_{layer}"] = (4 * hidden,)
    return weights(hidden, shapes)


def tree_weights() -> dict[str, np.ndarray]:
    """Gates of a leaf: input, output, update; of a node: input, forget left, forget right, output, update."""
    h = TREE_HIDDEN
    shapes = {"leaf": (INPUT, 3 * h), "leaf_bias": (3 * h,), "node": (2 * h, 5 * h), "node_bias": (5 * h,)}
    return weights(7, shapes)


def lengths(mean: int) -> list[int]:
    """Lengths between half and one and a half of the mean."""
    rng = random.Random(1)
    return [rng.randint(mean // 2, mean + mean // 2) for _ in range(SENTENCES)]


def sentence(words: int) -> np.ndarray:
    return np.random.default_rng(words).standard_normal((words, INPUT)).astype("float32")


def random_tree(words: int) -> Tree:
    """A tree whose every split is equally likely."""
    rng = random.Random(words)

    def make(first: int, count: int) -> Tree:
        if count == 1:
            return first
        left = rng.randrange(1, count)
        return make(first, left), make(first + left, count - left)

    return make(0, words)


def degenerate_tree(words: int) -> Tree:
    """Every left child is a word."""
    tree: Tree = words - 1
    for i in reversed(range(words - 1)):
        tree = (i, tree)
    return tree


def post_order(tree: Tree) -> list[tuple[int, int, int]]:
    """For each node, children first: its word or -1, and the places of its children here."""
    order: list[tuple[int, int, int]] = []

    def visit(t: Tree) -> int:
        if isinstance(t, int):
            order.append((t, 0, 0))
        else:
            left, right = visit(t[0]), visit(t[1])
            order.append((-1, left, right))
        return len(order) - 1

    visit(tree)
    return order
