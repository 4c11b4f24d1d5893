#!/usr/bin/env python3
"""Compiles 30 models of torchvision and transformers with dynamic sizes and compares their results with eager PyTorch.

Usage: models.py [--only NAME,...]

The package tenon must be importable, beside the packages of requirements.txt. Weights are random and seeded; models that
are too large for two cores have a smaller configuration of the same architecture. A model is exported and compiled once,
for example sizes, then called at other sizes; each must agree with eager within the tolerance: the greatest difference
of an output, relative to the greatest magnitude in it. Prints a line per model and exits with 1 if one failed.
"""

import argparse
import dataclasses
import logging
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tenon

TOLERANCE = 2e-4
EXPORTED = (2, 16)  # batch and sequence length
CALLED = [(1, 7), (3, 24)]

BATCH, LENGTH = torch.export.Dim("batch"), torch.export.Dim("seq", min=2, max=64)


@dataclasses.dataclass
class Row:
    """A model, and its inputs by name for a batch and a length, with the sizes that change."""

    name: str
    make: Callable[[], torch.nn.Module]
    inputs: Callable[[int, int], dict[str, torch.Tensor]]
    dynamic: dict[str, dict[int, Any]]


def vision(name: str, size: int = 64, parameter: str = "x", **options: Any) -> Row:
    """A classifier of torchvision: a batch of images in, scores out."""

    def make() -> torch.nn.Module:
        import torchvision

        return torchvision.models.get_model(name, weights=None, **options)

    def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
        return {parameter: torch.randn(batch, 3, size, size)}

    return Row(name, make, inputs, {parameter: {0: BATCH}})


def tokens(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, 90, (batch, length))


def mask(batch: int, length: int) -> torch.Tensor:
    """Hides the last token of every second row."""
    out = torch.ones(batch, length, dtype=torch.int64)
    out[1::2, -1] = 0
    return out


SMALL = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
GROUPED = SMALL | {"num_key_value_heads": 2, "pad_token_id": 0}


def text(family: str, kind: str = "Model", **options: Any) -> Row:
    """A model of transformers over tokens with a mask."""

    def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
        return {"input_ids": tokens(batch, length), "attention_mask": mask(batch, length)}

    if "vocab_size" not in options:
        options = SMALL | options
    sizes = {0: BATCH, 1: LENGTH}
    return Row(family, transformer(family, kind, options), inputs, {"input_ids": sizes, "attention_mask": sizes})


def causal(family: str, kind: str = "ForCausalLM", **options: Any) -> Row:
    return text(family, kind, use_cache=False, **options)


def transformer(family: str, kind: str, options: dict[str, Any]) -> Callable[[], torch.nn.Module]:
    def make() -> torch.nn.Module:
        import transformers

        return getattr(transformers, family + kind)(getattr(transformers, family + "Config")(**options))

    return make


