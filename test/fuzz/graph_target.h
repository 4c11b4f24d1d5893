// The target for graph IR from an untrusted model or text: checks and prints the module, runs the
// compiler's passes, and checks the result of each.
#pragma once

#include "driver/compile.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"

namespace tenon::fuzz {

struct GraphTarget {
  int level = 2;
  // Whether to fold constants, which uses native code and costs a hundred times the rest.
  bool fold = false;
};

inline driver::CompileOptions compile_options(const GraphTarget& target) {
  driver::CompileOptions options;
  options.level = target.level;
  options.threads = 1;
  options.fold_limit = target.fold ? 1 << 16 : -1;  // -1 disables folding, even of empty tensors
  options.check_after_each = true;
  options.after_pass = [](std::string_view, const graph::Module& m, double) { graph::to_text(m); };
  return options;
}

inline graph::Module lower(const graph::Module& module, const GraphTarget& target) {
  return driver::run_passes(module, compile_options(target));
}

// Prints a module and reads it again. Returns a finding, or "".
inline std::string read_again(const graph::Module& module) {
  const std::string once = graph::to_text(module);
  // A text with elided constants can't be parsed again.
  if (once.find("{...}") != std::string::npos) return "";
  try {
    const std::string twice = graph::to_text(graph::parse_module(once, "once.tn"));
    if (twice != once) return cat("printed\n", once, "\nand read again it is\n", twice);
  } catch (const Error& e) {
    return cat("what was printed can't be read: ", e.render(), "\n", once);
  }
  return "";
}

// Reads a textual program like `tenon compile`. Returns a finding, or "".
inline std::string run_graph_text(std::string_view text, const GraphTarget& target) {
  try {
    const graph::Module module = graph::parse_module(text, "mutant.tn");
    graph::check_module(module);
    if (std::string problem = read_again(module); !problem.empty()) return problem;
    lower(module, target);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) return e.render();
  }
  return "";
}

}  // namespace tenon::fuzz
