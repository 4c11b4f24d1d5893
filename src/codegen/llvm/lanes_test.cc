// Kernels whose lanes read elements at known distances from each other, and lanes that reductions
// keep apart: compiled for short and long vectors, compared with the evaluator.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <limits>
#include <map>
#include <new>

#include "codegen/llvm/jit_testing.h"
#include "loop/schedule.h"
#include "loop/tensors_testing.h"

namespace tenon::codegen {
namespace {

using namespace loop;

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");

std::vector<Target> targets() {
  return {baseline_target(), host_target()};
}

// Memory between two pages that nothing may touch, since kernels have no checks of a sanitizer: a
// tensor there begins right after the first page or ends right before the second.
class Fence : public Object {
 public:
  static constexpr int32_t kTypeIndex = TypeIndex::Opaque, kTypeLast = kTypeIndex;

  explicit Fence(size_t bytes) : inside_((bytes / kPage + 1) * kPage) {
    memory_ = static_cast<char*>(
        mmap(nullptr, inside_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_ + kPage, inside_, PROT_READ | PROT_WRITE) != 0) {
      throw std::bad_alloc();
    }
  }
  ~Fence() { munmap(memory_, inside_ + 2 * kPage); }
  char* place(size_t bytes, bool at_end) {
    return memory_ + kPage + (at_end ? inside_ - bytes : 0);
  }

