#include "python/src/shared_results.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "python/src/classes.h"
#include "python/src/error.h"

namespace tenon::python {
namespace {

// The bytes of a result: [begin, end).
struct Extent {
  uintptr_t begin, end;
  Tensor* tensor;
};

void collect(nb::handle results, std::vector<Extent>* out) {
  PyObject* const o = results.ptr();
  if (PyTuple_Check(o)) {
    const Nesting nesting;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) collect(PyTuple_GET_ITEM(o, i), out);
  } else if (PyDict_Check(o)) {
    const Nesting nesting;
    for (auto [key, value] : nb::borrow<nb::dict>(results)) collect(value, out);
  } else if (Py_TYPE(o) == tensor_class()) {
    auto* tensor = nb::inst_ptr<Tensor>(results);
    const DLTensor& t = tensor->view();
    if (t.device.device_type != kDLCPU) return;
    int64_t elements_below = 0, elements_above = 1;  // of the first one
    for (int32_t i = 0; i < t.ndim; ++i) {
      if (t.shape[i] == 0) return;
    }
    int64_t stride = 1;
    for (int32_t i = t.ndim; i-- > 0; stride *= t.shape[i]) {
      const int64_t reach = (t.shape[i] - 1) * (t.strides ? t.strides[i] : stride);
      (reach < 0 ? elements_below : elements_above) += reach;
    }
    const int64_t bytes = t.dtype.bits / 8 * t.dtype.lanes;
    const uintptr_t first = reinterpret_cast<uintptr_t>(t.data) + t.byte_offset;
    out->push_back({first + static_cast<uintptr_t>(elements_below * bytes),
                    first + static_cast<uintptr_t>(elements_above * bytes), tensor});
  }
}

void release(void* object) {
  tenon_object_release(static_cast<tenon_object*>(object));
}

void make_read_only(Tensor* tensor) {
  if (tensor->is_read_only()) return;
  Value made;
  tenon_object* const object = tensor->value.any().v.object;
  tenon_object_retain(object);
  check(tenon_tensor_from_memory(&tensor->view(), /*read_only=*/1, object, release, made.out()));
  tensor->value = std::move(made);
}

}  // namespace

void protect_shared_results(nb::handle results) {
  if (Py_TYPE(results.ptr()) == tensor_class()) return;  // only one
  std::vector<Extent> extents;
  collect(results, &extents);
  if (extents.size() < 2) return;
  std::ranges::sort(extents, {}, &Extent::begin);
  const Extent* furthest = &extents[0];  // of those so far, the one that ends last
  for (const Extent& extent : extents) {
    if (&extent == furthest) continue;
    if (extent.begin < furthest->end) {
      make_read_only(furthest->tensor);
      make_read_only(extent.tensor);
    }
    if (extent.end > furthest->end) furthest = &extent;
  }
}

}  // namespace tenon::python
