// Every pass preserves what the reference evaluator computes, and compiled programs compute the
// same, with libraries and without, with poisoned memory and without. The programs are random: all
// operators, surrounded by transpositions and constants; some get NaN, infinities, -0 and subnormal
// numbers as inputs.
#include <gtest/gtest.h>

#include <limits>

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/target.h"
#include "driver/compile.h"
#include "evaluate/reference_evaluator.h"
#include "graph/ir/text.h"
#include "graph/op/run_operator_testing.h"
#include "library/onednn/register.h"
#include "object/reflect.h"
#include "vm/builtin/register.h"
#include "vm/interp/machine.h"

namespace tenon::driver {
namespace {

using namespace graph;  // NOLINT: this test uses only graph IR

struct Program {
  graph::Module module;
  std::vector<Any> inputs;
};

std::vector<int64_t> random_permutation(size_t rank, Random& random) {
  std::vector<int64_t> perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
  for (size_t i = rank; i > 1; --i) {
    std::swap(perm[i - 1], perm[static_cast<size_t>(random.between(0, i - 1))]);
  }
  return perm;
}

Tensor transposed(const Tensor& x, const std::vector<int64_t>& perm) {
  return run("transpose", {x}, attrs({{"perm", attr_ints(perm)}}));
}

// Replaces a third of a floating-point tensor's elements by values that arithmetic treats
// specially.
void put_special_values(const Tensor& x, Random& random) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double tiny = x.dtype() == f16 ? 6e-8 : x.dtype() == f32 ? 1e-40 : 5e-324;
  const double special[] = {std::nan(""), kInf, -kInf, -0.0, tiny, -tiny};
  for (int64_t i = 0; i < x.count(); ++i) {
    if (random.between(0, 2) != 0) continue;
    const double value = special[static_cast<size_t>(random.between(0, 5))];
    loop::scalar_store(x.dtype(), x.data_as<char>() + i * x.dtype().bytes(),
                       loop::float_bits(value));
  }
}

// Appends a pointwise operator and perhaps a transposition.
void finish(Builder& b, Operand y, Random& random, Program* program) {
  if (const auto* type = type_as<TensorType>(type_of(y)); type && type->dtype.is_float()) {
    const auto bound = [&](int64_t quarters) {
      return constant(random_tensor(type->dtype, {}, random, quarters, quarters));
    };
    switch (random.between(0, 5)) {
      case 0:
        y = b.op("relu", {y});
        break;
      case 1:
        y = b.op("clip", {y, bound(-4), bound(6)});
        break;
      case 2:
        y = b.op("tanh", {y});
        break;
      case 3:
        y = b.op("sigmoid", {y});
        break;
      default:
        y = b.op("mul", {y, b.op("sigmoid", {y})});
    }
    if (random.coin()) {
      const auto perm = random_permutation(static_cast<size_t>(type->rank), random);
      y = b.op("transpose", {y}, attrs({{"perm", attr_ints(perm)}}));
    }
  }
  Map<String, FunctionRef> functions;
  functions.set("main", b.finish("main", y));
  program->module = make_module(functions);
}

// f(op(g(x)...)) where each g is nothing, a transposition, or makes x a constant, and f is a
// pointwise operator and perhaps a transposition. Odd seeds have special values.
Program random_program(const Operator& op, uint64_t seed, Sizes sizes) {
  Random random(seed * 31 + 7);
  const Sample sample = op.sample(op, seed);
  Program program;
  Builder b;
  b.at(Span::node(op.name));
  std::vector<Operand> operands;
  struct Transposed {
    size_t operand;
    std::vector<int64_t> perm;
  };
  std::vector<Transposed> transposes;
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    const auto* type = type_as<TensorType>(sample.operands[i]);
    if (type == nullptr) {
      operands.emplace_back();
      continue;
    }
    // Integers may be indices or divisors: 0, or 1 for the operators that divide.
    const bool divides = std::string_view(op.name).find("div") != std::string_view::npos ||
                         std::string_view(op.name) == "mod" || std::string_view(op.name) == "rem";
    const int64_t whole = divides ? 1 : 0;
    const Tensor x =
        type->dtype.is_float()
            ? random_tensor(type->dtype, sample_shape(sample, i), random, -8, 8)
            : random_tensor(type->dtype, sample_shape(sample, i), random, whole, whole);
    if (type->dtype.is_float() && seed % 2 == 1) put_special_values(x, random);
    if (random.between(0, 3) == 0) {
      operands.push_back(constant(x));
    } else if (random.coin()) {
      const auto perm = random_permutation(x.shape().size(), random);
      std::vector<int64_t> back(perm.size());
      for (size_t k = 0; k < perm.size(); ++k) back[static_cast<size_t>(perm[k])] = k;
      const Tensor stored = transposed(x, back);
      program.inputs.emplace_back(stored);
      operands.push_back(b.param(cat("x", i), operand_type(stored, sizes, 0)));
      transposes.push_back({i, perm});
    } else {
      program.inputs.emplace_back(x);
      operands.push_back(b.param(cat("x", i), operand_type(x, sizes, 0)));
    }
  }
  for (const Transposed& t : transposes) {
    operands[t.operand] =
        b.op("transpose", {operands[t.operand]}, attrs({{"perm", attr_ints(t.perm)}}));
  }
  const Operand y = b.op(op.name, operands, sample.attrs);
  finish(b, y, random, &program);
  return program;
}

