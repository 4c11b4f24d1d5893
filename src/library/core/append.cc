// tenon.append(x [n, s...], row [s...]) -> [n + 1, s...]: x with the row appended.
//
// At x's last use, if nothing else references its memory, the row is written in place and the
// result takes over the memory, which grows by half its size when full, so that n appends copy O(n)
// elements. Otherwise the result is a copy.
#include "library/core/functions.h"

#include <algorithm>
#include <span>

#include "device/call_context.h"
#include "library/argument/argument.h"
#include "support/bulk.h"
#include "support/failures.h"

namespace tenon::core {

namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.append";

bool fits(const Tensor& x, const Tensor& row) {
  return x.rank() == row.rank() + 1 && x.dtype() == row.dtype() &&
         std::equal(row.shape().begin(), row.shape().end(), x.shape().begin() + 1);
}

// Whether x can grow in place to `bytes` in all: only this function references x and its storage,
// and the call may write to the storage.
bool has_room(const CallContext* call, const Tensor& x, size_t bytes) {
  const auto* storage = x->owner.as<StorageObj>();
  if (!call || !storage || !x->unique() || !storage->unique()) return false;
  if (!call->may_write(x)) return false;
  const auto before =
      static_cast<size_t>(static_cast<char*>(x.data()) - static_cast<const char*>(storage->data));
  return before <= storage->size && bytes <= storage->size - before;
}

// Memory for `bytes` of elements plus half as many again, or exactly `bytes` if that is too much.
Ref<StorageObj> growing(size_t bytes) {
  try {
    return allocate_storage(bytes + bytes / 2);
  } catch (const Error&) {
    return allocate_storage(bytes);
  }
}

Tensor appended(Tensor x, const Tensor& row, const CallContext* call) {
  int64_t extents[kMaxRank];
  std::copy(x.shape().begin(), x.shape().end(), extents);
  const std::span<const int64_t> shape(extents, x.shape().size());
  const bool overflows = __builtin_add_overflow(extents[0], 1, &extents[0]);
  const auto bytes = byte_count(shape, x.dtype());
  if (overflows || !bytes) fail(kName, "x has no room for a row");
  const auto whole = static_cast<size_t>(*bytes), last = static_cast<size_t>(row.bytes());
  const bool taken = has_room(call, x, whole);
  Tensor y;
  if (taken && !call->poisons()) {
    const auto* start = static_cast<const char*>(x->owner.as<StorageObj>()->data);
    const auto offset = static_cast<uint64_t>(static_cast<char*>(x.data()) - start);
    y = Tensor::over(Ref<StorageObj>(x->owner.as<StorageObj>()), offset, x.dtype(), shape);
  } else {
    y = Tensor::over(growing(whole), 0, x.dtype(), shape);
    copy_memory(y.data(), x.data(), whole - last);
    // In poisoning mode, anything that still references the old memory shall notice.
    if (taken) fill_memory(x.data(), kPoison, whole - last);
  }
  copy_memory(static_cast<char*>(y.data()) + (whole - last), row.data(), last);
  return y;
}

int append(void* self, const AnyView* args, int32_t n, Any* result) {
  try {
    if (n != 2) detail::fail_count(kName, 2, n);
    for (int32_t i : {0, 1}) {
      if (args[i].type_index != TypeIndex::Tensor) {
        detail::fail_argument(kName, i, "tensor", args[i]);
      }
    }
    // x has one reference, this function's, if nothing else needs it.
    CallContext* call = CallContext::current();
    Any taken = call ? call->take(static_cast<const Object*>(self), args, 0) : Any(args[0]);
    Tensor x(Ref<TensorObj>::adopt(static_cast<TensorObj*>(taken.leak().v.object)));
    const auto row = args[1].as<Tensor>();
    require_elements(kName, "x", x);
    require_elements(kName, "row", row);
    if (!fits(x, row)) {
      throw_failure(cat(kName, ": the row does not match x"),
                    tensor_type_text(row.dtype(), row.shape()),
                    cat("a row of ", tensor_type_text(x.dtype(), x.shape())));
    }
    *result = Any(appended(std::move(x), row, call));
    return 0;
  } catch (...) {
    return set_current_exception();
  }
}

}  // namespace

void register_append(Registration& functions) {
  auto function = make<FunctionObj>();
  function->call = &append;
  library::add(functions, library::signature(kName), Function::adopt(std::move(function)));
}

}  // namespace tenon::core
