#include "check_program.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "driver/compile.h"
#include "evaluate/reference_evaluator.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "graph/pass/convert_conv_transpose.h"
#include "graph_program.h"
#include "library/onednn/register.h"
#include "loop/scalar.h"
#include "object/cell.h"
#include "object/reflect.h"
#include "report/memory_formula.h"
#include "vm/builtin/register.h"
#include "vm/interp/machine.h"

namespace tenon::random_programs {
namespace {

using namespace graph;  // NOLINT: this file uses graph IR, and qualifies names of the VM

double element(const Tensor& t, int64_t i) {
  const int64_t bits = loop::scalar_load(t.dtype(), t.data_as<char>() + i * t.dtype().bytes());
  return t.dtype().is_float() ? loop::as_float(bits) : static_cast<double>(bits);
}

bool agree(DataType dtype, double found, double expected, std::optional<double> allowed = {}) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) == std::isnan(found);
  if (!dtype.is_float() || std::isinf(expected)) return found == expected;
  return std::fabs(found - expected) <= allowed.value_or(kTolerance * (1 + std::fabs(expected)));
}

// How two results differ, or "". If they are tensors, `allowed` may say by how much elements may.
std::string difference(const Any& found, const Any& expected,
                       const std::vector<double>* allowed = nullptr) {
  const auto f = found.try_as<Tensor>(), e = expected.try_as<Tensor>();
  if (f.has_value() != e.has_value()) return "one result is a tensor, the other none";
  if (e) {
    if (f->dtype() != e->dtype()) return cat("dtype ", f->dtype(), ", not ", e->dtype());
    if (!std::equal(f->shape().begin(), f->shape().end(), e->shape().begin(), e->shape().end())) {
      return cat("another shape: ", to_text(*f), ", not ", to_text(*e));
    }
    for (int64_t i = 0; i < e->count(); ++i) {
      const double x = element(*f, i), y = element(*e, i);
      const auto within =
          allowed ? std::optional((*allowed)[static_cast<size_t>(i)]) : std::nullopt;
      if (agree(e->dtype(), x, y, within)) continue;
      return cat("element ", i, " is ", x, ", not ", y,
                 within ? cat(" (allowed: ", *within, ")") : "");
    }
    return "";
  }
  if (const auto* cell = expected.as_object<CellObj>()) {
    const auto* other = found.as_object<CellObj>();
    if (!other || other->tag != cell->tag || other->size != cell->size) return "another cell";
    for (int64_t i = 0; i < cell->size; ++i) {
      const std::string d = difference(other->begin()[i], cell->begin()[i]);
      if (!d.empty()) return d;
    }
    return "";
  }
  if (const auto fields = expected.try_as<Array<Any>>()) {
    const auto other = found.try_as<Array<Any>>();
    if (!other || other->size() != fields->size()) return "another number of fields";
    for (size_t i = 0; i < fields->size(); ++i) {
      if (std::string d = difference((*other)[i], (*fields)[i]); !d.empty()) return d;
    }
    return "";
  }
  if (found.type_index != expected.type_index) return "a value of another kind";
  if (found.type_index == TypeIndex::Float) {
    return agree(f64, found.as<double>(), expected.as<double>()) ? "" : "another float";
  }
  if (expected.type_index == TypeIndex::Int || expected.type_index == TypeIndex::Bool) {
    return found.v.i == expected.v.i ? "" : cat("is ", found.v.i, ", not ", expected.v.i);
  }
  return structural_equal(found, expected) ? "" : "another value";
}

std::string difference(const std::vector<Any>& found, const std::vector<Any>& expected,
                       const std::vector<std::vector<double>>& allowed) {
  if (found.size() != expected.size()) return "another number of results";
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string d =
        difference(found[i], expected[i], allowed.empty() ? nullptr : &allowed[i]);
    if (!d.empty()) return cat("result ", i, ": ", d);
  }
  return "";
}

class Checker {
 public:
  Checker(const graph::Module& module, const std::vector<Any>& inputs, const Checks& checks)
      : module_(module), inputs_(inputs), checks_(checks) {}

