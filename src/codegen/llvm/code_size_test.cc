// Kernels whose code would be far longer than their text are refused before LLVM gets them.
#include <gtest/gtest.h>

#include <ctime>

#include "codegen/llvm/emit.h"
#include "loop/statements_testing.h"
#include "loop/tensors_testing.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: the vocabulary of the kernels below

const Dim n = Dim::symbol("n");
const Ref<const Buffer> x = buffer("x", f32, {n}), y = buffer("y", f32, {n});
const Ref<const Var> i = var("i", i64);

void expect_too_much_code(const KernelRef& k, const std::string& limit) {
  try {
    compile_kernels({k}, host_target());
    ADD_FAILURE() << "it compiles";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
    EXPECT_EQ(e.message(), "kernel 'long' needs too much code");
    EXPECT_NE(e.render().find(limit), std::string::npos) << e.render();
  }
}
void expect_too_much_code(const StmtRef& body, const std::string& limit) {
  expect_too_much_code(kernel("long", {x}, {y}, body), limit);
}

// A value that is used on both sides of a select, but always computed on neither, is written on
// each, so that every level doubles the code.
TEST(CodeSize, SelectsThatDoubleTheirOperandsAreAnError) {
  auto element = [](int64_t k) { return at(x, {i + index(k)}); };
  auto below = [&](int64_t k) {
    return binary(BinaryOp::kLt, element(k), literal(f32, static_cast<double>(k)));
  };
  ExprRef value = element(0);
  for (int64_t level = 0; level < 40; ++level) {
    const ExprRef yes = select(below(3 * level), value, literal(f32, 1));
    const ExprRef no = select(below(3 * level + 1), value, literal(f32, 2));
    value = select(below(3 * level + 2), yes + element(1), no + element(2));
  }
  expect_too_much_code(nest(i, index(0), dim_value(n), ForKind::kSerial, put(y, {i}, value)),
                       "at most 3072 basic blocks");
}

TEST(CodeSize, UnrolledLoopsOfVectorsAreAnError) {
  auto u = var("u", i64);
  const ExprRef element = at(x, {u});
  ExprRef value = at(x, {i});
  for (int k = 0; k < 30; ++k) value = unary(UnaryOp::kExp, value + element);
  const StmtRef copies = nest(u, index(0), index(64), ForKind::kUnrolled, put(y, {i}, value));
  expect_too_much_code(nest(i, index(0), index(64), ForKind::kVector, copies),
                       "at most 8388608 units of cost");
}

