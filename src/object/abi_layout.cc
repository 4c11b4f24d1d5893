// The offsets that machine code, C and foreign libraries rely on, asserted. No code.
#include <algorithm>
#include <cstddef>
#include <functional>

#include "object/array.h"
#include "object/function.h"
#include "object/shape.h"
#include "object/string.h"
#include "object/tensor.h"

// The types derive from Object, so they aren't standard-layout; on all supported platforms a single
// base without virtual functions lies at offset zero.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace tenon {

// Pointers and size_t have 32 or 64 bits; 64-bit integers are aligned to 8 bytes in either case.
constexpr size_t kPointer = sizeof(void*);
static_assert(sizeof(size_t) == kPointer && alignof(int64_t) == 8 && alignof(uint64_t) == 8);
constexpr size_t up8(size_t n) {
  return (n + 7) / 8 * 8;
}

constexpr int32_t kOurTypes[] = {
#define TENON_TYPE_INDEX(identifier, number) TypeIndex::identifier,
#define TENON_BASE_TYPE_INDEX(identifier, first, last) TypeIndex::identifier,
#include "object/type_indices.def"
};
static_assert(std::ranges::adjacent_find(kOurTypes, std::greater_equal()) == std::end(kOurTypes) &&
                  *std::begin(kOurTypes) == TypeIndex::OursBegin &&
                  *std::rbegin(kOurTypes) < TypeIndex::TestBegin,
              "type_indices.def gives each type a number of its own, in ascending order");

static_assert(offsetof(Object, counts) == 0 && offsetof(Object, type_index) == 8 &&
              offsetof(Object, budget) == 12 && offsetof(Object, deleter) == 16 &&
              sizeof(Object) == 24);
static_assert(offsetof(AnyView, type_index) == 0 && offsetof(AnyView, small_length) == 4 &&
              offsetof(AnyView, v) == 8 && sizeof(AnyView) == 16 && sizeof(Any) == 16);
static_assert(offsetof(StringCell, data) == 0 && offsetof(StringCell, size) == kPointer);
static_assert(offsetof(StringObj, cell) == 24 && offsetof(BytesObj, cell) == 24 &&
              sizeof(StringObj) == 24 + 2 * kPointer);
static_assert(offsetof(ShapeObj, data) == 24 && offsetof(ShapeObj, size) == 24 + kPointer &&
              sizeof(ShapeObj) == 24 + 2 * kPointer);
static_assert(offsetof(FunctionObj, call) == 24 &&
              offsetof(FunctionObj, cpp_call) == 24 + kPointer &&
              sizeof(FunctionObj) == up8(24 + 4 * kPointer));
static_assert(offsetof(DLTensor, device) == kPointer && offsetof(DLTensor, ndim) == kPointer + 8 &&
              offsetof(DLTensor, dtype) == kPointer + 12 &&
              offsetof(DLTensor, shape) == kPointer + 16 &&
              offsetof(DLTensor, strides) == 2 * kPointer + 16 &&
              offsetof(DLTensor, byte_offset) == up8(3 * kPointer + 16) &&
              sizeof(DLTensor) == up8(3 * kPointer + 16) + 8);
static_assert(offsetof(TensorObj, dl) == 24 &&
              offsetof(TensorObj, layout) == 24 + sizeof(DLTensor) &&
              offsetof(TensorObj, owner) == 32 + sizeof(DLTensor) &&
              sizeof(TensorObj) == up8(32 + sizeof(DLTensor) + kPointer));
static_assert(offsetof(ErrorObj, kind) == 24 && offsetof(ErrorObj, message) == 24 + 2 * kPointer &&
              offsetof(ErrorObj, backtrace) == 24 + 4 * kPointer &&
              offsetof(ErrorObj, update_backtrace) == 24 + 6 * kPointer &&
              offsetof(ErrorObj, cause_chain) == 24 + 7 * kPointer &&
              offsetof(ErrorObj, extra_context) == 24 + 8 * kPointer);
static_assert(offsetof(ArrayObj, size) == 24 && offsetof(ArrayObj, capacity) == 32 &&
              sizeof(ArrayObj) == 40);
static_assert(sizeof(Handle) == kPointer && sizeof(Ref<Object>) == kPointer);

}  // namespace tenon
