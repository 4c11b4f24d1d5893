#include "vm/builtin/register.h"

#include "device/call_context.h"
#include "device/device.h"
#include "library/core/register.h"
#include "library/signatures/signatures.h"
#include "object/array.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/interp/values.h"

namespace tenon::vm {
namespace {

void need(bool holds, const char* what, const Tensor& t) {
  if (!holds) throw Error(ErrorKind::Runtime, what).found(t ? to_text(t) : "None");
}

Tensor copy(const Tensor& t) {
  need(static_cast<bool>(t), "vm.tensor_copy needs a tensor", t);
  Tensor out = allocate_tensor(t.shape(), t.dtype());
  copy_tensor(t, out);
  return out;
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
    throw Error(ErrorKind::Runtime, "the elements are not a shape")
        .found(tenon::to_text(std::span<const int64_t>(dims)));
  }
  return Shape(dims);
}

const Any& element(const Array<Any>& array, int64_t i) {
  if (i < 0 || i >= static_cast<int64_t>(array.size())) {
    throw Error(ErrorKind::Runtime, "an index is out of range")
        .found(cat(i))
        .expected(cat("an index into ", array.size(), " elements"));
  }
  return array[static_cast<size_t>(i)];
}

int append(void* self, const AnyView* args, int32_t n, Any* result) {
  try {
    constexpr std::string_view kName = "vm.array_append";
    if (n != 2) detail::fail_count(kName, 2, n);
    if (!Array<Any>::accepts(args[0])) {
      detail::fail_argument(kName, 0, Array<Any>::type_text(), args[0]);
    }
    Any value(args[1]);
    CallContext* call = CallContext::current();
    const auto* function = static_cast<const Object*>(self);
    Any taken = call ? call->take(function, args, 0) : Any(args[0]);
    Array<Any> array(Ref<Object>::adopt(taken.leak().v.object));
    array.push_back(std::move(value));
    *result = Any(std::move(array));
    return 0;
  } catch (...) {
    return set_current_exception();
  }
}

Function append_function() {
  auto made = make<FunctionObj>();
  made->call = &append;
  return Function::adopt(std::move(made));
}

}  // namespace

void register_builtins() {
  static const bool done = [] {
    register_core_library();
    using library::add_typed;
    using library::signature;
    Registration functions;
    add_typed(functions, signature("vm.tensor_copy"), &copy);
    add_typed(functions, signature("vm.tensor_copy_to"), [](const Tensor& from, const Tensor& to) {
      need(static_cast<bool>(from), "vm.tensor_copy_to needs tensors", from);
      need(static_cast<bool>(to), "vm.tensor_copy_to needs tensors", to);
      CallContext* call = CallContext::current();
      need(!call || call->may_write(to),
           "vm.tensor_copy_to writes only to tensors that its program allocated", to);
      copy_tensor(from, to);
    });
    add_typed(functions, signature("vm.shape_to_tensor"), &shape_to_tensor);
    add_typed(functions, signature("vm.tensor_to_shape"), &tensor_to_shape);
    // Arrays are values: changing one makes a new array. If this is the last use of the only
    // reference, the array is changed in place.
    add_typed(functions, signature("vm.array_size"),
              [](const Array<Any>& a) { return static_cast<int64_t>(a.size()); });
    add_typed(functions, signature("vm.array_get"),
              [](const Array<Any>& a, int64_t i) { return element(a, i); });
    library::add(functions, signature("vm.array_append"), append_function());
    functions.commit();
    return true;
  }();
  (void)done;
}

}  // namespace tenon::vm
