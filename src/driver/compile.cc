#include "driver/compile.h"

#include <algorithm>
#include <ranges>

#include "codegen/bytecode/emit.h"
#include "codegen/llvm/emit.h"
#include "device/parallel.h"
#include "device/work_budget.h"
#include "driver/code_choice.h"
#include "driver/compile_kernels.h"
#include "driver/model_graph.h"
#include "driver/provenance.h"
#include "driver/require_lowered.h"
#include "evaluate/reference_evaluator.h"
#include "graph/ir/check.h"
#include "graph/ir/module.h"
#include "graph/ir/walk.h"
#include "graph/offer/offers.h"
#include "graph/op/register.h"
#include "graph/pass/pass.h"
#include "graph/pass/verify_memory_plan.h"
#include "library/algorithms/register.h"
#include "library/ml/register.h"
#include "library/signatures/signatures.h"
#include "library/text/register.h"
#include "loop/schedule.h"
#include "loop/types.h"
#include "object/library.h"
#include "object/reflect.h"
#include "object/registry.h"
#include "support/phase.h"
#include "vm/builtin/register.h"
#include "vm/executable/verify.h"

namespace tenon::driver {

namespace {

void refuse_other_devices(const graph::TypeRef& type, const Span& span) {
  if (const int64_t device = graph::other_device(type)) {
    throw Error(ErrorKind::Unsupported, span,
                cat("a tensor on device ", device, " is ", graph::kOnlyChecked))
        .help("leave out 'device=': code is made for the host, device 0");
  }
}

void refuse_other_devices(const graph::BlockRef& block) {
  for (const auto& binding : block->bindings) {
    refuse_other_devices(binding->var->type, binding->span);
    graph::for_each_block(binding->value,
                          [](const graph::BlockRef& inner) { refuse_other_devices(inner); });
  }
}

// A textual program may place tensors in memory itself; its plan must be sound.
void require_sound_memory(const graph::Module& module) {
  try {
    graph::verify_memory_plan(module);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Internal) throw;
    throw Error(ErrorKind::Usage, error.message())
        .help(
            "give values that are alive together separate places, or leave memory to the compiler");
  }
}

void check_result(std::string_view step, const graph::Module& module) {
  try {
    graph::check_module(module);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Runtime) throw;  // a limit of the work
    Error bug(ErrorKind::Internal, error.span(),
              cat("pass ", step, " made a module that the checker refuses: ", error.message()));
    for (const Error::Row& row : error.rows()) bug.row(row.label, row.text, row.note);
    throw bug;
  }
}

// Runs a step, then checks and reports its result.
template <class Body>
graph::Module run_step(std::string_view name, const CompileOptions& options, const Body& body) {
  poll();
  double seconds = 0;
  graph::Module now = [&] {
    Phase phase(name, Phase::Within::Included, &seconds);
    return body();
  }();
  if (options.check_after_each) check_result(name, now);
  if (options.after_pass) options.after_pass(name, now, seconds);
  return now;
}

// Replaces computes by loop nests.
graph::Module schedule(const graph::Module& module, const codegen::Target& target,
                       const CompileOptions& options) {
  loop::ScheduleOptions how;
  how.level = options.level == 0 ? loop::ScheduleLevel::kPlain : loop::ScheduleLevel::kShaped;
  how.target = target.facts();
  return run_step(kScheduleStep, options, [&] {
    Map<String, loop::KernelInterfaceRef> nests;
    for (const auto& [name, kernel] : module->kernels) {
      poll();
      nests.set(name, loop::loop_nest(kernel, name, how));
    }
    return graph::make_module(module->functions, nests, module->adts);
  });
}

bool compiles_bytecode(const vm::Unit& unit, const codegen::Target& target,
                       const CompileOptions& options) {
  return options.mode == kCompiledMode && codegen::can_compile_bytecode(unit, target);
}

vm::KernelTarget target_with(const codegen::Target& target, const std::vector<uint8_t>& object) {
  vm::KernelTarget native;
  native.triple = target.architecture->llvm_triple();
  native.cpu = target.cpu;
  native.cpu_features = target.features;
  native.images.push_back({vm::ImageKind::Elf, "", {object.begin(), object.end()}});
  return native;
}

// The code of all kernels for one target, and of the unit's bytecode, if it is to be compiled.
vm::KernelTarget compile_for(const codegen::Target& target, const graph::Module& lowered,
                             const vm::Unit& unit, const CompileOptions& options) {
  const graph::Module scheduled = schedule(lowered, target, options);
  Array<loop::KernelRef> kernels;
  for (const auto& [name, nest] : scheduled->kernels) {
    kernels.push_back(loop::KernelRef(nest.as<loop::Kernel>()));
  }
  codegen::EmitOptions emit;
  emit.optimisation =
      options.level == 0 ? codegen::Optimisation::kLoops : codegen::Optimisation::kAll;
  emit.threads = options.threads > 0 ? options.threads : available_threads();
  if (compiles_bytecode(unit, target, options)) emit.bytecode = &unit;
  emit.shared = options.shared;
  return target_with(target, codegen::compile_kernels(kernels, target, emit));
}

