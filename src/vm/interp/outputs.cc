#include "vm/interp/outputs.h"

#include <algorithm>
#include <cstdint>

#include "object/array.h"
#include "support/failures.h"
#include "support/text.h"
#include "vm/interp/match_values.h"
#include "vm/interp/values.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {
namespace {

// Whether two tensors share memory. A strided one is taken to use all from its first to its last
// element.
bool overlap(const Tensor& a, const Tensor& b) {
  struct Range {
    intptr_t begin, end;
  };
  const auto range = [](const Tensor& t) {
    Range r{reinterpret_cast<intptr_t>(t.data()), reinterpret_cast<intptr_t>(t.data())};
    if (t.count() == 0) return r;
    r.end += t.dtype().bytes();
    for (int32_t i = 0; i < t.rank(); ++i) {
      const int64_t furthest = (t.dim(i) - 1) * t.strides()[static_cast<size_t>(i)];
      (furthest < 0 ? r.begin : r.end) += static_cast<intptr_t>(furthest * t.dtype().bytes());
    }
    return r;
  };
  const Range x = range(a), y = range(b);
  return x.begin < y.end && y.begin < x.end;
}

Tensor copy_of(const Tensor& t) {
  Tensor copy = Tensor::empty(t.shape(), t.dtype());
  t.copy_elements(copy.data());
  return copy;
}

// Whether a value refers to no tensor but itself.
bool is_plain(const AnyView& value) {
  return !value.is_object() || value.type_index == TypeIndex::Tensor ||
         value.type_index == TypeIndex::Shape || value.type_index == TypeIndex::Str ||
         value.type_index == TypeIndex::Bytes;
}

// The same of a type's values.
bool is_plain(const SignatureType& type) {
  using Kind = SignatureType::Kind;
  return type.kind == Kind::Tensor || type.kind == Kind::Scalar || type.kind == Kind::Shape;
}

// What keeps a tensor from being an output; null for nothing.
const char* fault_of(const Tensor& t) {
  if (t.read_only()) return " is read-only";
  if (!t.compact()) return " is not in row-major order without gaps";
  if (t.device().device_type != kDLCPU) return " is not on the CPU";
  return t.aligned() ? nullptr : " is not aligned to its elements";
}

}  // namespace

Outputs::Outputs(const FunctionUnit& function, std::span<const AnyView> given,
                 std::span<const AnyView> args)
    : function_(function), given_(given) {
  if (given.size() != function.result.results().size()) {
    throw_misuse("a call needs one output, or None, for each result",
                 counted(given.size(), "output"), printable(to_text(function.result)));
  }
  const auto plain = [](const auto& one) { return is_plain(one); };
  const bool available =
      std::ranges::all_of(args, plain) && std::ranges::all_of(function.result.results(), plain);
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].is_none()) continue;
    const Any value = admit(given[i]);
    check_output(function, i, value);
    const Tensor& t = payload_as<Tensor>(value);
    const char* fault = fault_of(t);
    for (const AnyView& arg : args) {
      if (arg.type_index != TypeIndex::Tensor) continue;
      const Any input = admit(arg);
      if (overlap(t, payload_as<Tensor>(input))) fault = " overlaps an input";
    }
    for (size_t j = 0; j < i; ++j) {
      const Tensor other = output(j);
      if (other && overlap(t, other)) fault = " overlaps another output";
    }
    if (fault) {
      throw_misuse(cat("output ", i, fault), to_text(t),
                   "a writable, compact tensor on the CPU with memory of its own");
    }
    if (available && i < kMostTaken) available_ |= uint64_t{1} << i;
  }
}

Tensor Outputs::output(size_t i) const {
  return given_[i].is_none() ? Tensor() : admit(given_[i]).as<Tensor>();
}

Tensor Outputs::take(const void* frame, int64_t index, DataType dtype,
                     std::span<const int64_t> dims) {
  const auto i = static_cast<size_t>(index);
  if (frame != frame_ || i >= kMostTaken || !(available_ >> i & 1)) return {};
  const Tensor t = output(i);
  if (t.dtype() != dtype || byte_count(dims, dtype) != t.bytes()) return {};
  available_ &= ~(uint64_t{1} << i);
  return std::ranges::equal(t.shape(), dims) ? t : t.reshaped(dims);
}

bool Outputs::is_output(const Tensor& t) const {
  for (size_t i = 0; i < given_.size(); ++i) {
    const Tensor to = output(i);
    if (to && overlap(to, t)) return true;
  }
  return false;
}

Any Outputs::filled(Any result) {
  std::vector<std::pair<Tensor, Tensor>> copies;  // from, to
  const auto placed = [&](size_t i, Any value) {
    const Tensor to = output(i);
    const bool is_tensor = value.type_index == TypeIndex::Tensor;
    if (!to && !is_tensor) return value;
    // A result that the host didn't give memory for doesn't share that of another, and what is
    // copied may be in the memory of an output that is still to be written.
    const auto& from = payload_as<Tensor>(value);
    const auto apart = [&] { return is_output(from) ? copy_of(from) : from; };
    if (!to) return Any(apart());
    if (!is_tensor || from.dtype() != to.dtype() || !std::ranges::equal(from.shape(), to.shape())) {
      throw_misuse(cat("output ", i, " doesn't have the type of the result"), to_text(to),
                   found_text(value));
    }
    if (from.data() != to.data()) copies.emplace_back(apart(), to);
    return Any(to);
  };
  if (function_.result.kind == SignatureType::Kind::Tuple) {
    Array<Any> all = result.as<Array<Any>>();
    result.reset();  // so that the array is changed in place
    for (size_t i = 0; i < given_.size(); ++i) all.set(i, placed(i, all[i]));
    result = Any(std::move(all));
  } else {
    result = placed(0, std::move(result));
  }
  for (const auto& [from, to] : copies) from.copy_elements(to.data());
  return result;
}

}  // namespace tenon::vm
