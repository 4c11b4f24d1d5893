// The target for untrusted .onnx files: inspects, imports and lowers a model; compiles and runs
// some. Every outcome except a model, or an error that isn't a bug of Tenon, is a finding.
#pragma once

#include "graph_target.h"
#include "import/onnx/import_model.h"
#include "import/onnx/read_model.h"
#include "tnx_target.h"

namespace tenon::fuzz {

// How far a model got.
enum class OnnxStage : uint8_t { Refused, Read, Imported, Lowered, Compiled, Ran };

struct OnnxOutcome {
  OnnxStage stage = OnnxStage::Refused;
  std::string problem;  // of a finding
};

struct OnnxTarget {
  std::string directory;  // of external data; "" refuses it
  int level = 2;
  bool native = false;  // also fold constants, generate code, and call it with zeros
};

inline OnnxOutcome run_onnx(std::string_view bytes, const OnnxTarget& target) {
  OnnxOutcome outcome;
  try {
    const onnx::Model model = onnx::parse_model(bytes, "mutant.onnx", target.directory);
    outcome.stage = OnnxStage::Read;
    onnx::inspect_model(model);
    const graph::Module module = onnx::import_model(model).module;
    outcome.stage = OnnxStage::Imported;
    try {
      graph::check_module(module);
    } catch (const Error& e) {
      outcome.problem = cat("after import: ", e.render());
      return outcome;
    }
    const GraphTarget passes{.level = target.level, .fold = target.native};
    const graph::Module lowered = lower(module, passes);
    outcome.stage = OnnxStage::Lowered;
    if (!target.native) return outcome;
    vm::Unit unit = driver::generate_code(lowered, compile_options(passes));
    outcome.stage = OnnxStage::Compiled;
    if (run_unit(std::move(unit), {}).values > 0) outcome.stage = OnnxStage::Ran;
  } catch (const Error& e) {
    const std::string text = e.render();
    // After a model is imported, it may only fail by exceeding limits.
    const bool bug = e.kind() == ErrorKind::Internal ||
                     (outcome.stage == OnnxStage::Imported && e.kind() != ErrorKind::Unsupported);
    if (bug) outcome.problem = text;
    if (text.size() > 1 << 20) outcome.problem = cat("an error of ", text.size(), " bytes");
  }
  return outcome;
}

}  // namespace tenon::fuzz
