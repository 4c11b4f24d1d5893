// The rows of support/trace_kinds.def: what recordings call each kind of interval.
#pragma once

#include <span>
#include <string_view>

#include "support/trace.h"

namespace tenon::report {

struct TraceKind {
  std::string_view name, category, onnx_category;
};

inline constexpr TraceKind kTraceKinds[] = {
#define TENON_TRACE_KIND(identifier, name, category, onnx_category) {name, category, onnx_category},
#include "support/trace_kinds.def"
};

constexpr const TraceKind& about(trace::Kind kind) {
  return kTraceKinds[static_cast<size_t>(kind)];
}

}  // namespace tenon::report
