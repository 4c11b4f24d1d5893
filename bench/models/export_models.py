#!/usr/bin/env python3
"""Exports networks of torchvision and transformers to ONNX, with random weights.

Batch normalisations have the statistics of random images, so that activations neither vanish nor grow from layer to layer.

Usage: export_models.py OUT_FOLDER [NAME]...

Needs the packages of `export-requirements.txt`. Without names, exports those that aren't in the folder yet, except the ones that
`compare.py` gets elsewhere and `vit_batch`, whose batch is symbolic. Shapes are fixed: batch 1, images of 224 x 224 (299 for Inception
v3), 128 tokens (64 for T5's encoder, as it is exported in published comparisons), 30 seconds of sound for Whisper's encoder, and 100
steps for the LSTM of two layers, 300 -> 512. GPT-2's decoder takes one token and the keys and values of `past` tokens, any number.
"""

import argparse
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torchvision.models as vision

OPSET = 17


@dataclass
class Export:
    network: torch.nn.Module
    example: tuple[torch.Tensor, ...]
    inputs: list[str] = field(default_factory=lambda: ["x"])
    outputs: list[str] | None = None
    symbols: dict[str, dict[int, str]] = field(default_factory=dict)  # of an input or output, by axis


def image(network, size: int = 224, **options):
    return lambda: Export(network(**options), (torch.randn(1, 3, size, size),))


def vit(batch: int, **symbols):
    def made() -> Export:
        network = vision.vit_b_16()
        torch.nn.init.normal_(network.heads.head.weight, std=0.02)  # zeros otherwise
        return Export(network, (torch.randn(batch, 3, 224, 224),), **symbols)

    return made


def tokens(count: int):
    return (torch.randint(0, 1000, (1, count)),)


def distilbert():
    from transformers import DistilBertConfig, DistilBertModel

    return Export(DistilBertModel(DistilBertConfig(attn_implementation="eager", return_dict=False)), tokens(128))


class Alone(torch.nn.Module):
    """A model whose other parameters keep their defaults: exporters pass all of them, some twice."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


def bert():
    from transformers import BertConfig, BertModel

    config = BertConfig(attn_implementation="eager", return_dict=False)
    return Export(Alone(BertModel(config)), tokens(128))


def t5_encoder():
    from transformers import T5Config, T5EncoderModel

    sizes = {"d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
    return Export(T5EncoderModel(T5Config(**sizes, return_dict=False)), tokens(64))


def whisper_encoder():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    sizes = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
    network = WhisperEncoder(WhisperConfig(**sizes, attn_implementation="eager", return_dict=False))
    return Export(network, (torch.randn(1, 80, 3000),))


class Decoder(torch.nn.Module):
    """A language model with the keys and values of each layer as inputs and outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, token, *past):
        from transformers import DynamicCache

        cache = DynamicCache(list(zip(past[::2], past[1::2])))
        logits, present = self.model(token, cache, use_cache=True, return_dict=False)[:2]
        return logits, *(tensor for layer in present.layers for tensor in (layer.keys, layer.values))


def gpt2_decoder():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(attn_implementation="eager")
    parts = [f"{layer}.{part}" for layer in range(config.n_layer) for part in ("key", "value")]
    past, present = [f"past.{part}" for part in parts], [f"present.{part}" for part in parts]
    shape = (1, config.n_head, 16, config.n_embd // config.n_head)
    return Export(
        Decoder(GPT2LMHeadModel(config)),
        (*tokens(1), *(torch.randn(shape) for _ in parts)),
        ["x", *past],
        ["logits", *present],
        {name: {2: "past"} for name in past} | {name: {2: "total"} for name in present},
    )


class Lstm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.LSTM(300, 512, 2)

    def forward(self, x):
        return self.layers(x)[0]


NETWORKS = {
    "resnet18": image(vision.resnet18),
    "googlenet": image(vision.googlenet, init_weights=False, aux_logits=False),
    "densenet121": image(vision.densenet121),
    "efficientnet_b0": image(vision.efficientnet_b0),
    "mobilenet_v3_large": image(vision.mobilenet_v3_large),
    "inception_v3": image(vision.inception_v3, 299, init_weights=False),
    "regnet_y_800mf": image(vision.regnet_y_800mf),
    "convnext_tiny": image(vision.convnext_tiny),
    "vit_b_16": vit(1),
    "swin_t": image(vision.swin_t),
    "distilbert": distilbert,
    "t5_encoder": t5_encoder,
    "whisper_encoder": whisper_encoder,
    "gpt2_decoder": gpt2_decoder,
    "bert_base": bert,
    "resnet50": image(vision.resnet50),
    "vgg19": image(vision.vgg19),
    "squeezenet": image(vision.squeezenet1_1),
    "shufflenet": image(vision.shufflenet_v2_x1_0),
    "mobilenet_v2": image(vision.mobilenet_v2),
    "lstm_300_512": lambda: Export(Lstm(), (torch.randn(100, 1, 300),)),
    "vit_batch": vit(2, symbols={"x": {0: "batch"}}),
}
ONLY_BY_NAME = {"bert_base", "resnet50", "vgg19", "squeezenet", "shufflenet", "mobilenet_v2", "vit_batch"}


def calibrate(network: torch.nn.Module, example: tuple[torch.Tensor, ...]) -> None:
    """Sets the means and variances of batch normalisations to those of random images."""
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None  # the mean of all batches
        norm.reset_running_stats()
        norm.train()
    if norms:
        with torch.no_grad():
            network(torch.rand(4, *example[0].shape[1:]))
    for norm in norms:
        norm.eval()


def make(name: str) -> Export:
    """With the weights of the exported file."""
    torch.manual_seed(0)
    made = NETWORKS[name]()
    made.network.eval()
    calibrate(made.network, made.example)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NETWORKS))
    options = parser.parse_args()
    if unknown := set(options.names) - set(NETWORKS):
        parser.error(f"no network {', '.join(sorted(unknown))}; there are {', '.join(NETWORKS)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    torch.backends.mha.set_fastpath_enabled(False)  # one operator, which has no ONNX form
    for name in options.names or sorted(set(NETWORKS) - ONLY_BY_NAME):
        path = options.folder / f"{name}.onnx"
        if path.exists() and not options.names:
            continue
        made = make(name)
        torch.onnx.export(
            made.network,
            made.example,
            path,
            input_names=made.inputs,
            output_names=made.outputs,
            dynamic_axes=made.symbols,
            opset_version=OPSET,
            dynamo=False,
        )
        print(f"{path}: {path.stat().st_size / 2**20:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