def translation(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {
        "input_ids": tokens(batch, length),
        "attention_mask": mask(batch, length),
        "decoder_input_ids": tokens(batch, length),
    }


def encoder_decoder(family: str, kind: str, **options: Any) -> Row:
    sizes = {0: BATCH, 1: LENGTH}
    dynamic = dict.fromkeys(["input_ids", "attention_mask", "decoder_input_ids"], sizes)
    options = {"vocab_size": 99, "d_model": 64, "use_cache": False, **options}
    return Row(family, transformer(family, kind, options), translation, dynamic)


def clip(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {
        "input_ids": tokens(batch, length),
        "pixel_values": torch.randn(batch, 3, 32, 32),
        "attention_mask": mask(batch, length),
    }


TEXT_TOWER = SMALL | {"max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2}
VISION_TOWER = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
VISION_TOWER |= {"image_size": 32, "patch_size": 8}

ROWS = [
    vision("alexnet"),
    vision("vgg11_bn"),
    vision("resnet18"),
    vision("resnet50"),
    vision("resnext50_32x4d"),
    vision("densenet121"),
    vision("squeezenet1_1"),
    vision("mobilenet_v2"),
    vision("mobilenet_v3_small"),
    vision("shufflenet_v2_x1_0"),
    vision("mnasnet0_5"),
    vision("efficientnet_b0"),
    vision("regnet_y_400mf"),
    vision("googlenet", aux_logits=False, init_weights=False),
    vision("convnext_tiny"),
    vision("swin_t"),
    text("Bert"),
    text("DistilBert", vocab_size=99, dim=64, n_layers=2, n_heads=4, hidden_dim=128),
    text("Roberta"),
    text("Albert", embedding_size=32),
    text("Electra", embedding_size=32),
    text("DebertaV2", relative_attention=True, pos_att_type=["c2p", "p2c"]),
    causal("GPT2", "LMHeadModel", vocab_size=99, n_embd=64, n_layer=2, n_head=4),
    causal("OPT", vocab_size=99, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128,
           word_embed_proj_dim=64),
    causal("Llama", **GROUPED),
    causal("Qwen3", **GROUPED, head_dim=16),
    causal("Gemma", **GROUPED, head_dim=16),
    encoder_decoder("T5", "ForConditionalGeneration", d_kv=16, d_ff=128, num_layers=2, num_heads=4),
    encoder_decoder("Bart", "Model", encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                    decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128),
    Row("CLIP", transformer("CLIP", "Model", {"text_config": TEXT_TOWER, "vision_config": VISION_TOWER}), clip,
        {"input_ids": {0: BATCH, 1: LENGTH}, "pixel_values": {0: BATCH}, "attention_mask": {0: BATCH, 1: LENGTH}}),
]  # fmt: skip


def difference(found: Any, expected: torch.Tensor) -> float:
    found, expected = np.asarray(found), expected.numpy()
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise AssertionError(f"{found.dtype}{found.shape} where eager has {expected.dtype}{expected.shape}")
    if not np.isfinite(found).all():
        raise AssertionError("a result is not finite")
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30))


def check(row: Row) -> str:
    """Compiles a model and compares it at all sizes. Returns the columns of its line."""
    torch.manual_seed(0)
    model = row.make().eval()
    start = time.perf_counter()
    with torch.no_grad():
        exe = tenon.compile(model, args=(), kwargs=row.inputs(*EXPORTED), dynamic_shapes=row.dynamic)
    seconds = time.perf_counter() - start
    for parameter in exe.signature().params:
        sizes = row.dynamic[parameter.name]
        named = {axis: size.__name__ for axis, size in sizes.items()}
        found = {axis: size for axis, size in enumerate(parameter.dims) if isinstance(size, str)}
        if named != found:
            raise AssertionError(f"{parameter} where the model has {named}")
    worst = 0.0
    for sizes in CALLED:
        inputs = row.inputs(*sizes)
        with torch.no_grad():
            expected = torch.utils._pytree.tree_leaves(model(**inputs))
        found = exe(**inputs)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(expected):
            raise AssertionError(f"{len(found)} outputs where eager has {len(expected)}")
        for f, e in zip(found, expected):
            worst = max(worst, difference(f, e))
    if worst > TOLERANCE:
        raise AssertionError(f"the greatest difference is {worst:.1e}")
    parameters = sum(p.numel() for p in model.parameters()) / 1e6
    return f"{parameters:7.1f}{seconds:9.1f}{worst:11.1e}  agrees"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(row.name for row in ROWS))
    only = parser.parse_args().only.split(",")
    if unknown := set(only) - {row.name for row in ROWS}:
        parser.error(f"there is no model {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    start = time.perf_counter()
    failures = 0
    print(f"{'model':20}{'M params':>8}{'compile s':>9}{'difference':>11}")
    for row in ROWS:
        if row.name not in only:
            continue
        print(f"{row.name:20} ", end="", flush=True)
        try:
            print(check(row), flush=True)
        except Exception as error:
            failures += 1
            print(f"FAILED: {type(error).__name__}: {error}", flush=True)
            if len(only) == 1:
                traceback.print_exc()
    print(f"{len(only) - failures} of {len(only)} agree, {time.perf_counter() - start:.0f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