// Programs for libraries: a product or a convolution and operators that may be fused into it. Every
// third seed has special values.
Program library_program(uint64_t seed, Sizes sizes) {
  Random random(seed * 17 + 3);
  Program program;
  Builder b;
  b.at(Span::node("library"));
  auto param = [&](const std::vector<int64_t>& shape) {
    const Tensor x = random_tensor(f32, shape, random, -8, 8);
    if (seed % 3 == 0) put_special_values(x, random);
    program.inputs.emplace_back(x);
    return b.param(cat("x", program.inputs.size()), operand_type(x, sizes, 0));
  };
  auto weights = [&](const std::vector<int64_t>& shape) {
    return constant(random_tensor(f32, shape, random, -8, 8));
  };
  const int64_t rows = random.between(9, 40), inner = random.between(1, 40);
  const int64_t columns = random.between(41, 60);  // all sizes differ
  Operand y;
  if (random.coin()) {
    const Operand x = param({rows, inner});
    const Operand w = random.coin() ? weights({inner, columns}) : param({inner, columns});
    const Operand residual = random.coin() ? param({rows, columns}) : Operand();
    y = b.op("matmul", {x, w});
    if (random.coin()) y = b.op("add", {y, weights({columns})});
    if (residual) y = b.op("add", {y, residual});
  } else {
    const Operand bias = random.coin() ? weights({columns}) : Operand();
    y = b.op("conv", {param({1, inner, rows, rows}), weights({columns, inner, 1, 1}), bias});
  }
  finish(b, y, random, &program);
  return program;
}

std::vector<Any> evaluate(ReferenceEvaluator& evaluator, const graph::Module& module,
                          const std::vector<Any>& inputs) {
  return evaluator.run(module, *module->functions.find("main"), inputs);
}

void expect_same(const std::vector<Any>& found, const std::vector<Any>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    auto have = found[i].try_as<Tensor>(), want = expected[i].try_as<Tensor>();
    ASSERT_EQ(have.has_value(), want.has_value());
    if (have) expect_equal(*have, Nd(*want), 20);
  }
}

// As above, but infinities must also have the same sign.
void expect_same_specials(const std::vector<Any>& found, const std::vector<Any>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const auto tensor = found[i].try_as<Tensor>(), wanted = expected[i].try_as<Tensor>();
    ASSERT_EQ(tensor.has_value(), wanted.has_value());
    if (!tensor) continue;
    ASSERT_EQ(shape_of_tensor(*tensor), shape_of_tensor(*wanted));
    const Nd have(*tensor);
    Nd want(*wanted);
    for (size_t k = 0; k < have.data.size(); ++k) {
      if (std::isinf(want.data[k]) || std::isinf(have.data[k])) {
        // Numbers near the end of float16 may round to either side of it.
        const bool near = tensor->dtype() == f16 && std::fabs(want.data[k]) > 65000 &&
                          std::fabs(have.data[k]) > 65000;
        ASSERT_TRUE(near ? have.data[k] * want.data[k] > 0 : have.data[k] == want.data[k])
            << "element " << k << ": " << have.data[k] << ", not " << want.data[k];
        want.data[k] = have.data[k];
      }
    }
    expect_equal(*tensor, want, 20);
  }
}

class RandomOperators : public testing::TestWithParam<Sizes> {
 protected:
  // Calls `body` with each program, at most `most` for an operator, and the evaluator's results.
  template <class Body>
  void for_each_program(ReferenceEvaluator& evaluator, const Body& body, uint64_t most = 6) {
    for (const Operator* op : OperatorTable::global().all()) {
      if (op->sample == nullptr) continue;
      // Operators that choose_layouts moves transpositions through need more samples of rank 4.
      const bool moves = op->layout == LayoutRule::kNamedAxes || op->kind == OpKind::kBroadcast;
      for (uint64_t seed = 0; seed < std::min<uint64_t>(most, moves ? 6 : 2); ++seed) {
        SCOPED_TRACE(cat(op->name, ", seed ", seed));
        Program program;
        std::vector<Any> expected;
        try {
          program = random_program(*op, seed, GetParam());
          expected = evaluate(evaluator, program.module, program.inputs);
        } catch (const Error& error) {
          // The sample's sizes can't become symbols, or its elements are not valid operands.
          if (error.kind() == ErrorKind::Internal) throw;
          continue;
        }
        body(program, expected);
        if (HasFatalFailure()) return;
      }
    }
  }
};

