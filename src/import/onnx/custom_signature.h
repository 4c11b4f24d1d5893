// The text of a custom operator's signature:
//
//   "(tensor[n, m; f32], tensor[m; f32]; axis, factor = 1.0) -> tensor[n, m; f32]"
//
// Types of the node's inputs, after a semicolon its attributes with their defaults, and the type of
// its output, or a tuple of several.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/builder.h"
#include "graph/ir/packed_call.h"

namespace tenon::onnx {

struct CustomAttribute {
  std::string name;
  std::optional<Any>
      otherwise;  // an integer, float, boolean or string; a node must have the others
};

struct CustomSignature {
  bool any_inputs = false;  // "..." in place of the types
  // Of the inputs; scalars at the end are the types of attributes.
  std::vector<graph::TypeRef> params = {};
  // If none are listed, they are those of the node, in the order of their names.
  std::optional<std::vector<CustomAttribute>> attributes = {};
  graph::TypeRef result;
  // What the calls promise (graph/ir/packed_call.h): `effect = "ordered"` and `no_retain = true`
  // among the attributes. The effect is "pure" unless stated.
  graph::Attrs promises = graph::attrs({{graph::kEffectAttr, Any(String("pure"))}});
};

// Throws Usage, with the text in a row, if it isn't a signature.
CustomSignature parse_signature(const std::string& text);

}  // namespace tenon::onnx