  std::string run() {
    try {
      expected_ = evaluate(module_);
      work_of_original_ = work_;
      // This pass adds operators that move elements.
      PassContext context;
      const graph::Module converted = convert_conv_transpose(module_, context);
      if (!structural_equal(Any(converted), Any(module_))) evaluate(converted);
      work_of_original_ = std::max(work_of_original_, work_);
    } catch (const Error& error) {
      const bool found = error.kind() == ErrorKind::Internal || !checks_.may_fail;
      return found ? cat("evaluated: ", error.render()) : "";
    }
    try {
      read_again();
      for (int level : checks_.levels) {
        compile(level, false);
        if (checks_.libraries) compile(level, true);
      }
    } catch (const Error& error) {
      failure_ = cat(where_, ": ", error.render());
    } catch (const Found&) {
    }
    return failure_;
  }

 private:
  struct Found {};  // thrown when failure_ is set
  static constexpr int64_t kFuel = int64_t{1} << 40;

  std::vector<Any> evaluate(const graph::Module& module) {
    constexpr double kAll = int64_t{1} << 50;
    evaluator_.state().work_left = kAll;
    std::vector<Any> results = evaluator_.run(module, *module->functions.find("main"), inputs_);
    work_ = kAll - evaluator_.state().work_left;
    return results;
  }

  void require_same(const std::vector<Any>& found, const graph::Module& shown) {
    const std::string d = difference(found, expected_, checks_.allowed);
    if (d.empty()) return;
    failure_ = cat(where_, ": ", d, "\n", to_text(shown));
    throw Found();
  }

  // No pass moves work into a loop, or repeats it; from -O2, changes of layout are more work, too.
  // One pass may add work that another one then does at compile time, so that only what all of
  // them leave counts. (A batch norm becomes two operators.)
  void require_no_more_work(const graph::Module& lowered) {
    if (work_ <= 2 * work_of_original_ + 20) return;
    failure_ = cat(where_, ": runs store ", work_, " elements, not ", work_of_original_, "\n",
                   to_text(lowered));
    throw Found();
  }

  void read_again() {
    where_ = "printed and read";
    const std::string text = to_text(module_);
    if (text.find("{...}") != std::string::npos) return;  // large constants are left out
    const graph::Module again = parse_module(text, "printed.tn");
    check_module(again);
    require_same(evaluate(again), again);
  }

  void compile(int level, bool libraries) {
    driver::CompileOptions options;
    options.level = level;
    options.libraries = libraries ? "onednn" : "none";
    options.threads = 1;
    options.check_after_each = true;
    options.direct_convolutions = checks_.direct_convolutions;
    options.inter_op = level == 1 ? 2 : 1;
    graph::Module before = module_;
    const std::string way = cat("-O", level, libraries ? " with libraries" : "",
                                options.inter_op > 1 ? " --inter-op 2" : "");
    where_ = way;
    bool explicit_memory = false;
    if (checks_.passes) {
      options.after_pass = [&](std::string_view pass, const graph::Module& now, double) {
        where_ = cat(way, ", after ", pass);
        // The evaluator supports neither explicit memory nor libraries; the machine tests those.
        explicit_memory |= pass == "make_allocation_explicit";
        if (libraries || explicit_memory) return;
        if (structural_equal(Any(now), Any(before))) return;
        require_same(evaluate(now), now);
        before = now;
      };
    }
    const graph::Module lowered = driver::run_passes(module_, options);
    where_ = cat(way, ", compiled");
    if (level <= 1 && !libraries) require_no_more_work(lowered);
    if (!checks_.machine) return;
    if (libraries && structural_equal(Any(lowered), Any(lowered_))) return;
    lowered_ = lowered;
    const vm::Unit unit = driver::generate_code(lowered, options);
    bound_ = bound_of(unit);
    vm::ProgramOptions load;
    const auto program = vm::Program::from_unit(unit, load);
    load.bytecode_only = true;
    const auto bytecode = program->compiled() ? vm::Program::from_unit(unit, load) : nullptr;
    for (const bool poison : {false, true}) {
      where_ = cat(way, poison ? ", poisoned" : ", on the machine");
      std::string done, of_bytecode;
      require_same(run_machine(program, poison, &done), lowered);
      if (!bytecode) continue;
      where_ += ", as bytecode";
      require_same(run_machine(bytecode, poison, &of_bytecode), lowered);
      if (done == of_bytecode) continue;
      failure_ = cat(where_, ": compiled code gives ", done, ", bytecode ", of_bytecode, "\n",
                     to_text(lowered));
      throw Found();
    }
  }