 private:
  static constexpr size_t kPage = 4096;
  size_t inside_;
  char* memory_;
};

Tensor fenced(const Tensor& t, bool at_end) {
  const auto bytes = static_cast<size_t>(t.bytes());
  auto fence = make<Fence>(bytes);
  char* const place = fence->place(bytes, at_end);
  std::memcpy(place, t.data(), bytes);
  return Tensor::view(place, t.shape(), t.dtype(), fence, /*read_only=*/false);
}

void expect_agreement(const ComputeRef& c, const std::vector<Tensor>& inputs,
                      const std::map<std::string, int64_t, std::less<>>& symbols = {}) {
  const Tensor expected = evaluate(*c, inputs, symbols)[0];
  for (const Target& target : targets()) {
    ScheduleOptions options;
    options.target = target.facts();
    const KernelRef kernel = lower(*c, "kernel", options);
    SCOPED_TRACE(cat(options.target.vector_bytes, "-byte vectors\n", to_text(*kernel)));
    OpenedKernels opened(compile_kernels({kernel}, target));
    for (const bool at_end : {false, true}) {
      const Tensor found = fenced(Tensor::empty(expected.shape(), expected.dtype()), at_end);
      std::vector<Any> arguments;
      for (const Tensor& t : inputs) arguments.push_back(Any(fenced(t, at_end)));
      arguments.push_back(Any(found));
      for (const String& s : kernel->integers) {
        arguments.push_back(Any(symbols.at(std::string(s.view()))));
      }
      ASSERT_EQ(opened.call("kernel", arguments), 0);
      expect_close(found, expected, 1e-5);
      if (testing::Test::HasFailure()) return;
    }
  }
}

ExprRef quotient(const ExprRef& e, int64_t by) {
  return binary(BinaryOp::kFloorDiv, e, index(by));
}
ExprRef remainder(const ExprRef& e, int64_t by) {
  return binary(BinaryOp::kMod, e, index(by));
}

TEST(Lanes, ElementsAtKnownDistances) {
  std::mt19937 rng(4);
  constexpr int64_t kSize = 211;
  struct Case {
    const char* name;
    std::function<ExprRef(const ExprRef& i)> place;
  };
  const std::vector<Case> cases{
      {"every second", [](const ExprRef& i) { return i * index(2) + index(1); }},
      {"every third", [](const ExprRef& i) { return i * index(3); }},
      {"every fifth", [](const ExprRef& i) { return i * index(5); }},
      {"backwards", [](const ExprRef& i) { return index(kSize - 1) - i; }},
      {"every second backwards", [](const ExprRef& i) { return index(kSize - 1) - i * index(2); }},
      {"each twice", [](const ExprRef& i) { return quotient(i, 2); }},
      {"each twice from the second on", [](const ExprRef& i) { return quotient(i + index(1), 2); }},
      {"each three times", [](const ExprRef& i) { return quotient(i, 3); }},
      {"two of three", [](const ExprRef& i) { return quotient(i * index(3) + index(1), 2); }},
      {"three times two", [](const ExprRef& i) { return quotient(i * index(2) + index(1), 3); }},
      {"seven and again", [](const ExprRef& i) { return remainder(i + index(3), 7); }},
      {"a block of 48 and again", [](const ExprRef& i) { return remainder(i, 48); }},
      {"before 0",
       [](const ExprRef& i) { return quotient(i * index(2) - index(41), 4) + index(20); }},
      {"pairs from two places",
       [](const ExprRef& i) { return remainder(i, 2) * index(90) + quotient(i, 2); }},
  };
  for (const DataType t : {f32, u8, f16, boolean}) {
    const Tensor x = random_tensor(t, {3, kSize}, &rng, t.is_bool() ? 2 : 0);
    for (const int64_t length : {1, 5, 42}) {
      for (const Case& c : cases) {
        SCOPED_TRACE(cat(t, " ", c.name, ", ", length, " elements"));
        auto from = buffer("x", t, {Dim(3), Dim(kSize)}), y = buffer("y", t, {Dim(3), Dim(length)});
        expect_agreement(compute_of({from},
                                    {map_stage(y,
                                               [&](const Indices& i) {
                                                 return at(from, {i[0], c.place(i[1])});
                                               })},
                                    {y}),
                         {x});
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

struct Windows {
  int64_t size, kernel, stride, dilation, before, after;
};

// The greatest or the sum of each window of a padded row, in rows and planes.
ComputeRef windows(const Windows& w, Reduction reduction, DataType t, bool is_symbolic) {
  const Dim size = is_symbolic ? n : Dim(w.size);
  const Dim places =
      floordiv(size + Dim(w.before + w.after - w.dilation * (w.kernel - 1) - 1), Dim(w.stride)) +
      Dim(1);
  auto x = buffer("x", t, {Dim(2), Dim(5), size}), y = buffer("y", t, {Dim(2), Dim(5), places});
  const auto in_row = [&](const ExprRef& e, const Dim& end) {
    return binary(BinaryOp::kAnd, binary(BinaryOp::kLe, index(0), e),
                  binary(BinaryOp::kLt, e, dim_value(end)));
  };
  return compute_of(
      {x},
      {reduce_stage(y, reduction, {Dim(3), Dim(w.kernel)},
                    [&](const Indices& i, const Indices& k) {
                      const ExprRef row = i[1] + k[0] - index(1);
                      const ExprRef place =
                          i[2] * index(w.stride) + k[1] * index(w.dilation) - index(w.before);
                      const ExprRef inside =
                          binary(BinaryOp::kAnd, in_row(row, Dim(5)), in_row(place, size));
                      return select(inside, at(x, {i[0], row, place}), identity(reduction, t));
                    })},
      {y});
}

TEST(Lanes, WindowsAlongRows) {
  std::mt19937 rng(6);
  for (const Windows& w : std::vector<Windows>{{40, 3, 1, 1, 1, 1},
                                               {40, 3, 2, 1, 1, 1},
                                               {37, 3, 2, 1, 1, 0},
                                               {100, 5, 3, 1, 2, 2},
                                               {100, 2, 4, 1, 0, 0},
                                               {64, 3, 1, 4, 4, 4},
                                               {50, 9, 1, 1, 20, 3},
                                               {14, 5, 1, 1, 2, 2},
                                               {7, 7, 1, 1, 3, 3},
                                               {3, 3, 2, 1, 1, 1},
                                               {90, 40, 1, 1, 7, 30}}) {
    for (const Reduction reduction : {Reduction::kMax, Reduction::kSum}) {
      for (const DataType t : {f32, u8}) {
        for (const bool is_symbolic : {false, true}) {
          if (t != f32 && (is_symbolic || reduction != Reduction::kMax)) continue;
          SCOPED_TRACE(cat(w.kernel, " of ", w.size, ", stride ", w.stride, ", ", t,
                           is_symbolic ? ", symbolic" : ""));
          const Tensor x = random_tensor(t, {2, 5, w.size}, &rng);
          expect_agreement(windows(w, reduction, t, is_symbolic), {x}, {{"n", w.size}});
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// Of a few values, so that many are equal, and some NaNs.
TEST(Lanes, PlacesOfExtremes) {
  std::mt19937 rng(7);
  for (const Reduction reduction : {Reduction::kArgMaxFirst, Reduction::kArgMaxLast,
                                    Reduction::kArgMinFirst, Reduction::kArgMinLast}) {
    for (const DataType t : {f32, f64, i8, i64}) {
      if (t != f32 && reduction != Reduction::kArgMaxLast) continue;
      for (const bool reduces_last : {true, false}) {
        for (const bool is_symbolic : {false, true}) {
          for (const int64_t size : {1, 9, 33, 300}) {
            for (const int64_t nans : {0, 2}) {
              if ((nans > 0 && !t.is_float()) || (is_symbolic && t != f32)) continue;
              SCOPED_TRACE(cat(t, " ", size, reduces_last ? ", last axis" : ", first axis", ", ",
                               nans, " NaNs"));
              const Dim reduced = is_symbolic ? n : Dim(size), kept = is_symbolic ? m : Dim(37);
              auto x = buffer(
                  "x", t, reduces_last ? std::vector{kept, reduced} : std::vector{reduced, kept});
              auto y = buffer("y", i64, {kept});
              const ComputeRef c = compute_of(
                  {x},
                  {reduce_stage(y, reduction, {reduced},
                                [&](const Indices& i, const Indices& k) {
                                  return reduces_last ? at(x, {i[0], k[0]}) : at(x, {k[0], i[0]});
                                })},
                  {y});
              Tensor values = random_tensor(
                  t, reduces_last ? std::vector<int64_t>{37, size} : std::vector<int64_t>{size, 37},
                  &rng, 4);
              for (int64_t i = 0; i < nans * 20; ++i) {
                const auto where =
                    static_cast<int64_t>(rng() % static_cast<uint64_t>(values.count()));
                const int64_t nan =
                    float_bits(round_to(t, std::numeric_limits<double>::quiet_NaN()));
                scalar_store(t, static_cast<char*>(values.data()) + where * t.bytes(), nan);
              }
              expect_agreement(c, {values}, {{"n", size}, {"m", 37}});
              if (testing::Test::HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

// Numbers around the ends of the integers' ranges.
TEST(Lanes, FloatsAsIntegersSaturate) {
  for (const DataType from : {f32, f64}) {
    Tensor x = Tensor::empty({40}, from);
    for (int64_t i = 0; i < 40; ++i) {
      const double power = std::ldexp(1 + (i % 3 - 1) * 1e-7, static_cast<int>(29 + i / 3 * 3));
      const double special[] = {std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(), -0.5, 1.75};
      const double v = i < 5 ? special[i] : i % 2 ? power : -power;
      scalar_store(from, static_cast<char*>(x.data()) + i * from.bytes(),
                   float_bits(round_to(from, v)));
    }
    for (const DataType to : {i32, u32, i64, u64}) {
      SCOPED_TRACE(cat(from, " as ", to));
      auto in = buffer("x", from, {Dim(40)}), y = buffer("y", to, {Dim(40)});
      expect_agreement(
          compute_of({in}, {map_stage(y, [&](const Indices& i) { return cast(to, at(in, i)); })},
                     {y}),
          {x});
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tenon::codegen
