#!/usr/bin/env python3
"""Quantises benchmark models as ONNX Runtime's tools do, from the models of make_models.py and others.

Usage: quantise.py OUT_FOLDER [--models FOLDER] [--filled FOLDER] [NAME]...

  mobilenetv2-qdq         MobileNetV2 with QuantizeLinear and DequantizeLinear around every operator: u8 activations,
                          i8 weights with a scale per channel
  resnet50-qdq            the same of ResNet-50, from --filled (`resnet50/model.onnx`)
  bert-dynamic            BERT-base with DynamicQuantizeLinear and MatMulInteger, i8 weights
  mobilenet_v3_large-qdq  the first of MobileNetV3-large, and
  distilbert-dynamic      the last of DistilBERT, from export_models.py

Calibration takes the ranges of activations from random inputs of a fixed seed.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

HERE = Path(__file__).resolve().parent
NAMES = ["mobilenetv2-qdq", "bert-dynamic", "mobilenet_v3_large-qdq", "distilbert-dynamic"]
FILLED = ["resnet50-qdq"]
EXPORTED = {"mobilenet_v3_large", "distilbert"}


class RandomImages(CalibrationDataReader):
    def __init__(self, model: Path, count: int = 4):
        graph = onnx.load(model, load_external_data=False).graph
        weights = {tensor.name for tensor in graph.initializer}
        value = next(v for v in graph.input if v.name not in weights)
        shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        rng = np.random.default_rng(1)
        self.batches = iter([{value.name: rng.random(shape, np.float32)} for _ in range(count)])

    def get_next(self):
        return next(self.batches, None)


def prepared(source: Path, folder: str) -> Path:
    """The model with its weights as initializers, in a version of ONNX that has scales per channel."""
    model = onnx.load(source)
    if model.opset_import[0].version < 13:
        onnx.save(onnx.version_converter.convert_version(model, 13), Path(folder) / "converted.onnx")
        source = Path(folder) / "converted.onnx"
    path = Path(folder) / "prepared.onnx"
    quant_pre_process(source, path, skip_symbolic_shape=True)
    return path


def quantise_static(source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = prepared(source, folder)
        quantize_static(
            model,
            target,
            RandomImages(model),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", type=Path, help="of make_models.py and export_models.py; OUT_FOLDER by default")
    parser.add_argument("--filled", type=Path, help="ONNX's vision networks with weights")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    models = options.models or options.out
    names = options.names or NAMES + (FILLED if options.filled else [])
    options.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        base, kind = name.rsplit("-", 1)
        source = models / f"{base}.onnx"
        if base == "resnet50":
            source = options.filled / base / "model.onnx"
        elif not source.exists():
            script = "export_models.py" if base in EXPORTED else "make_models.py"
            subprocess.run([sys.executable, HERE / script, models, base], check=True)
        target = options.out / f"{name}.onnx"
        if kind == "dynamic":
            quantize_dynamic(source, target, weight_type=QuantType.QInt8)
        else:
            quantise_static(source, target)
        print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