TEST_P(RandomOperators, KeepTheirMeaningInEveryPass) {
  initialise();
  ReferenceEvaluator evaluator(codegen::baseline_target(), KernelMode::kWalked);
  CompileOptions options;
  options.cpu = {codegen::baseline_target().cpu};
  options.libraries = "none";
  int compared = 0;
  for_each_program(evaluator, [&](const Program& program, const std::vector<Any>& expected) {
    graph::Module before = program.module;
    bool is_allocated = false;
    options.after_pass = [&](std::string_view pass, const graph::Module& now, double) {
      // The evaluator doesn't model memory; the next test covers the passes from there on on the
      // machine.
      is_allocated = is_allocated || pass == "make_allocation_explicit";
      if (is_allocated) return;
      if (structural_equal(Any(now), Any(before))) return;
      SCOPED_TRACE(cat("after ", pass));
      expect_same(evaluate(evaluator, now, program.inputs), expected);
      ++compared;
      before = now;
    };
    run_passes(program.module, options);
    if (HasFatalFailure()) FAIL() << to_text(program.module) << "became\n" << to_text(before);
  });
  EXPECT_GT(compared, 200);
}

std::vector<Any> run_compiled(const Ref<vm::Program>& program, const std::vector<Any>& inputs,
                              bool poison) {
  vm::MachineOptions options;
  options.poison = poison;
  vm::Machine machine(program, {}, options);
  const std::vector<AnyView> views(inputs.begin(), inputs.end());
  Any result = machine.call("main", views);
  if (auto results = result.try_as<Array<Any>>()) return {results->begin(), results->end()};
  return {result};
}

TEST_P(RandomOperators, ComputeTheSameOnTheMachine) {
  initialise();
  vm::register_builtins();
  register_onednn();
  ReferenceEvaluator evaluator(codegen::baseline_target(), KernelMode::kWalked);
  CompileOptions options;
  options.threads = 1;
  int compared = 0, offered = 0;
  auto compare = [&](const Program& program, const std::vector<Any>& expected) {
    graph::Module own;
    for (const bool libraries : {false, true}) {
      options.libraries = libraries ? "onednn" : "none";
      const graph::Module lowered = run_passes(program.module, options);
      if (libraries && structural_equal(Any(lowered), Any(own))) continue;
      offered += libraries;
      own = lowered;
      const auto compiled = vm::Program::from_unit(generate_code(lowered, options), {});
      for (const bool poison : {false, true}) {
        SCOPED_TRACE(cat(libraries ? "with" : "without", " libraries", poison ? ", poisoned" : ""));
        expect_same_specials(run_compiled(compiled, program.inputs, poison), expected);
        if (HasFatalFailure()) FAIL() << to_text(program.module) << "became\n" << to_text(lowered);
        ++compared;
      }
    }
  };
  for_each_program(evaluator, compare);
  EXPECT_GT(compared, 500);
  for (uint64_t seed = 0; seed < 36 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(cat("library, seed ", seed));
    const Program program = library_program(seed, GetParam());
    compare(program, evaluate(evaluator, program.module, program.inputs));
  }
  EXPECT_GT(offered, 12);
}

// Kernels import nothing: what an architecture has no instructions for must not become a call of a
// library's function, with which they wouldn't link.
TEST_P(RandomOperators, CompileForEveryArchitecture) {
  initialise();
  ReferenceEvaluator evaluator(codegen::baseline_target(), KernelMode::kWalked);
  int compiled = 0;
  const auto compile_program = [&](const Program& program, const std::vector<Any>&) {
    for (const codegen::Architecture& architecture : codegen::architectures()) {
      if (&architecture == &codegen::host_architecture()) continue;
      SCOPED_TRACE(architecture.name);
      CompileOptions options;
      options.threads = 1;
      options.target = architecture.name;
      EXPECT_NO_THROW(compile(program.module, options)) << to_text(program.module);
      ++compiled;
    }
  };
  for_each_program(evaluator, compile_program, /*most=*/1);
  EXPECT_GT(compiled, 100);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RandomOperators,
                         testing::Values(Sizes::kConstant, Sizes::kSymbols));

}  // namespace
}  // namespace tenon::driver