// Holds this thread's work to options.limits while it lives.
BudgetedWork within_limits(const CompileOptions& options) {
  return {options.limits, "compiling", "a module"};
}

// Weights are packed once, in panels for the lowest target. Panels for vectors of half the size
// cost nothing measurable, smaller ones up to half the speed (docs/targets.md).
std::string note_on_panels(const codegen::Target& lowest, const codegen::Target& highest) {
  const int64_t bytes = lowest.capabilities.vector_bytes;
  if (highest.capabilities.vector_bytes <= 2 * bytes) return "";
  return cat("note: weights are packed for the ", bytes, "-byte vectors of ", lowest.cpu, ", so ",
             highest.cpu, " may run at half the speed of a file of its own: leave out ", lowest.cpu,
             ", or compile a file for it");
}

// The context of passes, for one compilation.
class Pipeline {
 public:
  // Folding runs kernels for a fixed baseline CPU, so that its results don't depend on the host.
  explicit Pipeline(const CompileOptions& options)
      : options_(options), evaluator_(codegen::baseline_target()) {
    initialise();
    const CodeChoice code = choose_code(options);
    lowest_ = code.targets.front();
    note_on_panels_ = note_on_panels(lowest_, code.targets.back());
    cx_.target = lowest_.facts();
#define TENON_PASS_OPTION(type, name) cx_.name = options.name;
#include "graph/pass/pass_options.def"
    evaluator_.state().work_left = static_cast<double>(options.fold_work);
    cx_.evaluator = &evaluator_;
    if (code.libraries) cx_.offers = graph::all_offers();
  }

  graph::Module run(const std::string& name, const graph::Module& module) {
    require_pass(name);
    if (name == kScheduleStep) return schedule(module, lowest_, options_);
    cx_.packed_constants = 0;
    const graph::Module now = run_step(name, options_, [&] {
      const graph::Pass* pass = graph::find_pass(name);
      return pass ? pass->run(module, cx_) : call(name, module);
    });
    const bool noted = cx_.packed_constants > 0 && !note_on_panels_.empty();
    if (noted && options_.note) options_.note(note_on_panels_);
    return now;
  }

 private:
  // Calls a registered function as a pass, and always checks what it returns.
  graph::Module call(const std::string& name, const graph::Module& module) const {
    const Any context = context_of_functions();
    try {
      const Any returned = function_named(name)(module, context);
      if (returned.is_none() || !returned.is<graph::Module>()) {
        throw Error(ErrorKind::Usage, "the pass returned no module").found(repr(returned, 200));
      }
      graph::Module now = returned.as<graph::Module>();
      graph::check_module(now);
      driver::refuse_other_devices(now);
      return now;
    } catch (Error& error) {
      error.first_row("pass", name);
      throw;
    }
  }

  Map<String, Any> context_of_functions() const {
    return {
#define TENON_PASS_OPTION(type, name) {#name, cx_.name},
#include "graph/pass/pass_options.def"
        {"cpu", String(lowest_.cpu)},
#define TENON_TARGET_FACT(type, name, ...) {#name, cx_.target.name},
#include "loop/target_facts.def"
    };
  }

  const CompileOptions& options_;
  codegen::Target lowest_;
  std::string note_on_panels_;
  graph::ReferenceEvaluator evaluator_;
  graph::PassContext cx_;
};

// A library of options.custom.
Module custom_library(const std::string& name) {
  const Module library = load_library(cat("tenon_", name), {});
  if (library) return library;
  throw Error(ErrorKind::Usage, cat("option custom: the library ", quoted(name), " is not loaded"))
      .help(cat("load tenon_", name, " first"));
}

// Whether code of the unit calls a function of the library.
bool calls_any(const vm::Unit& unit, const Module& library) {
  return std::ranges::any_of(unit.packed, [&](const vm::PackedName& packed) {
    return !packed.kernel && library.find(packed.name);
  });
}

// What run_passes runs by default. Code generation schedules for each target itself, so that step
// only runs to be shown.
std::vector<std::string> steps_of_level(const CompileOptions& options) {
  std::vector<std::string> names;
  for (const Step& step : all_passes()) {
    if (options.level >= step.level) names.push_back(step.name);
  }
  if (options.stop_after == kScheduleStep) names.emplace_back(kScheduleStep);
  return names;
}

}  // namespace

