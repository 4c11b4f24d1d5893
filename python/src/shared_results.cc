#include "python/src/shared_results.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "python/src/classes.h"
#include "python/src/error.h"
#include "python/src/tensor_data.h"

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
    if (is_elsewhere(t) || is_empty(t)) return;
    const auto [begin, end] = extent_of(t);
    out->push_back({begin, end, tensor});
  }
}

void make_read_only(Tensor* tensor) {
  if (tensor->is_read_only()) return;
  tensor->value = read_only_tensor(tensor->view(), tensor->value.any().v.object);
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
