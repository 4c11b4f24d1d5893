// A timeline in the formats of other tools. docs/profiling.md describes what each contains.
#pragma once

#include <string>

#include "report/peak.h"
#include "report/timeline.h"

namespace tenon::report {

// Chrome's trace events as a JSON array, with ONNX Runtime's keys: chrome://tracing,
// ui.perfetto.dev and scripts for ONNX Runtime's profiles read it.
std::string to_chrome_json(const Timeline& timeline, const Peak& peak);

// Perfetto's protobuf (a `Trace` message), for ui.perfetto.dev and trace_processor.
std::string to_perfetto(const Timeline& timeline, const Peak& peak);

// The calls by place in the code, like the profile that trtexec exports: an array whose first
// element is {"count": calls by the host}, then an object per layer.
std::string to_layers_json(const Timeline& timeline, const Peak& peak);

}  // namespace tenon::report
