// A cache of primitives, keyed by everything that they depend on.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include <oneapi/dnnl/dnnl.hpp>

#include "library/signatures/signatures.h"
#include "object/tensor.h"
#include "support/rounding.h"

namespace tenon::onednn {

const dnnl::engine& cpu_engine();

// What a call of a primitive reads and writes; bias and residual may be null. Its weights start at
// byte `weights_offset`.
struct Operands {
  void *source, *bias, *residual, *out;
  const Tensor& weights;
  int64_t weights_offset = 0;
};

// A primitive can't be interrupted. A call that multiplies more often is divided, with a poll
// (support/poll.h) before each part: 8e8 take 40 ms at 40 GFLOPS.
inline constexpr double kMostBetweenPolls = 8e8;

// How many of `count` items a part has: at most `fitting`, which may be a fraction, but at least
// one; parts are of about the same size.
inline int64_t at_most(double fitting, int64_t count) {
  if (fitting >= static_cast<double>(count)) return count;
  const auto most = std::max<int64_t>(1, static_cast<int64_t>(fitting));
  return ceil_div(count, ceil_div(count, most));
}

// A primitive and the layouts of its operands. `residual` has the layout of `out`; it is an operand
// or, if the primitive adds to what `out` holds, is copied there. Weights are packed if the
// primitive requires another layout than the caller's.
struct Plan {
  dnnl::primitive primitive;
  dnnl::memory::desc source, given_weights, weights, bias, out;
  size_t scratchpad_bytes = 0;
  bool adds_to_out = false;
  int32_t threads = 1;  // for which oneDNN divided the work
};

// The elements of a tensor that may be null.
inline void* data_of(const Tensor& tensor) {
  return tensor ? tensor.data() : nullptr;
}

// Everything that a plan, and the checks before it, depend on.
class Key {
 public:
  // Of calls of the function. Also adds the number of usable threads.
  explicit Key(const library::Signature& function);

  void add(int64_t value);
  void add(double value);
  void add(std::span<const int64_t> values);
  void add(const Tensor& tensor);  // adds its shape, or that it is null

  bool operator==(const Key& other) const;
  size_t hash() const;

 private:
  std::array<int64_t, 64> words_;
  size_t size_ = 0;
};

// Runs the plan for the key. If there is none, `make` makes it and checks everything that the key
// covers. Beyond kMaxPrimitives, the least recently used plans are evicted. Thread-safe.
void run_planned(const Key& key, const std::function<Plan()>& make, const Operands& operands);
inline constexpr size_t kMaxPrimitives = 1024;

// Post-operations of a plan whose `out` is known: + residual, then the activation.
dnnl::post_ops post_operations(const Plan& plan, bool has_residual, library::Activation activation,
                               float alpha, float beta);

}  // namespace tenon::onednn
