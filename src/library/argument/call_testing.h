// What tests of packed functions share: calls by name, as a compiled program makes them, and a call
// with limits.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "device/call_context.h"
#include "object/array.h"
#include "object/registry.h"
#include "object/tensor.h"

namespace tenon::testing_calls {

template <class T>
Tensor tensor(DataType dtype, std::vector<int64_t> shape, std::vector<T> data) {
  return Tensor::copy_of<T>(shape, dtype, data);
}
inline Tensor ints(std::vector<int64_t> data) {
  std::vector<int64_t> shape = {static_cast<int64_t>(data.size())};
  return tensor<int64_t>(i64, shape, data);
}
inline Tensor floats(std::vector<int64_t> shape, std::vector<float> data) {
  return tensor<float>(f32, shape, data);
}

template <class T>
std::vector<T> data_of(const Tensor& t) {
  return std::vector<T>(t.data_as<T>(), t.data_as<T>() + t.count());
}
inline std::vector<int64_t> shape_of(const Tensor& t) {
  return std::vector<int64_t>(t.shape().begin(), t.shape().end());
}
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

template <class... A>
Any call(const char* name, const A&... args) {
  return function_named(name)(args...);
}
template <class... A>
Tensor result(const char* name, const A&... args) {
  return call(name, args...).template as<Tensor>();
}
template <class... A>
Tensor part(int i, const char* name, const A&... args) {
  return call(name, args...)
      .template as<Array<Any>>()[static_cast<size_t>(i)]
      .template as<Tensor>();
}
template <class... A>
std::string failure(const char* name, const A&... args) {
  try {
    call(name, args...);
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

// A call with limits that the test sets.
struct TestCall : CallContext {
  bool stopped = false;
  size_t limit = ~size_t{0}, counted = 0, most = 0;

  void poll() override {
    if (stopped) throw Error(ErrorKind::Runtime, "stopped");
  }
  bool count_memory(size_t bytes) override {
    if (bytes > limit - counted) return false;
    counted += bytes;
    most = std::max(most, counted);
    return true;
  }
  void discount_memory(size_t bytes) override { counted -= bytes; }
  void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "over the limit"); }
  bool may_write(const Tensor&) const override { return true; }
  Ref<StorageObj> allocate(size_t bytes, size_t) override {
    if (!count_memory(bytes)) fail_memory(bytes);
    auto s = make<StorageObj>();
    s->data = std::malloc(bytes ? bytes : 1);
    s->size = bytes;
    s->context = this;
    s->free = [](StorageObj* made) {
      std::free(made->data);
      static_cast<TestCall*>(made->context)->discount_memory(made->size);
    };
    return s;
  }
};

}  // namespace tenon::testing_calls
