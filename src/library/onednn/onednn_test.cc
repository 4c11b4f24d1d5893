// Calls the functions like bytecode does and tests that every argument is checked. Tests of the
// offers cover what they compute.
#include <gtest/gtest.h>
#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <csignal>
#include <random>
#include <thread>

#include "device/parallel.h"
#include "device/preparation.h"
#include "library/onednn/onednn_testing.h"
#include "library/onednn/team.h"

namespace tenon {
namespace {

TEST(Convolution, Computes) {
  ConvolutionCall c;
  EXPECT_EQ(c.run(), "a value");
  EXPECT_EQ(c.out.data_as<float>()[0], 8);  // 2 * 2 * 2 ones in the corner's window
}

// Whichever implementation oneDNN chooses: by gemm, for instance, if the padding is as large as the
// window.
TEST(Convolution, AddsTheResidual) {
  std::mt19937 rng(7);
  const auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(rng);
  };
  for (int i = 0; i < 100; ++i) {
    const int64_t groups = pick(0, 1) ? pick(2, 4) : 1, channels = groups * pick(1, 20),
                  filters = groups * pick(1, 20), window = pick(1, 3), pad = pick(0, window),
                  size = pick(3, 9), out = size + 2 * pad - window + 1;
    ConvolutionCall c;
    c.x = numbers({2, size, size, channels}, 3);
    c.weights = numbers({window, window, channels / groups, filters}, 7);
    if (pick(0, 1)) c.bias = numbers({filters}, 1);
    c.groups = groups;
    c.pads = {pad, pad, pad, pad};
    c.winograd = pick(0, 1);
    c.activation = pick(0, 1);
    const Tensor residual = numbers({2, out, out, filters}, 11);
    Tensor expected = c.out = ones({2, out, out, filters});
    const int64_t activation = std::exchange(c.activation, 0);
    ASSERT_EQ(c.run(), "a value");
    c.activation = activation;
    c.residual = residual;
    c.out = ones({2, out, out, filters});
    ASSERT_EQ(c.run(), "a value");
    for (int64_t at = 0; at < expected.count(); ++at) {
      const float sum = expected.data_as<float>()[at] + residual.data_as<float>()[at];
      ASSERT_EQ(c.out.data_as<float>()[at], activation ? std::max(0.f, sum) : sum)
          << cat("call ", i, " at ", at);
    }
  }
}

// Where windows read nothing but padding, which oneDNN's brgconv can't add a residual to.
TEST(Convolution, AddsTheResidualToPadding) {
  for (const int64_t filters : {6, 32}) {
    ConvolutionCall c;
    c.x = ones({1, 5, 5, 2});
    c.weights = ones({3, 3, 2, filters});
    c.bias = ones({filters});
    c.residual = numbers({1, 7, 3, filters}, 3);
    c.out = ones({1, 7, 3, filters});
    c.pads = {4, 0, 0, 0};
    c.activation = 1;  // Relu
    c.winograd = 0;
    ASSERT_EQ(c.run(), "a value");
    for (int64_t at = 0; at < c.out.count(); ++at) {
      const int64_t rows = std::clamp<int64_t>(at / (3 * filters) - 1, 0, 3);  // of x in the window
      const float sum = static_cast<float>(rows * 3 * 2 + 1) + c.residual.data_as<float>()[at];
      ASSERT_EQ(c.out.data_as<float>()[at], std::max(0.f, sum)) << cat(filters, " at ", at);
    }
  }
}

TEST(Convolution, AddsTheResidualWhereDilatedWindowsMissTheImage) {
  ConvolutionCall c;
  c.x = ones({1, 1, 64});
  c.weights = ones({2, 64, 32});
  c.residual = numbers({1, 1, 32}, 3);
  c.out = ones({1, 1, 32});
  c.strides = {1};
  c.dilations = {4};
  c.pads = {2, 2};
  ASSERT_EQ(c.run(), "a value");
  for (int64_t at = 0; at < 32; ++at)
    ASSERT_EQ(c.out.data_as<float>()[at], c.residual.data_as<float>()[at]) << at;
}

TEST(Convolution, WindowsWhoseSizesOverflowAreRefused) {
  const char* range = "onednn.convolution: a stride, dilation, pad or size is out of range";
  for (int64_t v : {int64_t{-1}, int64_t{1} << 31, INT64_MAX}) {
    ConvolutionCall strides, dilations, pads, ends;
    strides.strides[0] = dilations.dilations[1] = pads.pads[0] = ends.pads[3] = v;
    EXPECT_EQ(strides.run(), range) << v;
    EXPECT_EQ(dilations.run(), range) << v;
    EXPECT_EQ(pads.run(), range) << v;
    EXPECT_EQ(ends.run(), range) << v;
  }
}

TEST(Convolution, GroupsThatDoNotDivideTheChannelsAreRefused) {
  for (int64_t groups : {int64_t{0}, int64_t{2}, int64_t{3}, INT64_MAX}) {
    ConvolutionCall c;
    c.groups = groups;
    EXPECT_EQ(c.run(), "onednn.convolution: channels of x and weights do not fit the groups");
  }
}

TEST(Convolution, ActivationsWithoutANameAreRefused) {
  ConvolutionCall c;
  c.activation = 77;
  EXPECT_EQ(c.run(), "oneDNN: no activation has the number 77");
}

std::string product(const Tensor& a, const Tensor& b, const Tensor& out, const Shape& a_perm,
                    int64_t activation = 0) {
  return outcome("onednn.matmul", a, b, Any(), Any(), out, a_perm, Shape({0, 1}), activation, 0.0,
                 0.0);
}

TEST(MatMul, Computes) {
  Tensor out = ones({2, 4});
  EXPECT_EQ(product(ones({3, 2}), ones({3, 4}), out, Shape({1, 0})), "a value");
  EXPECT_EQ(out.data_as<float>()[7], 3);
}

TEST(MatMul, SumsOfNothingAreZero) {
  Tensor out = ones({2, 4});
  EXPECT_EQ(product(ones({0, 2}), ones({0, 4}), out, Shape({1, 0})), "a value");
  for (int64_t i = 0; i < out.count(); ++i) EXPECT_EQ(out.data_as<float>()[i], 0) << i;
}

TEST(MatMul, ShapesThatDoNotFitAreRefused) {
  EXPECT_EQ(product(ones({3, 2}), ones({3, 4}), ones({2, 4}), Shape({0, 1})),
            "onednn.matmul: the inner sizes of a and b differ");
  EXPECT_EQ(product(ones({3, 2}), ones({3, 4}), ones({2, 5}), Shape({1, 0})),
            "onednn.matmul: out has another shape");
  EXPECT_EQ(product(ones({3, 2}), ones({3, 4}), ones({2, 4}), Shape({1, 1})),
            "onednn.matmul: the permutation of 'a' is [1, 1], expected one of its 2 axes");
}

// Work that would take long is divided: the parts give what the whole would, and are polled
// between.
TEST(MatMul, IsDividedIntoBlocks) {
  const int64_t rows = 2003, inner = 600, columns = 1283;
  const Tensor a = numbers({rows, inner}, 3), b = numbers({inner, columns}, 7);
  const Tensor bias = numbers({columns}, 1), residual = numbers({rows, columns}, 11);
  Tensor out = ones({rows, columns});
  CountingPoller poller;
  const Poller::Scope scope(&poller);
  EXPECT_EQ(outcome("onednn.matmul", a, b, bias, residual, out, Shape({0, 1}), Shape({0, 1}), 0,
                    0.0, 0.0),
            "a value");
  EXPECT_GE(poller.polls, 2);
  for (int64_t at = 0; at < out.count(); at += 9973) {
    const int64_t row = at / columns, column = at % columns;
    float sum = bias.data_as<float>()[column] + residual.data_as<float>()[at];
    for (int64_t i = 0; i < inner; ++i)
      sum += a.data_as<float>()[row * inner + i] * b.data_as<float>()[i * columns + column];
    EXPECT_EQ(out.data_as<float>()[at], sum) << at;
  }
  poller = {};
  poller.stop_at = 2;
  EXPECT_EQ(outcome("onednn.matmul", a, b, bias, residual, out, Shape({0, 1}), Shape({0, 1}), 0,
                    0.0, 0.0),
            "stopped");
}

// A constant's blocks are packed once, like a whole constant.
TEST(MatMul, PacksTheBlocksOfAConstant) {
  const int64_t rows = 40, inner = 4096, columns = 6000;
  const Tensor a = numbers({rows, inner}, 3), b = numbers({inner, columns}, 7).as_constant();
  Tensor out = ones({rows, columns});
  EXPECT_EQ(product(a, b, out, Shape({0, 1})), "a value");
  const int64_t before = packings();
  EXPECT_EQ(product(a, b, out, Shape({0, 1})), "a value");
  EXPECT_EQ(packings(), before);
  for (int64_t at = 0; at < out.count(); at += 4999) {
    float sum = 0;
    for (int64_t i = 0; i < inner; ++i) {
      sum += a.data_as<float>()[at / columns * inner + i] *
             b.data_as<float>()[i * columns + at % columns];
    }
    EXPECT_EQ(out.data_as<float>()[at], sum) << at;
  }
}

// Attention's products: batches of permuted operands, one of which is broadcast.
// Of one row, and of few columns, whose sums the general product divides among threads.
TEST(MatMul, DoesNotDependOnTheNumberOfThreads) {
  struct Size {
    int64_t rows, depth, columns;
  };
  for (const auto& [rows, depth, columns] :
       {Size{1, 1500, 500}, {8, 3000, 40}, {200, 1500, 40}, {200, 3000, 16}, {9, 700, 200}}) {
    SCOPED_TRACE(cat(rows, " by ", depth, " by ", columns));
    const auto fractions = [](std::vector<int64_t> shape) {
      Tensor t = numbers(std::move(shape), 7);
      for (int64_t i = 0; i < t.count(); ++i) {
        t.data_as<float>()[i] /= static_cast<float>(i % 97 + 3);
      }
      return t;
    };
    const Tensor a = fractions({rows, depth}), b = fractions({depth, columns});
    const auto with_threads = [&](int32_t threads) {
      const ThreadsScope scope(threads);
      const Tensor out = ones({rows, columns});
      EXPECT_EQ(product(a, b, out, Shape({0, 1})), "a value");
      const auto* const first = out.data_as<float>();
      return std::vector<float>(first, first + out.count());
    };
    const std::vector<float> one = with_threads(1);
    for (const int32_t threads : {2, 3, 8}) EXPECT_EQ(with_threads(threads), one) << threads;
  }
}

TEST(MatMul, IsDividedBetweenBatches) {
  const int64_t batches = 2, heads = 5, rows = 600, inner = 320, columns = 610;
  const Tensor a = numbers({batches, rows, heads, inner}, 3);
  const Tensor b = numbers({1, columns, heads, inner}, 7);
  Tensor out = ones({batches, heads, rows, columns});
  CountingPoller poller;
  const Poller::Scope scope(&poller);
  EXPECT_EQ(outcome("onednn.matmul", a, b, Any(), Any(), out, Shape({0, 2, 1, 3}),
                    Shape({0, 2, 3, 1}), 0, 0.0, 0.0),
            "a value");
  EXPECT_GE(poller.polls, 2);
  for (int64_t at = 0; at < out.count(); at += 7919) {
    const int64_t column = at % columns, row = at / columns % rows;
    const int64_t head = at / (columns * rows) % heads, batch = at / (columns * rows * heads);
    float sum = 0;
    for (int64_t i = 0; i < inner; ++i) {
      sum += a.data_as<float>()[((batch * rows + row) * heads + head) * inner + i] *
             b.data_as<float>()[(column * heads + head) * inner + i];
    }
    EXPECT_EQ(out.data_as<float>()[at], sum) << at;
  }
}

// Of one image, rows are divided, each with its padding; of many, images.
TEST(Convolution, IsDividedBetweenRowsAndImages) {
  struct Case {
    int64_t images, size, stride, dilation, least_polls;
  };
  for (const Case& c : {Case{2, 151, 1, 1, 4}, Case{1, 301, 2, 2, 2}, Case{7, 75, 1, 2, 2}}) {
    const int64_t in = 64, filters = 96, pad = c.dilation;
    const int64_t size = (c.size + 2 * pad - 2 * c.dilation - 1) / c.stride + 1;
    ConvolutionCall conv;
    conv.x = numbers({c.images, c.size, c.size, in}, 3);
    conv.weights = numbers({3, 3, in, filters}, 7);
    conv.strides = {c.stride, c.stride};
    conv.dilations = {c.dilation, c.dilation};
    conv.pads = {pad, pad, pad, pad};
    conv.out = ones({c.images, size, size, filters});
    CountingPoller poller;
    const Poller::Scope scope(&poller);
    EXPECT_EQ(conv.run(), "a value");
    EXPECT_GE(poller.polls, c.least_polls);
    for (int64_t at = 0; at < conv.out.count(); at += 1021) {
      const int64_t filter = at % filters, column = at / filters % size;
      const int64_t row = at / (filters * size) % size, image = at / (filters * size * size);
      float sum = 0;
      for (int64_t k = 0; k < 9 * in; ++k) {
        const int64_t y = row * c.stride - pad + k / (3 * in) * c.dilation;
        const int64_t x = column * c.stride - pad + k / in % 3 * c.dilation;
        if (y < 0 || x < 0 || y >= c.size || x >= c.size) continue;
        sum += conv.x.data_as<float>()[((image * c.size + y) * c.size + x) * in + k % in] *
               conv.weights.data_as<float>()[k * filters + filter];
      }
      ASSERT_EQ(conv.out.data_as<float>()[at], sum) << c.size << " at " << at;
    }
    poller = {};
    poller.stop_at = 2;
    EXPECT_EQ(conv.run(), "stopped");
  }
}

TEST(Packing, IsKeptForAConstantAndNothingElse) {
  ConvolutionCall c;
  c.x = ones({1, 8, 8, 32}), c.weights = ones({3, 3, 32, 32}), c.out = ones({1, 8, 8, 32});
  EXPECT_EQ(c.run(), "a value");
  int64_t before = packings();
  EXPECT_EQ(c.run(), "a value");
  EXPECT_EQ(packings(), before + 1);
  // Read-only here but writable by others, like the arguments of a program.
  Tensor weights = c.weights;
  c.weights = weights.as_read_only();
  EXPECT_EQ(c.run(), "a value");
  EXPECT_EQ(packings(), before + 2);
  weights.data_as<float>()[0] = 7;
  EXPECT_EQ(c.run(), "a value");
  EXPECT_EQ(packings(), before + 3);
  EXPECT_EQ(c.out.data_as<float>()[9 * 32], 9 * 32 + 6);
  c.weights = weights.as_constant();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(c.run(), "a value");
  EXPECT_EQ(packings(), before + 4);
}

// As the weights of a file are views of one tensor.
TEST(Packing, TellsViewsOfOneTensorApart) {
  constexpr int64_t n = 64;
  Tensor a = ones({n, n}), out = ones({n, n}), whole = ones({2, n, n});
  std::fill_n(whole.data_as<float>() + n * n, n * n, 2.f);
  for (int64_t i : {0, 1, 0}) {
    const Tensor b = Tensor::view(whole.data_as<float>() + i * n * n, std::vector<int64_t>{n, n},
                                  f32, whole.ref())
                         .as_constant();
    EXPECT_EQ(outcome("onednn.matmul", a, b, Any(), Any(), out, Shape({0, 1}), Shape({0, 1}), 0,
                      0.0, 0.0),
              "a value");
    EXPECT_EQ(out.data_as<float>()[5], n * (i + 1)) << i;
  }
}

TEST(Packing, OfOneConstantSeenTwoWaysIsTwo) {
  constexpr int64_t n = 64;
  Tensor a = ones({n, n}), b = ones({n, n}), out = ones({n, n});
  for (int64_t i = 0; i < n * n; ++i) {
    const int64_t row = i / n;
    b.data_as<float>()[i] = static_cast<float>(row);
  }
  b = b.as_constant();
  auto multiply = [&](const Shape& b_perm) {
    return outcome("onednn.matmul", a, b, Any(), Any(), out, Shape({0, 1}), b_perm, 0, 0.0, 0.0);
  };
  EXPECT_EQ(multiply(Shape({0, 1})), "a value");
  EXPECT_EQ(out.data_as<float>()[5], n * (n - 1) / 2);  // 0 + 1 + ... down each column
  EXPECT_EQ(multiply(Shape({1, 0})), "a value");
  EXPECT_EQ(out.data_as<float>()[5], 5 * n);  // 5 + 5 + ... along row 5
}

TEST(Threads, AreThoseOfTheCallThatRuns) {
  ConvolutionCall c;
  c.x = ones({1, 8, 8, 32}), c.weights = ones({3, 3, 32, 32}), c.out = ones({1, 8, 8, 32});
  for (int32_t threads : {1, 3, 2}) {
    ThreadsScope scope(threads);
    EXPECT_EQ(onednn::usable_threads(), std::min(threads, available_threads()));
    EXPECT_EQ(onednn::threads_worth(1e9, 0), onednn::usable_threads());
    EXPECT_EQ(onednn::threads_worth(1e5, 1 << 20), onednn::usable_threads());
    EXPECT_EQ(onednn::threads_worth(1e5, 1000), 1);  // too little to wake anyone for
    EXPECT_EQ(c.run(), "a value");
  }
}

TEST(Threads, OfTheHostAreAsManyAsBefore) {
  ConvolutionCall small, large;
  large.x = ones({1, 8, 8, 32}), large.weights = ones({3, 3, 32, 32});
  large.out = ones({1, 8, 8, 32});
  for (int host : {1, 5}) {
    omp_set_num_threads(host);
    for (const ConvolutionCall* c : {&small, &large}) {
      EXPECT_EQ(c->run(), "a value");
      EXPECT_EQ(omp_get_max_threads(), host);
    }
  }
}

TEST(Threads, AreLentToLoops) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "not lent under the thread sanitizer";
#endif
  register_onednn();
  function_named("onednn.lend_threads")();  // like a program that uses it
  ThreadsScope scope(3);
  std::atomic<int> in_team{0};
  parallel_for(
      3, 1, [&](int64_t, int64_t) { in_team += omp_get_num_threads() == onednn::usable_threads(); },
      true);
  EXPECT_EQ(in_team, 3);

