"""BERT-base of transformers with random weights, and its ONNX export with any number of tokens."""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel


def make(folder: Path) -> tuple[BertModel, Path]:
    """The model and the ONNX file that ONNX Runtime and Tenon read."""
    torch.manual_seed(0)
    model = BertModel(BertConfig()).eval()
    path = folder / "bert.onnx"
    tokens = torch.export.Dim("tokens", min=2, max=512)
    logging.getLogger("torch").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            tuple(torch.from_numpy(a) for a in inputs(16)),
            path,
            dynamo=True,
            external_data=True,
            input_names=["input_ids", "attention_mask"],
            output_names=["last_hidden_state", "pooler_output"],
            dynamic_shapes=({1: tokens}, {1: tokens}),
            verbose=False,
        )
    return model, path


def inputs(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(tokens).integers(0, 1000, (1, tokens))
    return ids, np.ones_like(ids)


def of_torch(model: BertModel, batches: list[tuple[np.ndarray, np.ndarray]]) -> list[Callable[[], np.ndarray]]:
    given = [tuple(torch.from_numpy(a) for a in batch) for batch in batches]
    return [lambda g=g: model(*g).last_hidden_state.numpy() for g in given]
