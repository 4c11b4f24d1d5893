#!/usr/bin/env python3
"""Exports networks of torchvision and transformers to ONNX, with random weights.

Usage: export_models.py OUT_FOLDER [NAME]...

Needs the packages of `export-requirements.txt`. Without names, all that aren't in the folder. Shapes are fixed: batch 1,
images of 224 x 224, 128 tokens (64 for T5's encoder, as it is exported in published comparisons), 30 seconds of sound for
Whisper's encoder, and 100 steps for the LSTM of two layers, 300 -> 512.
"""

import argparse
import warnings
from pathlib import Path

import torch
import torchvision.models as vision

OPSET = 17


def image(network, **options):
    return lambda: (network(**options), torch.randn(1, 3, 224, 224))


def tokens(count: int):
    return torch.randint(0, 1000, (1, count))


def distilbert():
    from transformers import DistilBertConfig, DistilBertModel

    return DistilBertModel(DistilBertConfig(attn_implementation="eager", return_dict=False)), tokens(128)


def t5_encoder():
    from transformers import T5Config, T5EncoderModel

    sizes = {"d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
    return T5EncoderModel(T5Config(**sizes, return_dict=False)), tokens(64)


def whisper_encoder():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    sizes = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
    return WhisperEncoder(WhisperConfig(**sizes, attn_implementation="eager", return_dict=False)), torch.randn(1, 80, 3000)


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
    "regnet_y_800mf": image(vision.regnet_y_800mf),
    "convnext_tiny": image(vision.convnext_tiny),
    "vit_b_16": image(vision.vit_b_16),
    "swin_t": image(vision.swin_t),
    "distilbert": distilbert,
    "t5_encoder": t5_encoder,
    "whisper_encoder": whisper_encoder,
    "lstm_300_512": lambda: (Lstm(), torch.randn(100, 1, 300)),
}


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
    for name in options.names or NETWORKS:
        path = options.folder / f"{name}.onnx"
        if path.exists() and not options.names:
            continue
        torch.manual_seed(0)
        network, example = NETWORKS[name]()
        torch.onnx.export(network.eval(), (example,), path, input_names=["x"], opset_version=OPSET, dynamo=False)
        print(f"{path}: {path.stat().st_size / 2**20:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
