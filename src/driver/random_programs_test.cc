// Every pass preserves what the reference evaluator computes: random programs of all operators,
// with transpositions and constants about them, evaluated after each pass that changed them.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "graph/evaluate/reference_evaluator.h"
#include "graph/ir/text.h"
#include "graph/op/run_operator.h"
#include "object/reflect.h"

namespace tenon::driver {
namespace {

using namespace graph;  // NOLINT: this test speaks of graph IR only

struct Program {
  Module module;
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

// f(op(g(x)...)) where each g is nothing, a transposition, or makes x a constant, and f is a
// pointwise operator and perhaps a transposition.
Program random_program(const Operator& op, uint64_t seed, Sizes sizes) {
  Random random(seed * 31 + 7);
  const Sample sample = op.sample(seed);
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
    if (random.between(0, 3) == 0) {
      operands.push_back(constant(x));
    } else if (random.coin()) {
      const auto perm = random_permutation(x.shape().size(), random);
      std::vector<int64_t> back(perm.size());
      for (size_t k = 0; k < perm.size(); ++k) back[static_cast<size_t>(perm[k])] = k;
      const Tensor stored = transposed(x, back);
      program.inputs.emplace_back(stored);
      operands.push_back(b.param(cat("x", i), told_type(stored, sizes, 0)));
      transposes.push_back({i, perm});
    } else {
      program.inputs.emplace_back(x);
      operands.push_back(b.param(cat("x", i), told_type(x, sizes, 0)));
    }
  }
  for (const Transposed& t : transposes) {
    operands[t.operand] =
        b.op("transpose", {operands[t.operand]}, attrs({{"perm", attr_ints(t.perm)}}));
  }
  Operand y = b.op(op.name, operands, sample.attrs);
  if (const auto* type = type_as<TensorType>(type_of(y)); type && type->dtype.is_float()) {
    y = b.op("mul", {y, b.op("sigmoid", {y})});
    if (random.coin()) {
      const auto perm = random_permutation(static_cast<size_t>(type->rank), random);
      y = b.op("transpose", {y}, attrs({{"perm", attr_ints(perm)}}));
    }
  }
  Map<String, FunctionRef> functions;
  functions.set("main", b.finish("main", y));
  program.module = make_module(functions);
  return program;
}

std::vector<Any> evaluate(ReferenceEvaluator& evaluator, const Module& module,
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

class RandomPrograms : public testing::TestWithParam<Sizes> {};

TEST_P(RandomPrograms, KeepTheirMeaningInEveryPass) {
  initialise();
  ReferenceEvaluator evaluator(codegen::baseline_target());
  CompileOptions options;
  options.target = codegen::baseline_target();
  options.libraries = false;
  int compared = 0;
  for (const Operator* op : OperatorTable::global().all()) {
    if (op->sample == nullptr) continue;
    // Those that choose_layouts moves transpositions through need chances of rank 4.
    const bool moves = op->layout == LayoutRule::kNamedAxes || op->kind == OpKind::kBroadcast;
    for (uint64_t seed = 0; seed < (moves ? 6u : 2u); ++seed) {
      SCOPED_TRACE(cat(op->name, ", seed ", seed));
      Program program;
      std::vector<Any> expected;
      try {
        program = random_program(*op, seed, GetParam());
        expected = evaluate(evaluator, program.module, program.inputs);
      } catch (const Error& error) {
        // The sample's sizes can't be told as symbols, or its elements are no valid operands.
        if (error.kind() == ErrorKind::Internal) throw;
        continue;
      }
      Module before = program.module;
      options.after_pass = [&](std::string_view pass, const Module& now, double) {
        if (pass == "make_allocation_explicit" || pass == "plan_memory") return;
        if (structural_equal(Any(now), Any(before))) return;
        SCOPED_TRACE(cat("after ", pass));
        expect_same(evaluate(evaluator, now, program.inputs), expected);
        ++compared;
        before = now;
      };
      run_passes(program.module, options);
      if (HasFatalFailure()) FAIL() << to_text(program.module) << "became\n" << to_text(before);
    }
  }
  EXPECT_GT(compared, 200);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RandomPrograms, testing::Values(Sizes::kConstant, Sizes::kSymbols));

}  // namespace
}  // namespace tenon::driver