  // What main's formula says that a call takes with these inputs.
  struct Bound {
    std::string formula;
    std::optional<int64_t> bytes;  // nullopt if that depends on what only a run knows
    bool exact = true;
  };
  Bound bound_of(const vm::Unit& unit) const {
    const auto main = static_cast<size_t>(unit.find_exported("main"));
    const report::MemoryFormula formula = report::memory_formulas(unit)[main];
    Bound out{to_text(formula.bytes), std::nullopt};
    const std::vector<vm::Param>& params = unit.functions[main].params;
    out.bytes = tenon::evaluate(formula.bytes, [&](std::string_view symbol) {
      for (size_t i = 0; i < params.size(); ++i) {
        for (size_t axis = 0; axis < params[i].type.dims.size(); ++axis) {
          const auto tensor = inputs_[i].try_as<Tensor>();
          if (!tensor || params[i].type.dims[axis].text != symbol) continue;
          return std::optional(tensor->dim(static_cast<int64_t>(axis)));
        }
      }
      return std::optional<int64_t>();
    });
    // Only one path through code without jumps.
    vm::Instruction in;
    for (const vm::FunctionUnit& function : unit.functions) {
      for (uint32_t at = 0; vm::decode(function.code, at, &in); at += in.words()) {
        if (in.info->jumps()) out.exact = false;
      }
    }
    return out;
  }

  void hold_to_bound(int64_t taken) {
    if (!bound_.bytes || taken == *bound_.bytes || (!bound_.exact && taken < *bound_.bytes)) return;
    failure_ = cat(where_, ": main takes ", taken, " bytes, not ", bound_.exact ? "" : "at most ",
                   *bound_.bytes, ": ", bound_.formula, "\n", to_text(lowered_));
    throw Found();
  }

  // `done` becomes all that compiled code and bytecode must agree in.
  std::vector<Any> run_machine(const Ref<vm::Program>& program, bool poison, std::string* done) {
    vm::MachineOptions options;
    options.poison = poison;
    options.inter_op = 2;
    vm::Limits limits;
    limits.threads = 2;
    limits.fuel = kFuel;
    vm::Machine machine(program, limits, options);
    const std::vector<AnyView> views(inputs_.begin(), inputs_.end());
    Any result = machine.call("main", views);
    hold_to_bound(static_cast<int64_t>(machine.memory().call_bytes));
    *done = cat(repr(result, 4000), ", fuel ", kFuel - machine.fuel_left());
    const auto* tuple = (*module_->functions.find("main"))->result_type.as<TupleType>();
    if (!tuple) return {result};
    const auto fields = result.as<Array<Any>>();
    return {fields.begin(), fields.end()};
  }

  const graph::Module& module_;
  const std::vector<Any>& inputs_;
  const Checks& checks_;
  ReferenceEvaluator evaluator_{codegen::baseline_target(), KernelMode::kWalked};
  std::vector<Any> expected_;
  double work_ = 0, work_of_original_ = 0;  // of the last evaluation, and of the module's
  graph::Module lowered_;                   // what was last checked on the machine
  Bound bound_;
  std::string where_, failure_;
};

}  // namespace

std::string find_difference(const graph::Module& module, const std::vector<Any>& inputs,
                            const Checks& checks) {
  driver::initialise();
  vm::register_builtins();
  register_onednn();
  return Checker(module, inputs, checks).run();
}

std::string find_difference(const graph::Module& module, uint64_t seed, Checks checks) {
  const bool special = seed % 3 == 0;
  if (special) std::erase(checks.levels, 3);
  const auto inputs = random_inputs(**module->functions.find("main"), seed, special);
  return find_difference(module, inputs, checks);
}

std::string find_difference(const std::string& text, uint64_t seed, const Checks& checks) {
  try {
    const graph::Module module = parse_module(text, "program.tn");
    check_module(module);
    if (!module->functions.find("main")) return "it has no @main";
    return find_difference(module, seed, checks);
  } catch (const Error& error) {
    return error.render();
  }
}

}  // namespace tenon::random_programs
