#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "device/parallel.h"
#include "library/onednn/onednn_testing.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

Tensor random_tensor(const Ints& shape, std::mt19937* rng) {
  std::normal_distribution<float> normal;
  Tensor t = Tensor::empty(shape, f32);
  for (int64_t i = 0; i < t.count(); ++i) t.data_as<float>()[i] = normal(*rng);
  return t;
}

Ints moved(const Ints& shape, const Ints& perm) {
  Ints out;
  for (const int64_t axis : perm) out.push_back(shape[static_cast<size_t>(axis)]);
  return out;
}

Ints inverse(const Ints& perm) {
  Ints out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    out[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return out;
}

// The element at an index of `t` with its axes permuted; an axis of size 1 is broadcast.
float element(const Tensor& t, const Ints& perm, const Ints& index) {
  int64_t at = 0;
  const size_t skipped = index.size() - perm.size();
  for (size_t i = 0; i < perm.size(); ++i) {
    const auto axis = static_cast<int32_t>(perm[i]);
    if (t.dim(axis) != 1) at += index[skipped + i] * t.strides()[static_cast<size_t>(axis)];
  }
  return t.data_as<float>()[at];
}

struct Call {
  int64_t batch = 2, heads = 3, rows = 5, keys = 7, depth = 4, width = 4;
  Ints q_perm = {0, 1, 2, 3}, k_perm = q_perm, v_perm = q_perm, out_perm = q_perm;
  double scale = 0.5;
  Tensor q, k, v, mask, out;

  void fill(std::mt19937* rng) {
    q = random_tensor(moved({batch, heads, rows, depth}, inverse(q_perm)), rng);
    k = random_tensor(moved({batch, heads, depth, keys}, inverse(k_perm)), rng);
    v = random_tensor(moved({batch, heads, keys, width}, inverse(v_perm)), rng);
    out = Tensor::empty(moved({batch, heads, rows, width}, out_perm), f32);
  }

  std::string run() const {
    return outcome("onednn.attention", q, k, v, ConvolutionCall::any(mask), out, Shape(q_perm),
                   Shape(k_perm), Shape(v_perm), Shape(out_perm), scale);
  }

  // The greatest difference to the definition, in f64.
  double error() const {
    double worst = 0;
    const Ints natural = {0, 1, 2, 3};
    const auto rank = static_cast<size_t>(mask ? mask.rank() : 0);
    const Ints mask_perm(natural.begin(), natural.begin() + static_cast<std::ptrdiff_t>(rank));
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t n = 0; n < rows; ++n) {
          std::vector<double> p(static_cast<size_t>(keys));
          double most = -INFINITY, sum = 0;
          for (int64_t m = 0; m < keys; ++m) {
            double& score = p[static_cast<size_t>(m)];
            for (int64_t d = 0; d < depth; ++d)
              score += double{element(q, q_perm, {b, h, n, d})} * element(k, k_perm, {b, h, d, m});
            score = score * scale + (mask ? element(mask, mask_perm, {b, h, n, m}) : 0);
            most = std::max(most, score);
          }
          for (double& e : p) sum += e = std::exp(e - most);
          for (int64_t c = 0; c < width; ++c) {
            double expected = 0;
            for (int64_t m = 0; m < keys; ++m)
              expected += p[static_cast<size_t>(m)] / sum * element(v, v_perm, {b, h, m, c});
            const float found = element(out, inverse(out_perm), {b, h, n, c});
            const double difference = std::fabs(found - expected);
            worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
          }
        }
      }
    }
    return worst;
  }
};

TEST(Attention, AgreesWithItsDefinition) {
  std::mt19937 rng(7);
  auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(rng);
  };
  for (int i = 0; i < 150; ++i) {
    Call call;
    call.batch = pick(1, 2);
    call.heads = pick(1, 3);
    call.rows = pick(1, 60);
    call.keys = pick(1, 150);
    call.depth = pick(1, 70);
    call.width = pick(1, 70);
    call.scale = 1 / std::sqrt(static_cast<double>(call.depth));
    for (Ints* perm : {&call.q_perm, &call.k_perm, &call.v_perm, &call.out_perm}) {
      if (pick(0, 1)) std::shuffle(perm->begin(), perm->end(), rng);
    }
    call.fill(&rng);
    if (pick(0, 1)) {
      Ints shape = {call.batch, call.heads, call.rows, call.keys};
      for (int64_t& size : shape) size = pick(0, 1) ? size : 1;
      call.mask = random_tensor(Ints(shape.begin() + pick(0, 2), shape.end()), &rng);
    }
    ASSERT_EQ(call.run(), "a value");
    ASSERT_LT(call.error(), 1e-5) << i;
  }
}

// So many keys are packed and multiplied in parts.
TEST(Attention, OfManyKeys) {
  std::mt19937 rng(7);
  for (const int64_t rows : {3, 7}) {
    Call call;
    call.batch = call.heads = 1;
    call.rows = rows;
    call.keys = 4'201;
    call.depth = 1000;  // so that some 4,000 keys are a part
    call.k_perm = {0, 1, 3, 2};
    call.scale = 0.1;
    call.fill(&rng);
    const ThreadsScope threads(1);
    CountingPoller poller;
    const Poller::Scope scope(&poller);
    ASSERT_EQ(call.run(), "a value");
    EXPECT_GE(poller.polls, 4);
    EXPECT_LT(call.error(), 1e-5);
  }
}