  set_thread_team(nullptr);
  function_named("onednn.lend_threads")();  // the next program changes nothing
  std::atomic<int> outside{0};
  parallel_for(
      3, 1, [&](int64_t, int64_t) { outside += !omp_in_parallel(); }, true);
  EXPECT_EQ(outside, 3);
}

TEST(Packing, IsDoneOnceWhereManyComeFirst) {
  ConvolutionCall c;
  c.x = ones({1, 8, 8, 32}), c.weights = ones({3, 3, 32, 32}).as_constant();
  c.out = ones({1, 8, 8, 32});
  {
    ThreadsScope scope(1);
    EXPECT_EQ(c.run(), "a value");  // the plan exists
  }
  c.weights = ones({3, 3, 32, 32}).as_constant();
  const int64_t before = packings();
  std::vector<std::thread> threads;
  threads.reserve(8);
  std::barrier start(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      ConvolutionCall mine(c);
      mine.out = ones({1, 8, 8, 32});
      ThreadsScope scope(1);
      start.arrive_and_wait();
      EXPECT_EQ(mine.run(), "a value");
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(packings(), before + 1);
}

TEST(Preparation, PacksTheConstantAndComputesNothing) {
  ConvolutionCall c;
  c.x = ones({1, 8, 8, 32}), c.weights = ones({3, 3, 32, 32}).as_constant();
  c.out = ones({1, 8, 8, 32});
  c.winograd = 0;
  register_onednn();
  const int64_t before = packings();
  {
    const PreparationScope scope;
    EXPECT_EQ(c.run(), "a value");
  }
  EXPECT_EQ(packings(), before + 1);
  EXPECT_EQ(c.out.data_as<float>()[9 * 32], 1);
  EXPECT_EQ(c.run(), "a value");
  EXPECT_EQ(packings(), before + 1);
  EXPECT_EQ(c.out.data_as<float>()[9 * 32], 9 * 32);
}

TEST(Packing, IsForgottenWithItsConstant) {
  register_onednn();
  auto kept = [] { return function_named("onednn.packed_count")().as<int64_t>(); };
  function_named("onednn.forget_unused")();
  const int64_t before = kept();
  {
    ConvolutionCall c;
    c.x = ones({1, 8, 8, 32}), c.weights = ones({3, 3, 32, 32}).as_constant();
    c.out = ones({1, 8, 8, 32});
    EXPECT_EQ(c.run(), "a value");
    function_named("onednn.forget_unused")();
    EXPECT_EQ(kept(), before + 1);
  }
  function_named("onednn.forget_unused")();
  EXPECT_EQ(kept(), before);
}

// A product runs while the stack pointer points into a small block of the heap.
TEST(Threads, HandleSignalsOnStacksOfTheirOwn) {
  std::thread([] {
    Tensor out = ones({2, 4});
    EXPECT_EQ(product(ones({3, 2}), ones({3, 4}), out, Shape({1, 0})), "a value");
    static std::atomic<int> flags = 0;
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) {
      stack_t stack{};
      if (sigaltstack(nullptr, &stack) == 0) flags = stack.ss_flags;
    };
    action.sa_flags = SA_ONSTACK;
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    ASSERT_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
    ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
    EXPECT_TRUE(flags & SS_ONSTACK);
  }).join();
}

TEST(Threads, AForkedChildGoesOnWithoutThem) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a child of a fork that starts threads";
#endif
  ThreadsScope scope(2);
  ConvolutionCall c;
  c.x = ones({1, 8, 8, 32}), c.weights = ones({3, 3, 32, 32}), c.out = ones({1, 8, 8, 32});
  auto works = [&] {
    std::atomic<int64_t> sum{0};
    parallel_for(100, 1, [&](int64_t b, int64_t e) { sum += e - b; });
    return c.run() == "a value" && sum == 100;
  };
  ASSERT_TRUE(works());
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a hang is a failure
    _exit(works() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tenon