// LLVM takes more than linear time, so the limits are what bounds the time of a whole kernel.
double seconds_to_compile(const KernelRef& k) {
  const std::clock_t start = std::clock();
  compile_kernels({k}, host_target());
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(CodeSize, KernelsNearTheLimitOfBlocksCompileInSeconds) {
  auto loops = [](int64_t count) {
    std::vector<StmtRef> all;
    for (int64_t k = 0; k < count; ++k) {
      auto v = var("v", i64);
      const ExprRef value = at(x, {v}) + literal(f32, static_cast<double>(k));
      all.push_back(nest(v, index(0), dim_value(n), ForKind::kSerial, put(y, {v}, value)));
    }
    return kernel("long", {x}, {y}, both(all));
  };
  EXPECT_LT(seconds_to_compile(loops(250)), 20);
  expect_too_much_code(loops(300), "at most 3072 basic blocks");
}

TEST(CodeSize, ManySizesAreAnError) {
  auto stores = [](int64_t sizes) {
    std::vector<StmtRef> all;
    for (int64_t k = 1; k <= sizes; ++k) {
      const Dim d = floordiv(n + Dim(k), n + Dim(2 * k));
      all.push_back(put(y, {i + dim_value(d)}, literal(f32, 1)));
    }
    return kernel("long", {x}, {y}, nest(i, index(0), dim_value(n), ForKind::kSerial, both(all)));
  };
  EXPECT_LT(seconds_to_compile(stores(200)), 20);
  expect_too_much_code(stores(400), "at most 262144 basic blocks times sizes");
}

// Of checked loads, which make blocks.
TEST(CodeSize, LongChainsOfChoicesAreAnError) {
  const ExprRef first = at(x, {i});
  ExprRef value = first;
  for (int64_t k = 1; k < 1000; ++k) {
    value = select(less(first, literal(f32, static_cast<double>(k))), at(x, {i + index(k)}), value);
  }
  expect_too_much_code(nest(i, index(0), dim_value(n), ForKind::kSerial, put(y, {i}, value)),
                       "at most 3072 basic blocks");
}

// Each task's context takes part of the stack. LLVM would take a minute to find out how much.
TEST(CodeSize, TasksThatNeedTooMuchStackAreRefusedAtOnce) {
  std::vector<StmtRef> loops;
  std::vector<Ref<const Buffer>> buffers;
  for (int k = 0; k < 170; ++k) {
    auto p = var("p", i64);
    buffers.push_back(buffer(cat("s", k), f32, {n}));
    loops.push_back(
        nest(p, index(0), dim_value(n), ForKind::kParallel,
             put(buffers.back(), {p}, at(k == 0 ? x : buffers[buffers.size() - 2], {p}))));
  }
  StmtRef body = both(loops);
  for (const auto& b : buffers) body = scratch(b, body);
  const std::clock_t start = std::clock();
  try {
    compile_kernels({kernel("long", {x}, {y}, body)}, host_target());
    ADD_FAILURE() << "it compiles";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "kernel 'long' needs too much stack");
  }
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
}

// Each task is a function, but the kernel's functions count together.
TEST(CodeSize, TasksCountTogether) {
  std::vector<StmtRef> loops;
  for (int k = 0; k < 40; ++k) {
    auto u = var("u", i64), p = var("p", i64);
    const StmtRef stores =
        nest(u, index(0), index(500), ForKind::kUnrolled, put(y, {p}, at(x, {u})));
    loops.push_back(nest(p, index(0), dim_value(n), ForKind::kParallel, stores));
  }
  expect_too_much_code(both(loops), "at most 3072 basic blocks");
}

TEST(CodeSize, ManyParametersAreAnError) {
  auto with = [](size_t tensors, size_t rank) {
    std::vector<Ref<const Buffer>> inputs;
    for (size_t t = 0; t < tensors; ++t) {
      Array<Dim> shape;
      for (size_t axis = 0; axis < rank; ++axis)
        shape.push_back(Dim::symbol(cat("s", rank * t + axis)));
      auto b = make<Buffer>(*buffer(cat("x", t), f32, {}));
      b->shape = shape;
      inputs.push_back(b);
    }
    return kernel("long", inputs, {y}, put(y, {index(0)}, literal(f32, 1)));
  };
  expect_too_much_code(with(2048, 0), "at most 2048 tensors and integers");
  expect_too_much_code(with(32, 32), "at most 1024 symbols");
}

// Each output is checked for overlap with each other tensor: in a loop, once there are many.
TEST(CodeSize, EntriesOfManyTensorsGrowLinearly) {
  auto length = [](int tensors) {
    std::vector<Ref<const Buffer>> inputs, outputs;
    for (int t = 0; t < tensors; ++t) {
      inputs.push_back(buffer(cat("x", t), f32, {n}));
      outputs.push_back(buffer(cat("y", t), f32, {n}));
    }
    EmitOptions options;
    std::string text;
    options.ir_text = &text;
    compile_kernels({kernel("wide", inputs, outputs, put(outputs[0], {index(0)}, literal(f32, 1)))},
                    host_target(), options);
    return static_cast<double>(text.size());
  };
  EXPECT_LT(length(200), 2.3 * length(100));
}

}  // namespace
}  // namespace tenon::codegen