TEST(Attention, DoesNotDependOnThreads) {
  std::mt19937 rng(7);
  for (const int64_t rows : {1, 2, 5, 6, 7, 8, 11, 13, 24, 200}) {
    Call call;
    call.batch = 1;
    call.rows = rows;
    call.keys = 3000;  // so that a few rows are worth several threads
    call.depth = call.width = 64;
    call.k_perm = {0, 1, 3, 2};
    call.fill(&rng);
    std::vector<float> expected;
    for (const int32_t threads : {1, 2, 4}) {
      const ThreadsScope scope(threads);
      ASSERT_EQ(call.run(), "a value");
      const std::vector<float> found(call.out.data_as<float>(),
                                     call.out.data_as<float>() + call.out.count());
      if (expected.empty()) expected = found;
      EXPECT_EQ(found, expected) << rows << " rows";
    }
  }
}

// Where a row has an infinite or undefined score, as softmax.
TEST(Attention, ScoresThatAreNoNumbers) {
  std::mt19937 rng(7);
  for (const int64_t rows : {3, 20}) {
    Call call;
    call.batch = call.heads = 1;
    call.rows = rows;
    call.keys = 37;
    call.fill(&rng);
    call.mask = Tensor::empty({rows, call.keys}, f32);
    std::fill_n(call.mask.data_as<float>(), call.mask.count(), 0.f);
    auto mask = [&](int64_t row, int64_t key) -> float& {
      return call.mask.data_as<float>()[row * call.keys + key];
    };
    mask(0, 36) = NAN;
    mask(1, 3) = INFINITY;
    for (int64_t key = 1; key < call.keys; ++key) mask(2, key) = -INFINITY;
    ASSERT_EQ(call.run(), "a value");
    const float* out = call.out.data_as<float>();
    for (int64_t c = 0; c < call.width; ++c) {
      EXPECT_TRUE(std::isnan(out[c]));
      EXPECT_TRUE(std::isnan(out[call.width + c]));
      EXPECT_EQ(out[2 * call.width + c], call.v.data_as<float>()[c]);
    }
    for (int64_t key = 0; key < call.keys; ++key) mask(0, key) = -INFINITY;
    ASSERT_EQ(call.run(), "a value");
    EXPECT_TRUE(std::isnan(out[0]));
  }
}

TEST(Attention, WithoutKeysOrDepth) {
  std::mt19937 rng(7);
  Call call;
  call.keys = 0;
  call.fill(&rng);
  ASSERT_EQ(call.run(), "a value");
  for (int64_t i = 0; i < call.out.count(); ++i) EXPECT_EQ(call.out.data_as<float>()[i], 0);
  call.keys = 7;
  call.depth = 0;
  call.fill(&rng);
  ASSERT_EQ(call.run(), "a value");
  EXPECT_LT(call.error(), 1e-6);
  call.rows = 0;
  call.fill(&rng);
  EXPECT_EQ(call.run(), "a value");
}

TEST(Attention, RefusesWhatDoesNotFit) {
  std::mt19937 rng(7);
  auto failure = [&](const std::function<void(Call*)>& change) {
    Call call;
    call.fill(&rng);
    change(&call);
    return call.run();
  };
  const std::string name = "onednn.attention: ";
  EXPECT_EQ(failure([](Call* c) {
              c->q = ones({2, 3, 5, 3});
            }),
            name + "the inner sizes of q and k differ");
  EXPECT_EQ(failure([](Call* c) {
              c->v = ones({2, 3, 6, 4});
            }),
            name + "k and v differ in the number of keys");
  EXPECT_EQ(failure([](Call* c) { c->out = ones({2, 3, 5, 5}); }), name + "out has another shape");
  EXPECT_EQ(failure([](Call* c) {
              c->k = ones({2, 2, 4, 7});
            }),
            name + "k has size 2 where 3 fits");
  EXPECT_EQ(failure([](Call* c) {
              c->mask = ones({4, 7});
            }),
            name + "mask has size 4 where 5 fits");
  EXPECT_EQ(failure([](Call* c) { c->mask = ones({6}); }), name + "mask has size 6 where 7 fits");
  EXPECT_EQ(failure([](Call* c) {
              c->q_perm = {0, 1, 2, 2};
            }),
            name + "the permutation of 'q' is [0, 1, 2, 2], expected one of its 4 axes");
  EXPECT_EQ(failure([](Call* c) {
              c->q_perm = {0, 1, 2, -1};
            }),
            name + "the permutation of 'q' is [0, 1, 2, -1], expected one of its 4 axes");
  EXPECT_EQ(failure([](Call* c) {
              c->q_perm = {0, 1, 2};
            }),
            name + "the permutation of 'q' is [0, 1, 2], expected one of its 4 axes");
  EXPECT_EQ(failure([](Call* c) {
              c->q = ones({1, 2, 3, 5, 4});
            }),
            name + "q has rank 5, expected 1 to 4");
  EXPECT_EQ(failure([](Call* c) {
              c->q = Tensor::empty({2, 3, 5, 4}, f64);
            }),
            name + "'q' is not a compact tensor[*; f32] on the CPU");
}

TEST(Attention, Polls) {
  std::mt19937 rng(7);
  Call call;
  call.fill(&rng);
  CountingPoller poller;
  Poller::Scope scope(&poller);
  poller.stop_at = 3;
  EXPECT_EQ(call.run(), "stopped");
}

}  // namespace
}  // namespace tenon
