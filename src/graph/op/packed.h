// Entries of operators that a packed function of src/library computes: it is called with the
// operands (None if absent), then the attributes.
#pragma once

#include "graph/op/rule.h"

namespace tenon::graph {

inline Operator packed(const char* name, const char* function, std::vector<OperandSpec> operands,
                       std::vector<AttrSpec> attributes, const char* summary, InferFn infer,
                       SampleFn sample, ValueFn value = nullptr) {
  return {.name = name,
          .kind = OpKind::kOpaque,
          .operands = std::move(operands),
          .attrs = std::move(attributes),
          .summary = summary,
          .infer = infer,
          .packed = function,
          .value = value,
          .sample = sample};
}

}  // namespace tenon::graph
