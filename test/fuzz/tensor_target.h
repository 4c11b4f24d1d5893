// The target for files of arrays: reads bytes as a .npy file, as a .npz archive, as a value of
// ONNX's test cases (.pb) and as a weight file (.safetensors), and reads what is written of each
// array again. Every outcome except arrays that stay the same, or an error that isn't a bug of
// Tenon, is a finding.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "graph/ir/weights.h"
#include "import/onnx/tensor_file.h"
#include "support/error.h"
#include "support/memory_file.h"
#include "tools/tenon/numpy/input_stream.h"
#include "tools/tenon/numpy/npy.h"
#include "tools/tenon/numpy/zip_reader.h"

namespace tenon::fuzz {

struct TensorOutcome {
  int arrays = 0;       // that were read
  std::string problem;  // of a finding
};

inline Tensor read_npy_bytes(std::string_view bytes) {
  const MemoryFile file("mutant.npy", bytes);
  tool::InputStream in(file.path());
  return tool::read_npy(in);
}

// Why an array isn't read as it was written, or "".
inline std::string check_written(const Tensor& tensor) {
  const tool::NpyBytes written("array", tensor);
  const Tensor again = read_npy_bytes(cat(written.header(), written.data()));
  const bool same =
      to_text(again) == to_text(tensor) && tool::NpyBytes("array", again).data() == written.data();
  return same ? "" : cat("written, ", to_text(tensor), " is read as ", to_text(again));
}

// The same for a serialized TensorProto, which keeps every element type.
inline std::string check_encoded(const Tensor& tensor) {
  const std::string bytes = onnx::encode_tensor(tensor);
  const Tensor again = onnx::decode_tensor(bytes, "again.pb");
  const bool same = to_text(again) == to_text(tensor) && onnx::encode_tensor(again) == bytes;
  return same ? "" : cat("encoded, ", to_text(tensor), " is decoded as ", to_text(again));
}

// The same for a weight file, with its keys.
inline std::string check_rewritten(const graph::WeightFile& weights) {
  const MemoryFile file("again.safetensors", "");
  graph::write_weights(file.path(), {weights.tensors().begin(), weights.tensors().end()});
  const graph::WeightFile again(file.path());
  if (again.tensors().size() != weights.tensors().size()) return "a rewritten file has other keys";
  for (const auto& [key, tensor] : weights.tensors()) {
    const Tensor found = again.find(key);
    if (!found ||
        onnx::encode_tensor(found.compacted()) != onnx::encode_tensor(tensor.compacted())) {
      return cat("rewritten, ", key, " is another tensor");
    }
  }
  return "";
}

inline TensorOutcome run_tensors(std::string_view bytes) {
  TensorOutcome outcome;
  const auto guard = [&](const auto& work) {
    try {
      work();
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Internal) outcome.problem = e.render();
    }
  };
  const auto keep = [&](const Tensor& tensor) {
    ++outcome.arrays;
    const std::string problem = check_written(tensor);
    if (!problem.empty()) outcome.problem = problem;
  };
  guard([&] { keep(read_npy_bytes(bytes)); });
  guard([&] {
    const MemoryFile file("mutant.npz", bytes);
    const tool::ZipReader archive(file.path());
    for (const tool::ZipMember& member : archive.members()) {
      guard([&] { keep(tool::read_npy(*archive.open(member))); });
    }
  });
  guard([&] {
    const Tensor tensor = onnx::decode_tensor(bytes, "mutant.pb");
    ++outcome.arrays;
    const std::string problem = check_encoded(tensor);
    if (!problem.empty()) outcome.problem = problem;
  });
  using Kind = onnx::ValueType::Kind;
  for (const Kind kind : {Kind::kSequence, Kind::kOptional}) {
    guard([&] {
      onnx::ValueType held, type;
      held.kind = Kind::kTensor;
      type.kind = kind;
      type.held = std::make_shared<const onnx::ValueType>(held);
      onnx::decode_value(bytes, "mutant.pb", type);
    });
  }
  guard([&] {
    const MemoryFile file("mutant.safetensors", bytes);
    const graph::WeightFile weights(file.path());
    outcome.arrays += static_cast<int>(weights.tensors().size());
    const std::string problem = check_rewritten(weights);
    if (!problem.empty()) outcome.problem = problem;
  });
  return outcome;
}

}  // namespace tenon::fuzz
