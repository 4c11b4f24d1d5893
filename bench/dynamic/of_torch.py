"""The rows in PyTorch: eager, without gradients, with the products of all gates in one linear layer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

import workloads

torch.set_num_threads(1)
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


def tree_lstm(trees: list[tuple[workloads.Tree, np.ndarray]]) -> list[Call]:
    values = {name: torch.from_numpy(w.T.copy()) for name, w in workloads.tree_weights().items()}
    linear = nn.functional.linear

    def encode(tree: Any) -> tuple[torch.Tensor, torch.Tensor]:
        if isinstance(tree, torch.Tensor):
            i, o, u = linear(tree, values["leaf"], values["leaf_bias"]).chunk(3, 1)
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            (h_left, c_left), (h_right, c_right) = encode(tree[0]), encode(tree[1])
            both = torch.cat((h_left, h_right), 1)
            i, f_left, f_right, o, u = linear(both, values["node"], values["node_bias"]).chunk(5, 1)
            c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_left) * c_left + torch.sigmoid(f_right) * c_right
        return torch.sigmoid(o) * torch.tanh(c), c

    def with_words(tree: workloads.Tree, words: torch.Tensor) -> Any:
        return words[tree : tree + 1] if isinstance(tree, int) else tuple(with_words(t, words) for t in tree)

    inputs = [with_words(tree, torch.from_numpy(words)) for tree, words in trees]
    return [lambda t=t: encode(t)[0].numpy() for t in inputs]
