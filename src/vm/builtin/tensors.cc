// Copies of tensors, and shapes as tensors.
#include "device/call_context.h"
#include "device/device.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/failures.h"
#include "support/text.h"
#include "vm/builtin/functions.h"

namespace tenon::vm {
namespace {

void need(bool holds, const char* what, const Tensor& t) {
  if (!holds) throw_failure(what, t ? to_text(t) : "None");
}

Tensor copy(const Tensor& t) {
  need(static_cast<bool>(t), "vm.tensor_copy needs a tensor", t);
  if (t.dtype() == string_elements) return t;  // immutable, and never in a program's own memory
  Tensor out = allocate_tensor(t.shape(), t.dtype());
  copy_tensor(t, out);
  return out;
}

void copy_to(const Tensor& from, const Tensor& to) {
  need(static_cast<bool>(from), "vm.tensor_copy_to needs tensors", from);
  need(static_cast<bool>(to), "vm.tensor_copy_to needs tensors", to);
  CallContext* call = CallContext::current();
  need(!call || call->may_write(to),
       "vm.tensor_copy_to writes only to tensors that its program allocated", to);
  copy_tensor(from, to);
}

Tensor shape_to_tensor(const Shape& shape) {
  int64_t dims[] = {static_cast<int64_t>(shape.size())};
  Tensor out = allocate_tensor(dims, i64);
  std::copy(shape.begin(), shape.end(), out.data_as<int64_t>());
  return out;
}

Shape tensor_to_shape(const Tensor& t) {
  need(t && t.dtype() == i64 && t.rank() == 1 && t.compact() && t.device().device_type == kDLCPU &&
           t.dim(0) <= kMaxRank,
       "vm.tensor_to_shape needs a compact tensor[n; i64] on the CPU, n at most 32", t);
  std::vector<int64_t> dims(static_cast<size_t>(t.dim(0)));
  t.copy_elements(dims.data());  // the elements may be unaligned
  if (!element_count(dims)) {
    throw_failure("the elements are not a shape", tenon::to_text(std::span<const int64_t>(dims)));
  }
  return Shape(dims);
}

}  // namespace

void register_tensors(Registration& functions) {
  using library::add_typed;
  using library::signature;
  add_typed(functions, signature("vm.tensor_copy"), copy);
  add_typed(functions, signature("vm.tensor_copy_to"), copy_to);
  add_typed(functions, signature("vm.shape_to_tensor"), shape_to_tensor);
  add_typed(functions, signature("vm.tensor_to_shape"), tensor_to_shape);
}

}  // namespace tenon::vm
