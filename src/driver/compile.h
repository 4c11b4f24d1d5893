// The compiler as one call, and its parts. compile.cc reads as the map of the compiler.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/target.h"
#include "graph/ir/module.h"
#include "vm/isa/unit.h"

namespace tenon::driver {

struct CompileOptions {
  // The CPUs that code is made for, of one architecture: at least one. Choices of the graph are
  // made once, for the lowest (codegen::is_lower); loops and code are made for each.
  std::vector<codegen::Target> targets = {codegen::host_target()};
  // -O: 0 plain loops, each operator its own kernel; 1 folding and planning; 2 fusion, layouts and
  // libraries; 3 libraries compute ReLU and Clip too, where NaN becomes a bound.
  int level = 2;
  bool libraries = true;  // --libraries onednn|none
  // Whether the unit carries its computes beside native code, for loaders that compile them.
  bool keep_computes = false;
  int64_t fold_limit = int64_t{1} << 30;  // bytes that folding may make
  int64_t fold_work = int64_t{1} << 33;   // elements that its kernels may store (loop/work.h)
  int threads = 0;  // that compile kernels; 0: as many as this process may use

  // Called after each step that ran, with the module it returned and the seconds it took.
  std::function<void(std::string_view pass, const graph::Module& module, double seconds)>
      after_pass;
  std::string stop_after;  // a step's name: run_passes ends there
  // The passes that run, in this order, in place of those that `level` asks for. A name is a pass's
  // or a registered function's (run_one_pass).
  std::optional<std::vector<std::string>> passes;
#ifdef NDEBUG
  bool check_after_each = false;
#else
  bool check_after_each = true;  // a pass whose result the checker refuses is our bug: Internal
#endif
  // Text of the kernels' LLVM IR or assembly is appended here when not null.
  std::string* ir_text = nullptr;
  std::string* assembly_text = nullptr;
};

// The process's tables: types, operators, library functions. Safe to call again; every entry point
// of the driver does.
void initialise();

// Unsupported for a module with tensors on other devices than the host: nothing here carries a
// device from a tensor to the memory and kernels of its results, or interprets them anywhere else.
void refuse_other_devices(const graph::Module& module);

// The step after all passes, which makes a loop nest of each compute, once per target. Only code
// generation needs it; --dump-after and --stop-after take its name like a pass's, and show it for
// the lowest target.
inline constexpr std::string_view kScheduleStep = "schedule";

// The passes that options.level asks for, in the order of passes.def.
graph::Module run_passes(const graph::Module& module, const CompileOptions& options);

// One step by its name, whatever the level: kScheduleStep, one of all_passes(), or a registered
// function `pass(module, context)`, which returns a module. Its `context` is a map: level, cpu,
// vector_bytes (of the target's registers), fold_limit. The checker runs on what it returns, and a
// module that it refuses is a Usage error of the pass. A Usage error, too, when there is neither of
// that name.
graph::Module run_one_pass(const graph::Module& module, const std::string& pass,
                           const CompileOptions& options);

// Throws that error.
void require_pass(const std::string& name);

// A lowered module (the result of all passes) as a unit with its kernels scheduled and compiled.
vm::Unit generate_code(const graph::Module& lowered, const CompileOptions& options);

// run_passes, then generate_code.
vm::Unit compile(const graph::Module& module, const CompileOptions& options);

}  // namespace tenon::driver
