// Schedules and code generation together: random computes, compiled, compared with the evaluator.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "codegen/llvm/jit_testing.h"
#include "loop/convolution_testing.h"
#include "loop/inline_stages.h"
#include "loop/random_compute_testing.h"
#include "loop/schedule.h"
#include "loop/word_product_testing.h"

namespace tenon::codegen {
namespace {

using namespace loop;

bool runs_here(const Target& target) {
  const std::vector<std::string> here = host_target().features;
  return target.architecture == &host_architecture() &&
         std::ranges::all_of(target.features, [&](const std::string& feature) {
           return std::ranges::find(here, feature) != here.end();
         });
}

// Every byte is random.
Tensor random_bits(DataType dtype, const std::vector<int64_t>& shape, std::mt19937* rng) {
  Tensor x = Tensor::empty(shape, dtype);
  auto* bytes = static_cast<uint8_t*>(x.data());
  for (int64_t i = 0; i < x.count() * dtype.bytes(); ++i) {
    bytes[i] = static_cast<uint8_t>((*rng)());
  }
  return x;
}

// relu(x[rows, depth] * w[depth, panels * width] + 1), with w in panels.
ComputeRef packed_product(const Dim& rows, const Dim& depth, int64_t panels, int64_t width) {
  auto x = buffer("x", f32, {rows, depth}), w = buffer("w", f32, {panels, depth, width});
  auto p = buffer("p", f32, {rows, panels * width}), y = buffer("y", f32, {rows, panels * width});
  const ExprRef by = index(width);
  return compute_of({x, w},
                    {reduce_stage(p, Reduction::kSum, {depth},
                                  [&](const Indices& i, const Indices& k) {
                                    ExprRef panel = binary(BinaryOp::kFloorDiv, i[1], by),
                                            column = binary(BinaryOp::kMod, i[1], by);
                                    return at(x, {i[0], k[0]}) * at(w, {panel, k[0], column});
                                  }),
                     map_stage(y,
                               [&](const Indices& i) {
                                 return binary(BinaryOp::kMax, at(p, i) + literal(f32, 1),
                                               literal(f32, 0));
                               })},
                    {y});
}

TEST(ScheduleEmit, PanelsOfAPackedOperandAreReadWhereTheyLie) {
  const Dim n = Dim::symbol("n"), k = Dim::symbol("k");
  std::mt19937 rng(5);
  for (const char* cpu : {"x86-64-v2", "native"}) {
    const Target target = parse_target(cpu);
    const int64_t lanes = target.capabilities.vector_bytes / 4;
    for (const int64_t width : {lanes, 2 * lanes, int64_t{6}}) {
      for (const int64_t rows : {1, 3, 30}) {
        for (const int64_t depth : {5, 700}) {
          for (const bool symbolic : {false, true}) {
            SCOPED_TRACE(cat(cpu, " ", width, " ", rows, " ", depth, symbolic ? " symbolic" : ""));
            const ComputeRef c =
                symbolic ? packed_product(n, k, 20, width) : packed_product(rows, depth, 20, width);
            ScheduleOptions options;
            options.target = target.facts();
            const KernelRef kernel = lower(*c, "product", options);
            const Tensor x = random_tensor(f32, {rows, depth}, &rng),
                         w = random_tensor(f32, {20, depth, width}, &rng);
            Tensor y = Tensor::empty({rows, 20 * width}, f32);
            OpenedKernels opened(compile_kernels({kernel}, target));
            ASSERT_EQ(opened.call("product", {x, w, y}), 0);
            expect_close(y, evaluate(*c, {x, w}, {{"n", rows}, {"k", depth}})[0], 1e-4);
            // Nothing is repacked if a panel is as wide as a tile.
            const bool wide = rows > 1 && width % lanes == 0;
            if (wide) {
              EXPECT_EQ(to_text(*kernel).find("b_pack"), std::string::npos);
              EXPECT_NE(to_text(*kernel).find("prefetch w["), std::string::npos);
            }
          }
        }
      }
    }
  }
}

// Of one block and of several, with panels of weights one by one and together, in place of what
// they add.
TEST(ScheduleEmit, ConvolutionsByWinogradAgreeWithPlainLoops) {
  std::mt19937 rng(3);
  const Target native = host_target();
  struct Case {
    ConvolutionForm form;
    int64_t images;
  };
  for (const auto& [f, images] : std::vector<Case>{{{{1, 14, 14, 32, 128}, 1, 64}, 1},
                                                   {{{2, 30, 29, 16, 192}, 1, 64}, 2},
                                                   {{{1, 9, 11, 48, 32}, 0}, 1},
                                                   {{{0, 12, 12, 16, 128}, 1, 64}, 1},
                                                   {{{0, 12, 12, 16, 128}, 1, 64}, 3}}) {
    const ComputeRef c = convolution(f);
    std::vector<Tensor> inputs;
    for (const auto& b : c->inputs) {
      std::vector<int64_t> shape;
      for (const Dim& d : b->shape) shape.push_back(d.as_const().value_or(images));
      inputs.push_back(random_tensor(f32, shape, &rng));
    }
    const auto results = [&](const Target& target, const ScheduleOptions& options) {
      const KernelRef kernel = lower(*c, "convolution", options);
      OpenedKernels opened(compile_kernels({kernel}, target));
      Tensor y = Tensor::empty(inputs[3].shape(), f32);
      std::memcpy(y.data(), inputs[3].data(), static_cast<size_t>(y.bytes()));
      EXPECT_EQ(opened.call("convolution", {inputs[0], inputs[1], inputs[2], y, y}), 0);
      EXPECT_EQ(opened.workspaces_held, 0);
      return y;
    };
    const Tensor expected = results(native, {.level = ScheduleLevel::kPlain, .target = {}});
    for (const char* cpu : {"x86-64-v2", "x86-64-v3", "native"}) {
      const Target target = parse_target(cpu);
      if (!runs_here(target)) continue;
      for (const int64_t tile : {2, 4}) {
        SCOPED_TRACE(
            cat(images, " x ", f.shape.height, " x ", f.shape.width, ", tile ", tile, ", ", cpu));
        ScheduleOptions options;
        options.target = target.facts();
        options.winograd_tile = [&](const ConvolutionShape&) { return tile; };
        expect_close(results(target, options), expected, 2e-3);
      }
    }
  }
}

// Whole and partial vectors, with the instructions of each level that this machine has.
TEST(ScheduleEmit, DotProductsOfBytesAreExact) {
  std::mt19937 rng(7);
  for (const char* cpu : {"x86-64", "x86-64-v3", "x86-64-v4", "native"}) {
    const Target target = parse_target(cpu);
    if (!runs_here(target)) continue;
    for (const int64_t columns : {1, 3, 4, 5, 8, 16, 40, 64}) {
      for (const int64_t rows : {1, 2, 13}) {
        SCOPED_TRACE(cat(cpu, " ", rows, " ", columns));
        const ComputeRef c = word_product(rows, 2, 5, columns);
        ScheduleOptions options;
        options.target = target.facts();
        const Tensor x = random_bits(u8, {rows + 1, 24}, &rng),
                     w = random_bits(i32, {2, 5, columns}, &rng);
        Tensor y = Tensor::empty({rows, columns}, i32);
        OpenedKernels opened(compile_kernels({lower(*c, "product", options)}, target));
        ASSERT_EQ(opened.call("product", {x, w, y}), 0);
        expect_close(y, evaluate(*c, {x, w})[0], 0);
      }
    }
  }
}

// Registers that hold matrices: one or two of rows, and of columns, in place and packed, with
// depths beside whole steps of 16 words.
TEST(ScheduleEmit, MatricesOfBytesAreExact) {
  const Target target = host_target();
  if (!target.capabilities.byte_matrices) GTEST_SKIP() << "no registers that hold matrices";
  std::mt19937 rng(9);
  ScheduleOptions options;
  options.target = target.facts();
  for (const int64_t rows : {7, 29, 100}) {
    for (const int64_t height : {1, 3}) {
      for (const int64_t words : {8, 19, 64}) {
        for (const int64_t columns : {16, 48}) {
          for (const bool symbolic : {false, true}) {
            SCOPED_TRACE(cat(rows, " ", height, " ", words, " ", columns, symbolic ? " n" : ""));
            const ComputeRef c =
                word_product(symbolic ? Dim::symbol("n") : Dim(rows), height, words, columns);
            const KernelRef kernel = lower(*c, "product", options);
            if (columns >= 32) {
              EXPECT_NE(to_text(*kernel).find("matrix"), std::string::npos);
            }
            const Tensor x = random_bits(u8, {rows + height - 1, 4 * words + 4}, &rng),
                         w = random_bits(i32, {height, words, columns}, &rng);
            Tensor y = Tensor::empty({rows, columns}, i32);
            OpenedKernels opened(compile_kernels({kernel}, target));
            ASSERT_EQ(opened.call("product", {x, w, y}), 0);
            expect_close(y, evaluate(*c, {x, w}, {{"n", rows}})[0], 0);
          }
        }
      }
    }
  }
}

// What a host runs while it is polled may use the same registers.
TEST(ScheduleEmit, MatricesOutliveAPoll) {
#if defined(__x86_64__)
  const Target target = host_target();
  if (!target.capabilities.byte_matrices) GTEST_SKIP() << "no registers that hold matrices";
  std::mt19937 rng(10);
  ScheduleOptions options;
  options.target = target.facts();
  // Much follows the product, so that a task is polled.
  const ComputeRef sums = word_product(256, 1, 64, 64);
  const auto z = buffer("z", f32, {Dim(256), Dim(64)});
  const auto after = map_stage(z, [&](const std::vector<ExprRef>& i) {
    ExprRef e = cast(f32, load(sums->outputs[0], Array<ExprRef>(i)));
    for (int n = 0; n < 100; ++n) e = unary(UnaryOp::kTanh, e);
    return e;
  });
  const ComputeRef c =
      compute_of({sums->inputs[0], sums->inputs[1]}, {sums->stages[0], after}, {z});
  const Tensor x = random_bits(u8, {256, 260}, &rng), w = random_bits(i32, {1, 64, 64}, &rng);
  const Tensor y = Tensor::empty({256, 64}, f32), expected = Tensor::empty({256, 64}, f32);
  const KernelRef kernel = lower(*c, "product", options);
  EXPECT_NE(to_text(*kernel).find("matrix"), std::string::npos);
  OpenedKernels opened(compile_kernels({kernel}, target));
  ASSERT_EQ(opened.call("product", {x, w, expected}), 0);
  const int64_t polls = opened.polls;
  EXPECT_GT(polls, 1);
  opened.at_poll = [] { __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0"); };  // tilerelease
  ASSERT_EQ(opened.call("product", {x, w, y}), 0);
  EXPECT_EQ(opened.polls, 2 * polls);
  expect_close(y, expected, 0);
#endif
}

TEST(ScheduleEmit, SlidingWindowsOfWordsAreExact) {
  std::mt19937 rng(8);
  for (const char* cpu : {"x86-64", "x86-64-v3", "x86-64-v4", "native"}) {
    const Target target = parse_target(cpu);
    if (!runs_here(target)) continue;
    ScheduleOptions options;
    options.target = target.facts();
    for (const loop::SlidingWords& s : std::vector<loop::SlidingWords>{{9, 14, 60, 3, 1, 1, 1},
                                                                       {9, 14, 200, 3, 1, 2, 1},
                                                                       {9, 14, 24, 2, 1, 3, 0},
                                                                       {9, 14, 192, 5, 2, 1, 2}}) {
      SCOPED_TRACE(cat(cpu, " ", s.channels, " channels, stride ", s.stride));
      const ComputeRef c = loop::sliding_words(s, Dim(s.rows));
      const Tensor x = random_bits(u8, {s.rows, s.places, s.channels}, &rng),
                   w = random_bits(i32, {s.height, s.words, s.channels}, &rng),
                   bias = random_bits(i32, {s.channels}, &rng);
      const KernelRef kernel = lower(*c, "sums", options);
      EXPECT_NE(to_text(*kernel).find("window"), std::string::npos);
      const Tensor expected = evaluate(*c, {x, w, bias})[0];
      Tensor y = Tensor::empty({expected.dim(0), expected.dim(1), s.channels}, i32);
      OpenedKernels opened(compile_kernels({kernel}, target));
      ASSERT_EQ(opened.call("sums", {x, w, bias, y}), 0);
      expect_close(y, expected, 0);
    }
  }
}

void compare(unsigned first, unsigned end, const Target& target,
             ScheduleLevel level = ScheduleLevel::kShaped) {
  Array<KernelRef> kernels;
  for (unsigned seed = first; seed < end; ++seed) {
    ScheduleOptions options;
    options.target = target.facts();
    options.level = level;
    kernels.push_back(
        lower(*inline_stages(RandomCompute(seed).compute()), cat("random", seed), options));
  }
  OpenedKernels opened(compile_kernels(kernels, target));
  for (unsigned seed = first; seed < end; ++seed) {
    RandomCompute r(seed);
    const KernelRef& kernel = kernels[seed - first];
    SCOPED_TRACE(cat("seed ", seed, "\n", to_text(*r.compute()), to_text(*kernel)));
    std::vector<Tensor> expected = evaluate(*r.compute(), r.inputs(), r.symbols());
    std::vector<Any> arguments;
    for (const Tensor& t : r.inputs()) arguments.push_back(Any(t));
    std::vector<Tensor> found;
    for (const Tensor& t : expected) {
      found.push_back(Tensor::empty(t.shape(), t.dtype()));
      arguments.push_back(Any(found.back()));
    }
    for (const String& s : kernel->integers) {
      arguments.push_back(Any(r.symbols().find(s.view())->second));
    }
    ASSERT_EQ(opened.call(std::string(kernel->name.view()), arguments), 0);
    for (size_t i = 0; i < found.size(); ++i) expect_close(found[i], expected[i], 1e-3);
    if (!kernel->in_place.empty()) {
      const auto input = static_cast<size_t>(kernel->in_place[0].input()),
                 output = static_cast<size_t>(kernel->in_place[0].output());
      const Tensor& x = r.inputs()[input];
      found[output] =
          Tensor::copy_of_bytes(x.shape(), x.dtype(), x.data(), static_cast<size_t>(x.bytes()));
      arguments[input] = arguments[r.inputs().size() + output] = Any(found[output]);
      ASSERT_EQ(opened.call(std::string(kernel->name.view()), arguments), 0);
      for (size_t i = 0; i < found.size(); ++i) expect_close(found[i], expected[i], 1e-3);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ScheduleEmit, RandomComputesOnThisMachine) {
  compare(0, 100, host_target());
}
TEST(ScheduleEmit, RandomComputesWithPlainLoops) {
  compare(150, 200, host_target(), ScheduleLevel::kPlain);
}
TEST(ScheduleEmit, RandomComputesOnTheBaseline) {
  compare(100, 150, baseline_target());
}

// A map's parts have sizes computed in the loop, and their values decide whether it is shared; also
// in vectors of two elements.
TEST(ScheduleEmit, AMapIsSharedWhereItsWorkIsWorthIt) {
  const Dim n = Dim::symbol("n");
  for (const Dim& rows : {n, Dim(300)}) {
    for (const DataType dtype : {f32, f64}) {
      auto x = buffer("x", dtype, {rows, 512}), y = buffer("y", dtype, {rows, 512});
      auto stage = map_stage(y, [&](const std::vector<ExprRef>& i) {
        return binary(BinaryOp::kMax, load(x, {i[0], i[1]}), literal(dtype, 0));
      });
      const ComputeRef compute = whole_kernel({x}, {stage}, {y}, /*in_bounds=*/true);
      ScheduleOptions options;
      options.target.vector_bytes = 16;
      OpenedKernels opened(compile_kernels({lower(*compute, "relu", options)}, baseline_target()));
      auto shares = [&](int64_t size) {
        opened.parallel_calls = 0;
        Tensor in = Tensor::empty({size, 512}, dtype), out = Tensor::empty({size, 512}, dtype);
        EXPECT_EQ(opened.call("relu", {in, out}), 0);
        return opened.parallel_calls;
      };
      EXPECT_EQ(shares(300), 1);
      if (!rows.is_const()) {
        EXPECT_EQ(shares(10), 0);
      }
    }
  }
}

// Blocks of rows and of columns are numbered together, so that both numbers are divided out of one.
TEST(ScheduleEmit, AProductIsSharedWhateverTheNumberOfItsBlocks) {
  for (const int64_t panels : {8, 16, 24, 48}) {
    SCOPED_TRACE(panels);
    ScheduleOptions options;
    options.target.vector_bytes = 16;
    const int64_t width = 8;
    const ComputeRef compute = packed_product(128, 256, panels, width);
    OpenedKernels opened(compile_kernels({lower(*compute, "product", options)}, baseline_target()));
    Tensor x = Tensor::empty({128, 256}, f32), w = Tensor::empty({panels, 256, width}, f32),
           y = Tensor::empty({128, panels * width}, f32);
    EXPECT_EQ(opened.call("product", {x, w, y}), 0);
    EXPECT_EQ(opened.parallel_calls, 1);
  }
}

}  // namespace
}  // namespace tenon::codegen
