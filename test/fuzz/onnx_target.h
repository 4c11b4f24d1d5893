// What is done to an .onnx of unknown origin: all that a person does with one. It is inspected and
// imported; an imported one takes the passes of the compiler and is checked after each. Every
// outcome but a model, or an error that isn't our bug, is a finding.
#pragma once

#include <string>

#include "codegen/llvm/target.h"
#include "driver/compile.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
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
  // Folding and code generation, with LLVM, and a call with arguments of zeros.
  bool native = false;
};

inline OnnxOutcome run_onnx(std::string_view bytes, const OnnxTarget& target) {
  OnnxOutcome outcome;
  try {
    const onnx::Model model = onnx::parse_model(bytes, "mutant.onnx", target.directory);
    outcome.stage = OnnxStage::Read;
    onnx::inspect_model(model);
    const graph::Module module = onnx::import_model(model).module;
    outcome.stage = OnnxStage::Imported;

    driver::CompileOptions options;
    options.target = codegen::host_target();
    options.level = target.level;
    options.threads = 1;
    options.fold_limit = target.native ? 1 << 16 : -1;  // not even nothing
    std::string last = "import";
    auto check = [&](const graph::Module& m) {
      try {
        graph::check_module(m);
        graph::to_text(m);
      } catch (const Error& e) {
        outcome.problem = cat("after ", last, ": ", e.render());
      }
    };
    check(module);
    options.after_pass = [&](std::string_view pass, const graph::Module& m, double) {
      last = pass;
      // Between fusing and lowering a primitive function may use sizes that none of its parameters
      // has: they are its caller's, and become integer parameters of the kernel.
      if (outcome.problem.empty() && pass != "fuse_operators") check(m);
    };
    const graph::Module lowered = driver::run_passes(module, options);
    outcome.stage = OnnxStage::Lowered;
    if (!target.native || !outcome.problem.empty()) return outcome;
    vm::Unit unit = driver::generate_code(lowered, options);
    outcome.stage = OnnxStage::Compiled;
    if (run_unit(std::move(unit), {}).values > 0) outcome.stage = OnnxStage::Ran;
  } catch (const Error& e) {
    const std::string text = e.render();
    if (e.kind() == ErrorKind::Internal) outcome.problem = text;
    if (text.size() > 1 << 20) outcome.problem = cat("an error of ", text.size(), " bytes");
  }
  return outcome;
}

}  // namespace tenon::fuzz
