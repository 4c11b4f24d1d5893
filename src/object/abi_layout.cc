// The offsets that machine code, C and foreign libraries rely on, asserted. No code.
#include <cstddef>

#include "object/array.h"
#include "object/function.h"
#include "object/shape.h"
#include "object/string.h"
#include "object/tensor.h"

// The types derive from Object, so they aren't of standard layout; on the platforms that Tenon
// supports a single base without virtual functions lies at offset zero.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace tenon {

static_assert(offsetof(Object, counts) == 0 && offsetof(Object, type_index) == 8 &&
              offsetof(Object, budget) == 12 && offsetof(Object, deleter) == 16 &&
              sizeof(Object) == 24);
static_assert(offsetof(AnyView, type_index) == 0 && offsetof(AnyView, small_length) == 4 &&
              offsetof(AnyView, v) == 8 && sizeof(AnyView) == 16 && sizeof(Any) == 16);
static_assert(offsetof(StringCell, data) == 0 && offsetof(StringCell, size) == 8);
static_assert(offsetof(StringObj, cell) == 24 && offsetof(BytesObj, cell) == 24);
static_assert(offsetof(ShapeObj, data) == 24 && offsetof(ShapeObj, size) == 32);
static_assert(offsetof(FunctionObj, call) == 24 && offsetof(FunctionObj, cpp_call) == 32);
static_assert(offsetof(TensorObj, dl) == 24 && offsetof(TensorObj, layout) == 72 &&
              offsetof(TensorObj, owner) == 80 && sizeof(TensorObj) == 88);
static_assert(offsetof(ErrorObj, kind) == 24 && offsetof(ErrorObj, message) == 40 &&
              offsetof(ErrorObj, backtrace) == 56 && offsetof(ErrorObj, update_backtrace) == 72 &&
              offsetof(ErrorObj, cause_chain) == 80 && offsetof(ErrorObj, extra_context) == 88);
static_assert(offsetof(ArrayObj, size) == 24 && offsetof(ArrayObj, capacity) == 32 &&
              sizeof(ArrayObj) == 40);
static_assert(sizeof(DLTensor) == 48 && sizeof(Handle) == 8 && sizeof(Ref<Object>) == 8);

}  // namespace tenon
