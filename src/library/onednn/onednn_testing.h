// For this folder's tests: calls the functions like bytecode does.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "library/onednn/register.h"
#include "object/registry.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/error.h"
#include "support/poll.h"

namespace tenon {

inline Tensor ones(std::vector<int64_t> shape) {
  Tensor t = Tensor::empty(shape, f32);
  std::fill_n(t.data_as<float>(), t.count(), 1.f);
  return t;
}

template <class... A>
std::string outcome(const char* name, const A&... args) {
  register_onednn();
  try {
    function_named(name)(args...);
  } catch (const Error& e) {
    return e.kind() == ErrorKind::Runtime ? e.message() : e.render();
  }
  return "a value";
}

// Small integers, so that sums of products are exact.
inline Tensor numbers(std::vector<int64_t> shape, int64_t factor) {
  Tensor t = Tensor::empty(shape, f32);
  for (int64_t i = 0; i < t.count(); ++i)
    t.data_as<float>()[i] = static_cast<float>(i * factor % 5 - 2);
  return t;
}

struct ConvolutionCall {
  Tensor x = ones({1, 4, 4, 2}), weights = ones({3, 3, 2, 5}), bias, residual;
  std::vector<int64_t> strides = {1, 1}, dilations = {1, 1}, pads = {1, 1, 1, 1};
  int64_t groups = 1, activation = 0;
  double alpha = 0, beta = 0;
  int64_t winograd = 1;
  Tensor out = ones({1, 4, 4, 5});

  static Any any(const Tensor& tensor) { return tensor ? Any(tensor) : Any(); }
  std::string run() const {
    return outcome("onednn.convolution", x, weights, any(bias), any(residual), out, Shape(strides),
                   Shape(dilations), Shape(pads), groups, activation, alpha, beta, winograd);
  }
};

inline int64_t packings() {
  return function_named("onednn.packing_count")().as<int64_t>();
}

// Counts polls, and stops the work at one of them.
struct CountingPoller final : Poller {
  void poll() override {
    if (++polls == stop_at) throw Error(ErrorKind::Runtime, "stopped");
  }
  int polls = 0, stop_at = 0;
};

}  // namespace tenon
