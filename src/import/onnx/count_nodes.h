// How many nodes a model has, by operator, with those of inner graphs and of called functions.
#pragma once

#include <map>
#include <string>

#include "import/onnx/model.h"

namespace tenon::onnx {

struct NodeCount {
  int64_t nodes = 0;                         // calls of functions among them
  std::map<std::string, int64_t> operators;  // "Conv", "com.microsoft:Gelu"; without such calls
};

// Each node counts once for every way that leads to it, however often an import builds it.
// Saturates; functions nested deeper than an import allows count no further.
NodeCount count_nodes(const Model& model);

// By which a model's functions are found.
std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload);
std::string op_text(const Node& node);  // as NodeCount names it

// Functions may call functions to this depth.
inline constexpr int kMaxFunctionDepth = 50;

}  // namespace tenon::onnx
