// Primitives by what they were made for.
#pragma once

#include <array>
#include <functional>
#include <span>

#include <oneapi/dnnl/dnnl.hpp>

#include "library/signatures/signatures.h"
#include "object/tensor.h"

namespace tenon::onednn {

const dnnl::engine& cpu_engine();

// The tensors of one call; bias and residual may be null.
struct Operands {
  const Tensor &source, &weights, &bias, &residual, &out;
};

// A primitive, and how the operands lie in memory. `residual` lies as `out` does. Where the
// primitive wants other weights than the caller has, they are packed.
struct Plan {
  dnnl::primitive primitive;
  dnnl::memory::desc source, given_weights, weights, bias, out;
  size_t scratchpad_bytes = 0;
  int32_t threads = 1;  // that oneDNN divided the work for
};

// Everything that a plan, and the checks before it, depend on.
class Key {
 public:
  // 1 for convolutions, 2 for products; the number of usable threads goes with it.
  explicit Key(int64_t function);

  void add(int64_t value);
  void add(double value);
  void add(std::span<const int64_t> values);
  void add(const Tensor& tensor);  // its shape, or that it is null

  bool operator==(const Key& other) const;
  size_t hash() const;

 private:
  std::array<int64_t, 64> words_;
  size_t size_ = 0;
};

// Runs the plan of that key, made by `make` when there is none: there belong all checks of what the
// key says. The least recently used plans go beyond kMaxPrimitives. Any thread.
void run_planned(const Key& key, const std::function<Plan()>& make, const Operands& operands);
inline constexpr size_t kMaxPrimitives = 1024;

// Post-operations: + residual, then the activation.
dnnl::post_ops post_operations(const dnnl::memory::desc* residual, library::Activation activation,
                               float alpha, float beta);

// Throws Error (Runtime) with the function's name unless `tensor` is a compact f32 tensor on the
// CPU of that rank (-1: any).
void require_f32(const Tensor& tensor, std::string_view function, const char* name,
                 int64_t rank = -1);

}  // namespace tenon::onednn
