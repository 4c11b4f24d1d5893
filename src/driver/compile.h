// The compiler as one call, and its parts. compile.cc reads as the map of the compiler.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/target.h"
#include "device/work_budget.h"
#include "graph/ir/module.h"
#include "vm/isa/unit.h"

namespace tenon::driver {

struct CompileOptions {
  // The target CPUs, all of one architecture; none for this machine's. Graph passes optimise for
  // the lowest of them (codegen::is_lower); loop nests and code are generated for each.
  std::vector<codegen::Target> targets;
  // -O: 0 plain loops, one kernel per operator; 1 folding and memory planning; 2 fusion, layouts
  // and libraries; 3 libraries also compute ReLU and Clip, which turns NaN into a bound.
  int level = 2;
  bool libraries = true;       // --libraries onednn|none
  bool keep_computes = false;  // store the computes beside native code, for untrusted loads
  int64_t fold_limit = int64_t{1} << 30;  // bytes of constants that folding may create
  int64_t fold_work = int64_t{1} << 33;   // elements that its kernels may store (loop/work.h)
  int threads = 0;  // for compiling kernels; 0: as many as this process may use
  // For one call of run_passes, generate_code or compile. Memory that LLVM and LLD work with
  // doesn't count, and they are interrupted between passes and between kernels.
  WorkLimits limits;

  // Called after each step that ran, with the module it returned and the seconds it took.
  std::function<void(std::string_view pass, const graph::Module& module, double seconds)>
      after_pass;
  std::string stop_after;  // the name of the last step that run_passes runs
  // The passes to run, in this order, instead of those of `level`. A name is that of a pass or of a
  // registered function (see run_one_pass).
  std::optional<std::vector<std::string>> passes;
#ifdef NDEBUG
  bool check_after_each = false;
#else
  bool check_after_each = true;  // throws Internal when the checker rejects a pass's result
#endif
  // When not null, the kernels' LLVM IR or assembly is appended as text.
  std::string* ir_text = nullptr;
  std::string* assembly_text = nullptr;
};

// Fills the process's tables of types, operators and library functions, once. Every entry point of
// the driver calls it.
void initialise();

// Throws Unsupported if the module has tensors on devices other than the host. Neither the compiler
// nor the evaluator propagates a tensor's device to the memory and kernels of its results.
void refuse_other_devices(const graph::Module& module);

// The step after all passes, which turns each compute into a loop nest, once per target. Only code
// generation needs it. --dump-after and --stop-after accept its name like that of a pass, and show
// the nests for the lowest target.
inline constexpr std::string_view kScheduleStep = "schedule";

// Runs options.passes, or else the passes of options.level in the order of passes.def.
graph::Module run_passes(const graph::Module& module, const CompileOptions& options);

// Runs one step by name, whatever the level: kScheduleStep, one of all_passes(), or a registered
// function `pass(module, context)` that returns a module. Its `context` is a map of level,
// fold_limit, cpu and the target's facts by the names of loop::TargetFacts. Throws Usage if no step
// has that name, or if the checker rejects what a registered function returns.
graph::Module run_one_pass(const graph::Module& module, const std::string& pass,
                           const CompileOptions& options);

// Throws Usage unless run_one_pass knows the name.
void require_pass(const std::string& name);

// Schedules and compiles the kernels of a lowered module (the result of all passes) and emits its
// functions as bytecode.
vm::Unit generate_code(const graph::Module& lowered, const CompileOptions& options);

// run_passes, then generate_code.
vm::Unit compile(const graph::Module& module, const CompileOptions& options);

}  // namespace tenon::driver
