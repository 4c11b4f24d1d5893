// Every operator that is defined on scalars has a type rule, is evaluated and is compiled
// to bytecode, and all agree with the scalar semantics of its element.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/llvm/target.h"
#include "driver/compile.h"
#include "evaluate/reference_evaluator.h"
#include "graph/ir/text.h"
#include "graph/op/pointwise.h"
#include "loop/scalar.h"
#include "object/reflect.h"
#include "vm/builtin/register.h"
#include "vm/interp/machine.h"

namespace tenon::driver {
namespace {

using namespace graph;  // NOLINT: this test uses only graph IR

const std::vector<int64_t> kIntegers = {
    0,  1,  -1,  2,   -2,   3,   7,     -7,      31,        62,        63,
    64, 65, -64, 127, -128, 255, 65535, 1 << 20, INT64_MAX, INT64_MIN, INT64_MIN + 1};
const std::vector<DataType> kDtypes = {boolean, i8,  i16, i32, i64, u8,
                                       u16,     u32, u64, f16, f32, f64};
const std::vector<double> kFloats = {0,    -0.0, 1,     -1,       0.1,       -2.5,
                                     1e30, 7,    1e-40, INFINITY, -INFINITY, NAN};

// The value of an element, or nullopt for a division by zero.
using Result = std::optional<Any>;

template <class Run>
Result result_of(const Run& run) {
  try {
    return run();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Runtime) << error.render();
    return std::nullopt;
  }
}

std::string text_of(const Result& result) {
  if (!result) return "an error";
  if (result->type_index == TypeIndex::Float) {
    const auto value = result->as<double>();
    return std::isnan(value) ? "nan" : cat(value);
  }
  return result->type_index == TypeIndex::Bool ? cat(result->as<bool>())
                                               : cat(result->as<int64_t>());
}

void expect_close(const Result& found, const Result& expected, double tolerance) {
  const bool floats = found && expected && found->type_index == TypeIndex::Float &&
                      expected->type_index == TypeIndex::Float;
  if (floats && std::isfinite(expected->as<double>())) {
    const double want = expected->as<double>();
    EXPECT_LE(std::fabs(found->as<double>() - want), tolerance * (1 + std::fabs(want)));
    if (tolerance > 0) return;
  }
  EXPECT_EQ(text_of(found), text_of(expected));
}

class ScalarOperators : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    initialise();
    vm::register_builtins();
  }

  // The call with all operands as parameters of `dtypes` (void: absent), or with all after the
  // first as constants.
  static graph::Module program(const Operator& op, const std::vector<DataType>& dtypes,
                               const Attrs& attributes, const std::vector<Any>& values,
                               bool constants) {
    Builder b;
    b.at(Span::node(op.name));
    std::vector<Operand> operands;
    for (size_t i = 0; i < dtypes.size(); ++i) {
      if (!op.operands[i].name || dtypes[i] == DataType()) {
        operands.emplace_back();
      } else if (constants && i > 0) {
        operands.push_back(dtypes[i].is_bool() ? constant_bool(values[i].as<bool>())
                           : dtypes[i].is_float()
                               ? constant_float(dtypes[i], values[i].as<double>())
                               : constant_int(values[i].as<int64_t>(), dtypes[i]));
      } else {
        operands.push_back(b.param(cat("x", i), scalar_type(dtypes[i])));
      }
    }
    Map<String, FunctionRef> functions;
    functions.set("main", b.finish("main", b.op(op.name, operands, attributes)));
    return make_module(functions);
  }

  static Ref<vm::Program> compiled(const graph::Module& module) {
    CompileOptions options;
    options.cpu = {codegen::baseline_target().cpu};
    options.libraries = "none";
    options.level = 0;  // so that the machine computes what other levels would fold
    return vm::Program::from_unit(generate_code(run_passes(module, options), options), {});
  }

  // The element by loop/scalar.h, through literals.
  static Result expected(const Operator& op, const Call& call, const std::vector<Any>& values) {
    Elements elements(op.operands.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (!call.args[i]) continue;
      const DataType dtype = type_as<ScalarType>(type_of(call.args[i]))->dtype;
      elements[i] = dtype.is_float() ? loop::literal(dtype, values[i].as<double>())
                                     : literal_int(dtype, values[i].as<int64_t>());
    }
    const Scalar element = op.element(InferContext(call, nullptr), elements);
    if (element->kind == loop::ExprKind::kLiteral && element->dtype.is_float()) {
      return Any(loop::as_float(static_cast<const loop::Literal&>(*element).bits));
    }
    const auto bits = loop::as_int(element);
    if (!bits) return std::nullopt;
    return element->dtype.is_bool() ? Any(*bits != 0) : Any(*bits);
  }

  void try_operator(const Operator& op, const std::vector<DataType>& dtypes,
                    const Attrs& attributes = {}) {
    std::vector<std::vector<Any>> choices;
    for (DataType t : dtypes) {
      std::vector<Any>& choice = choices.emplace_back();
      if (t.is_void()) {
        choice = {Any()};
      } else if (t.is_bool()) {
        choice = {Any(false), Any(true)};
      } else if (t.is_int()) {
        for (int64_t v : kIntegers) {
          if (wrap_to(t, v) == v) choice.emplace_back(v);
        }
      } else {
        for (double v : kFloats) choice.emplace_back(loop::round_to(t, v));
      }
    }
    const graph::Module module = program(op, dtypes, attributes, {}, false);
    const Ref<vm::Program> machine_code = compiled(module);
    const FunctionRef& main = *module->functions.find("main");
    const Call& call = *main->body->bindings[0]->value.as<Call>();
    vm::Machine machine(machine_code, {});
    // Kernels approximate elementary functions, and take longer to compile.
    const bool in_kernel = needs_kernel(op, call);
    const bool exact = !in_kernel || std::string_view(op.name) == "bit_cast";
    const DataType result = type_as<ScalarType>(main->result_type)->dtype;
    const double tolerance = exact ? 0 : result == f16 ? 4e-3 : result == f32 ? 1e-5 : 1e-11;
    const bool is_common = dtypes[0].is_bool() || dtypes[0] == i64 || dtypes[0] == f64;
    const int64_t constants_every = in_kernel ? 101 : is_common ? 7 : 41;
    std::vector<size_t> at(choices.size(), 0);
    for (int64_t turn = 0;; ++turn) {
      std::vector<Any> values, given;
      for (size_t i = 0; i < at.size(); ++i) {
        values.push_back(choices[i][at[i]]);
        if (dtypes[i] != DataType()) given.push_back(values.back());
      }
      SCOPED_TRACE(to_text(module));
      const Result want = expected(op, call, values);
      const std::vector<AnyView> views(given.begin(), given.end());
      const Result evaluated = result_of([&] { return evaluator_.run(module, main, given).at(0); });
      const Result ran = result_of([&] { return machine.call("main", views); });
      EXPECT_EQ(text_of(evaluated), text_of(want));
      expect_close(ran, want, tolerance);
      if (turn % constants_every == 0 &&
          at.size() > 1) {  // instructions have other forms for constants
        const auto fixed = compiled(program(op, dtypes, attributes, values, true));
        vm::Machine other(fixed, {});
        const Result found = result_of([&] { return other.call("main", {views.data(), 1}); });
        expect_close(found, want, tolerance);
      }
      if (HasFailure()) return;
      ++tried_;
      size_t k = at.size();
      while (k > 0 && ++at[k - 1] == choices[k - 1].size()) at[--k] = 0;
      if (k == 0) return;
    }
  }

  ReferenceEvaluator evaluator_{codegen::baseline_target()};
  int64_t tried_ = 0;
};

