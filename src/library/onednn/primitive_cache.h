// Primitives by what they were made for, and packed weights by what they were packed from.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "library/onednn/register.h"
#include "object/tensor.h"

namespace tenon::onednn {

const dnnl::engine& cpu_engine();

// A primitive with the forms that it asked for.
struct Primitive {
  dnnl::primitive primitive;
  dnnl::memory::desc weights;  // may differ from what the caller has: then packed
  size_t scratchpad_bytes = 0;
};

// What describes a primitive, as a key: numbers in an order that the maker fixes.
class Key {
 public:
  void add(int64_t value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void add(std::span<const int64_t> values) {
    add(static_cast<int64_t>(values.size()));
    for (int64_t value : values) add(value);
  }
  void add(double value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The cached primitive for that key and the threads that so many multiplications are worth (see
// set_threads), made by `make` when there is none. The least recently used ones go beyond
// kMaxPrimitives. Any thread.
std::shared_ptr<const Primitive> cached_primitive(const Key& key, double multiplications,
                                                  const std::function<Primitive()>& make);
inline constexpr size_t kMaxPrimitives = 1024;

// `weights`, whose memory is described by `from`, in the form `to`; packed once for a constant and
// kept as long as it lives. `holder` keeps what is returned alive.
void* packed_weights(const Tensor& weights, const dnnl::memory::desc& from,
                     const dnnl::memory::desc& to, std::shared_ptr<void>* holder);
// How often weights have been packed.
int64_t packing_count();

// Runs it on this thread's share of threads, with scratch memory of this thread.
void execute(const Primitive& primitive, std::unordered_map<int, dnnl::memory> arguments);

// Post-operations: + residual, then the activation.
dnnl::post_ops post_operations(const dnnl::memory::desc* residual, OneDnnActivation activation,
                               float alpha, float beta);

// Throws Error (Runtime) with the function's name unless `tensor` is a compact f32 tensor on the
// CPU of that rank (-1: any).
void require_f32(const Tensor& tensor, const char* function, const char* name, int64_t rank = -1);

}  // namespace tenon::onednn