const std::vector<Step>& all_passes() {
  static const std::vector<Step> passes = [] {
    std::vector<Step> all;
    for (const graph::Pass& pass : graph::all_passes()) {
      all.push_back({pass.name, pass.min_level, pass.summary});
    }
    return all;
  }();
  return passes;
}

const std::vector<Step>& all_steps() {
  static const std::vector<Step> steps = [] {
    std::vector<Step> all = all_passes();
    all.push_back({std::string(kScheduleStep), 0,
                   "turn computes into loop nests for the CPU, before code generation"});
    return all;
  }();
  return steps;
}

void initialise() {
  static const bool once = [] {
    loop::register_loop_types();
    graph::register_graph_types();
    graph::register_operators();
    vm::register_builtins();
    register_algorithms();
    register_ml();
    register_text();
    return true;
  }();
  (void)once;
}

void refuse_other_devices(const graph::Module& module) {
  for (const auto& [name, function] : module->functions) {
    for (const graph::VarRef& param : function->params) {
      refuse_other_devices(param->type, function->span);
    }
    refuse_other_devices(function->body);
  }
}

graph::Module run_passes(graph::Module module, const CompileOptions& options) {
  const BudgetedWork work = within_limits(options);
  refuse_other_devices(module);
  require_sound_memory(module);
  Pipeline pipeline(options);
  for (const std::string& step : options.passes ? *options.passes : steps_of_level(options)) {
    module = pipeline.run(step, module);
    if (options.stop_after == step) break;
  }
  return module;
}

graph::Module run_one_pass(const graph::Module& module, const std::string& pass,
                           const CompileOptions& options) {
  return Pipeline(options).run(pass, module);
}

void require_pass(const std::string& name) {
  std::vector<std::string> names;
  for (const Step& step : all_steps()) names.push_back(step.name);
  if (std::ranges::find(names, name) != names.end() || find_function(name)) return;
  const std::string near = nearest(name, names);
  throw Error(ErrorKind::Usage, cat("there is no pass '", printable(name), "'"))
      .help(cat(
          near.empty() ? "" : cat("did you mean ", near, "? "),
          "`tenon compile --list-passes`, or tenon.transform.list_passes() in Python, lists them"));
}

vm::Unit generate_code(const graph::Module& lowered, const CompileOptions& options) {
  const BudgetedWork work = within_limits(options);
  if (options.passes) require_lowered(lowered);
  vm::Unit unit = [&] {
    Phase phase("bytecode");
    return codegen::emit_unit(lowered);
  }();
  unit.provenance = provenance_of(options);
  for (const vm::PackedName& packed : unit.packed) {
    const library::Signature* signature =
        packed.kernel ? nullptr : library::find_signature(packed.name);
    if (!signature || signature->library.empty()) continue;
    const std::string library(signature->library);
    if (std::ranges::find(unit.libraries, library) == unit.libraries.end()) {
      unit.libraries.push_back(library);
    }
  }
  for (const std::string& library : options.custom) {
    if (calls_any(unit, custom_library(library))) unit.libraries.push_back(library);
  }
  const bool has_kernels = !lowered->kernels.empty();
  if (has_kernels && options.keep_computes) unit.computes = kernels_text(lowered);
  // The loader takes the first one that its machine can run, so the highest comes first.
  for (const codegen::Target& target : choose_code(options).targets | std::views::reverse) {
    if (!has_kernels && !options.shared && !compiles_bytecode(unit, target, options)) continue;
    unit.kernels.push_back(compile_for(target, lowered, unit, options));
  }
  return unit;
}

void compile_bytecode(vm::Unit& unit, const CompileOptions& options) {
  if (!unit.kernels.empty()) return;
  vm::verify(unit);
  const BudgetedWork work = within_limits(options);
  for (const codegen::Target& target : choose_code(options).targets | std::views::reverse) {
    if (!compiles_bytecode(unit, target, options)) continue;
    unit.kernels.push_back(compile_for(target, graph::make_module({}, {}), unit, options));
  }
}

vm::KernelTarget code_for_host(const vm::Unit& unit) {
  const codegen::Target target = codegen::host_target();
  codegen::EmitOptions emit;
  emit.bytecode = &unit;
  return target_with(target, codegen::compile_kernels({}, target, emit));
}

vm::Unit compile(graph::Module module, const CompileOptions& options) {
  const BudgetedWork work = within_limits(options);
  CompileOptions parts = options;
  parts.limits = {};
  const graph::Module described = options.keep_graph ? module : graph::Module();
  const graph::Module lowered = run_passes(std::move(module), parts);
  vm::Unit unit = generate_code(lowered, parts);
  if (described) unit.graph = to_json(describe_model(described, lowered));
  return unit;
}

}  // namespace tenon::driver