TEST_F(ScalarOperators, MeanTheSameEverywhere) {
  int claims = 0;
  for (const Operator* op : OperatorTable::global().all()) {
    if (!op->element) continue;
    SCOPED_TRACE(op->name);
    ASSERT_NE(op->element, nullptr);
    ++claims;
    for (DataType t : kDtypes) {
      std::vector<DataType> dtypes;
      for (const OperandSpec& spec : op->operands) {
        dtypes.push_back(contains(spec.dtypes, t) ? t : boolean);
      }
      const bool first = contains(op->operands[0].dtypes, t);
      const bool conditional = !contains(op->operands[0].dtypes, i64) && op->operands.size() == 3;
      if (!first && !conditional) continue;
      const bool converts = op->attrs.size() == 1 && op->attrs[0].kind == AttrKind::kDType;
      if (converts) {
        for (DataType to : kDtypes) {
          const bool keeps_bits = std::string_view(op->name) == "bit_cast";
          if (keeps_bits && (to.is_bool() || to.bits != t.bits)) continue;
          try_operator(*op, dtypes, attrs({{"dtype", to}}));
        }
      } else {
        try_operator(*op, dtypes);
      }
      // Without optional operands.
      for (size_t i = 0; i < dtypes.size(); ++i) {
        if (op->operands[i].arity != OperandSpec::kOptional) continue;
        std::vector<DataType> fewer = dtypes;
        fewer[i] = DataType();
        try_operator(*op, fewer);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(claims, 20);
  EXPECT_GT(tried_, 2000);
}

}  // namespace
}  // namespace tenon::driver
