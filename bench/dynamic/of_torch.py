"""The rows in PyTorch: eager, without gradients."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

import workloads

torch.set_grad_enabled(False)

VERSION = torch.__version__.split("+")[0]
Call = Callable[[], np.ndarray]


def set_weights(module: nn.Module, values: dict[str, np.ndarray], layer: int, suffix: str) -> None:
    """Gives one layer its weights."""
    getattr(module, f"weight_ih{suffix}").copy_(torch.from_numpy(values[f"w_{layer}"].T.copy()))
    getattr(module, f"weight_hh{suffix}").copy_(torch.from_numpy(values[f"r_{layer}"].T.copy()))
    getattr(module, f"bias_ih{suffix}").copy_(torch.from_numpy(values[f"b_{layer}"]))
    getattr(module, f"bias_hh{suffix}").zero_()


def lstm(hidden: int, layers: int, sentences: list[np.ndarray]) -> list[Call]:
    """nn.LSTM over each sentence."""
    module = nn.LSTM(workloads.INPUT, hidden, layers).eval()
    for i in range(layers):
        set_weights(module, workloads.lstm_weights(hidden), i, f"_l{i}")
    return [lambda x=torch.from_numpy(s): module(x)[1][0][-1].numpy() for s in sentences]


def lstm_cells(hidden: int, layers: int, sentences: list[np.ndarray]) -> list[Call]:
    """A loop over the words that calls an nn.LSTMCell for each layer."""
    cells = [nn.LSTMCell(workloads.INPUT if i == 0 else hidden, hidden).eval() for i in range(layers)]
    for i, cell in enumerate(cells):
        set_weights(cell, workloads.lstm_weights(hidden), i, "")

    def call(x: torch.Tensor) -> np.ndarray:
        states = [(torch.zeros(1, hidden), torch.zeros(1, hidden)) for _ in cells]
        for row in x:
            for i, cell in enumerate(cells):
                states[i] = cell(row, states[i])
                row = states[i][0]
        return row.numpy()

    return [lambda x=torch.from_numpy(s).unsqueeze(1): call(x) for s in sentences]


Tree = torch.Tensor | tuple["Tree", "Tree"]
States = tuple[torch.Tensor, torch.Tensor]


class TreeLSTM:
    """Recursion over a tree, with one linear layer for all gates of a node."""

    def __init__(self) -> None:
        self.weights = {name: torch.from_numpy(w.T.copy()) for name, w in workloads.tree_weights().items()}

    def gates_of_leaf(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        return nn.functional.linear(x, self.weights["leaf"], self.weights["leaf_bias"]).chunk(3, 1)

    def gates_of_node(self, left: torch.Tensor, right: torch.Tensor) -> Sequence[torch.Tensor]:
        both = torch.cat((left, right), 1)
        return nn.functional.linear(both, self.weights["node"], self.weights["node_bias"]).chunk(5, 1)

    def encode(self, tree: Tree) -> States:
        if isinstance(tree, torch.Tensor):
            i, o, u = self.gates_of_leaf(tree)
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            (h_left, c_left), (h_right, c_right) = self.encode(tree[0]), self.encode(tree[1])
            i, f_left, f_right, o, u = self.gates_of_node(h_left, h_right)
            c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_left) * c_left + torch.sigmoid(f_right) * c_right
        return torch.sigmoid(o) * torch.tanh(c), c


class TreeLSTMByGate(TreeLSTM):
    """With a linear layer for each gate and child, as published code has them."""

    def __init__(self) -> None:
        super().__init__()
        h, linear = workloads.TREE_HIDDEN, nn.functional.linear
        leaves = [w.contiguous() for w in self.weights["leaf"].split(h)]
        left, right = ([w.contiguous() for w in part.split(h)] for part in self.weights["node"].chunk(2, 1))
        bias, node_bias = self.weights["leaf_bias"].split(h), self.weights["node_bias"].split(h)
        self.gates_of_leaf = lambda x: [linear(x, w, b) for w, b in zip(leaves, bias)]
        self.gates_of_node = lambda x, y: [
            linear(x, v) + linear(y, w, b) for v, w, b in zip(left, right, node_bias)
        ]


def tree_lstm(model: TreeLSTM, trees: list[tuple[workloads.Tree, np.ndarray]]) -> list[Call]:
    def with_words(tree: workloads.Tree, words: torch.Tensor) -> Tree:
        return words[tree : tree + 1] if isinstance(tree, int) else tuple(with_words(t, words) for t in tree)

    inputs = [with_words(tree, torch.from_numpy(words)) for tree, words in trees]
    return [lambda t=t: model.encode(t)[0].numpy() for t in inputs]
