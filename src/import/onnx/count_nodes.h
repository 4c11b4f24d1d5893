// Counts a model's nodes by operator, including those of inner graphs and of called functions.
#pragma once

#include <map>
#include <string>

#include "import/onnx/model.h"

namespace tenon::onnx {

struct NodeCount {
  int64_t nodes = 0;                         // including calls of functions
  std::map<std::string, int64_t> operators;  // "Conv", "com.microsoft:Gelu"; without such calls
};

// A function's nodes count once per call of the function, however often an import builds them.
// Saturates. Functions that call themselves, which an import refuses, are not counted.
NodeCount count_nodes(const Model& model);

// The key of a function in a model.
std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload);
// An operator's name in NodeCount.
std::string op_text(const std::string& domain, const std::string& op);
std::string op_text(const Node& node);

// How deep calls of functions may nest.
inline constexpr int kMaxFunctionDepth = 50;

}  // namespace tenon::onnx
