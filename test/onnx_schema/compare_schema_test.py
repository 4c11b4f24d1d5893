#!/usr/bin/env python3
"""Tests that our schema of ONNX's messages has the fields, numbers and types of the `onnx` package.

Usage: compare_schema_test.py PATH/onnx.proto. Exits with 77 where onnx or protoc is missing.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import onnx
    from google.protobuf import descriptor_pb2
    from onnx import onnx_data_pb2, onnx_ml_pb2
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
if shutil.which("protoc") is None:
    print("skipped: no protoc")
    sys.exit(77)

LABELS = {1: "optional", 2: "required", 3: "repeated"}


def describe_message(message, prefix, out):
    """Adds `name -> description` of a message's fields and of nested messages."""
    name = prefix + message.name
    out[name] = {"message"}
    for field in message.field:
        kind = field.type_name.rsplit(".", 1)[-1] or field.type
        oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
        packed = field.options.packed
        out[f"{name}.{field.name}"] = (field.number, LABELS[field.label], kind, oneof, packed)
    for enum in message.enum_type:
        describe_enum(enum, name + ".", out)
    for nested in message.nested_type:
        describe_message(nested, name + ".", out)


def describe_enum(enum, prefix, out):
    out[prefix + enum.name] = {(value.name, value.number) for value in enum.value}


def describe_file(file):
    out = {}
    for message in file.message_type:
        describe_message(message, "", out)
    for enum in file.enum_type:
        describe_enum(enum, "", out)
    return out


def ours(path):
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "schema.pb"
        subprocess.run(
            ["protoc", f"--proto_path={path.parent}", f"--descriptor_set_out={target}", path.name],
            check=True,
        )
        files = descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes())
    return describe_file(files.file[0])


def theirs():
    out = {}
    for module in (onnx_ml_pb2, onnx_data_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        out.update(describe_file(file))
    return out


def main():
    mine, reference = ours(pathlib.Path(sys.argv[1])), theirs()
    failures = []
    for name in sorted(mine.keys() | reference.keys()):
        if mine.get(name) != reference.get(name):
            failures.append(f"{name}\n  ours    {mine.get(name)}\n  theirs  {reference.get(name)}")
    print(f"{len(reference)} entries of onnx {onnx.__version__} compared, {len(failures)} differ")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
