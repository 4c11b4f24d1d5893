// The compiler as one call, and its parts. compile.cc reads as the map of the compiler.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/work_budget.h"
#include "graph/ir/module.h"
#include "vm/isa/unit.h"

namespace tenon::driver {

// Values of options.
inline constexpr char kCompiledMode[] = "compiled", kBytecodeMode[] = "bytecode",
                      kOneDnn[] = "onednn", kNoLibraries[] = "none";

struct CompileOptions {
  // What a user may choose. code_choice.h interprets `target`, `cpu` and `libraries`; the names in
  // `passes` are those that run_one_pass knows, and run instead of those of `level`.
#define TENON_COMPILE_OPTION(type, name, initial, ...) type name = initial;
#include "driver/options.def"

  // For one call of run_passes, generate_code or compile. Memory that LLVM and LLD work with
  // doesn't count, and they are interrupted between passes and between kernels.
  WorkLimits limits;

  // Called after each step that ran, with the module it returned and the seconds it took.
  std::function<void(std::string_view pass, const graph::Module& module, double seconds)>
      after_pass;
  // Called with remarks for the user, a line each.
  std::function<void(const std::string& remark)> note;
  std::string stop_after;  // the name of the last step that run_passes runs
#ifdef NDEBUG
  bool check_after_each = false;
#else
  bool check_after_each = true;  // throws Internal when the checker rejects a pass's result
#endif
};

// Fills the process's tables of types, operators and library functions, once. The driver's
// functions that read, change or compile modules call it; a program that uses layers below the
// driver calls it first.
void initialise();

// Throws Unsupported if the module has tensors on devices other than the host. Neither the compiler
// nor the evaluator propagates a tensor's device to the memory and kernels of its results.
void refuse_other_devices(const graph::Module& module);

// The step after all passes, which turns each compute into a loop nest, once per target. Only code
// generation needs it; whoever names it like a pass gets the nests for the lowest target.
inline constexpr std::string_view kScheduleStep = "schedule";

struct Step {
  std::string name;
  int level;  // the lowest that runs it
  std::string summary;
};
// In the order in which they run.
const std::vector<Step>& all_passes();
// All passes, then kScheduleStep.
const std::vector<Step>& all_steps();

// Runs options.passes, or else the passes of options.level in the order of passes.def. Constants
// that only an earlier module holds are freed as it goes: callers that move their module in save
// that memory.
graph::Module run_passes(graph::Module module, const CompileOptions& options);

// Runs one step by name, whatever the level: one of all_steps(), or a registered function
// `pass(module, context)` that returns a module. Its `context` is a map of the
// options of graph/pass/pass_options.def, cpu and the target's facts by the names of
// loop::TargetFacts. Throws Usage if no step
// has that name, or if the checker rejects what a registered function returns.
graph::Module run_one_pass(const graph::Module& module, const std::string& pass,
                           const CompileOptions& options);

// Throws Usage unless run_one_pass knows the name.
void require_pass(const std::string& name);

// Schedules and compiles the kernels of a lowered module (the result of all passes) and emits its
// functions as bytecode. The unit has no graph: `describe_model` makes it of both modules.
vm::Unit generate_code(const graph::Module& lowered, const CompileOptions& options);

// Adds machine code for the unit's bytecode, which it verifies, as options.mode says. Does nothing
// for a unit with native code. Throws Damaged as vm::verify.
void compile_bytecode(vm::Unit& unit, const CompileOptions& options);
// Machine code for a verified unit's bytecode, whatever it is, on this machine.
vm::KernelTarget code_for_host(const vm::Unit& unit);

// run_passes, then generate_code.
vm::Unit compile(graph::Module module, const CompileOptions& options);

}  // namespace tenon::driver
