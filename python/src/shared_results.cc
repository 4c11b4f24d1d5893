#include "python/src/shared_results.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
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

void make_read_only(Tensor* tensor) {
  if (tensor->is_read_only()) return;
  tensor->value = read_only_tensor(tensor->view(), tensor->value.any().v.object);
}

// Finds the tensors of results. Those of a container that stands in several places become read-only
// at once; each container is looked into twice at most.
class Collector {
 public:
  std::vector<Extent> extents;

  // A tuple or dict; others have no tensors to protect.
  void look_into(PyObject* container, bool is_shared = false) {
    const Nesting nesting;
    if (PyTuple_Check(container)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(container); ++i) {
        collect(PyTuple_GET_ITEM(container, i), is_shared);
      }
    } else if (PyDict_Check(container)) {
      for (auto [key, value] : nb::borrow<nb::dict>(container)) collect(value, is_shared);
    }
  }

 private:
  enum class Seen : uint8_t { Never, Once, Shared };

  void collect(nb::handle part, bool is_shared) {
    PyObject* const o = part.ptr();
    if (PyTuple_Check(o) || PyDict_Check(o)) {
      Seen& seen = seen_[o];
      if (seen == Seen::Shared) return;
      is_shared |= seen == Seen::Once;
      seen = is_shared ? Seen::Shared : Seen::Once;
      look_into(o, is_shared);
    } else if (Py_TYPE(o) == tensor_class()) {
      auto* tensor = nb::inst_ptr<Tensor>(part);
      if (is_shared) return make_read_only(tensor);
      const DLTensor& t = tensor->view();
      if (is_elsewhere(t) || is_empty(t)) return;
      const auto [begin, end] = extent_of(t);
      extents.push_back({begin, end, tensor});
    }
  }

  std::unordered_map<PyObject*, Seen> seen_;
};

}  // namespace

void protect_shared_results(nb::handle results) {
  if (Py_TYPE(results.ptr()) == tensor_class()) return;  // only one
  Collector collector;
  collector.look_into(results.ptr());
  std::vector<Extent>& extents = collector.extents;
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
