// What is done to an .onnx of unknown origin: all that a person does with one. It is inspected,
// imported and lowered; some are compiled and run. Every outcome but a model, or an error that
// isn't our bug, is a finding.
#pragma once

#include "graph_target.h"
#include "import/onnx/import_model.h"
#include "import/onnx/read_model.h"
#include "tnx_target.h"

namespace tenon::fuzz {

// How far a model came.
enum class OnnxStage : uint8_t { Refused, Read, Imported, Lowered, Compiled, Ran };

struct OnnxOutcome {
  OnnxStage stage = OnnxStage::Refused;
  std::string problem;  // of a finding
};

struct OnnxTarget {
  std::string directory;  // of external data; "" refuses it
  int level = 2;
  bool native = false;  // folding and code generation, and a call with arguments of zeros
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
    // Once a model is imported, all that may still be wrong with it is that it is too much.
    const bool bug = e.kind() == ErrorKind::Internal ||
                     (outcome.stage == OnnxStage::Imported && e.kind() != ErrorKind::Unsupported);
    if (bug) outcome.problem = text;
    if (text.size() > 1 << 20) outcome.problem = cat("an error of ", text.size(), " bytes");
  }
  return outcome;
}

}  // namespace tenon::fuzz
