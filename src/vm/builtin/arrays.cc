// Arrays are values: changing one makes a new array. If this is the last use of the only reference,
// the array is changed in place.
#include "object/array.h"
#include "support/failures.h"
#include "support/poll.h"
#include "vm/builtin/functions.h"

namespace tenon::vm {
namespace {

size_t checked_index(const Array<Any>& array, int64_t i) {
  const auto index = static_cast<size_t>(i);
  if (index >= array.size()) throw index_out_of_range(i, array.size());
  return index;
}

// The call of a function that may change its first argument, an array.
struct Change {
  const library::PlainFunction& function;
  const AnyView* args;

  const Array<Any>& array(int32_t i) const { return payload_as<Array<Any>>(args[i]); }
  // take_first
  Array<Any> taken() const {
    Any value = take_first(function, args);
    return Array<Any>(Ref<Object>::adopt(value.leak().v.object));
  }
};

// Appends elements of another array.
void append_range(Array<Any>& array, Array<Any>::iterator begin, Array<Any>::iterator end) {
  array.reserve(array.size() + static_cast<size_t>(end - begin));
  Ticker ticker;
  for (; begin != end; ++begin) {
    ticker.tick();
    array.push_back(*begin);
  }
}

Array<Any> append(const Change& call) {
  Any value(call.args[1]);
  Array<Any> array = call.taken();
  array.push_back(std::move(value));
  return array;
}

Array<Any> set(const Change& call) {
  const size_t i = checked_index(call.array(0), call.args[1].v.i);
  Any value(call.args[2]);
  Array<Any> array = call.taken();
  array.set(i, std::move(value));
  return array;
}

Array<Any> concat(const Change& call) {
  // A reference of its own: the arrays may be one, which changes.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Array<Any> tail = call.array(1);
  Array<Any> array = call.taken();
  append_range(array, tail.begin(), tail.end());
  return array;
}

// Taking the last elements away, as from a stack, happens in place, unless most of the memory would
// be kept for nothing.
Array<Any> slice(const Change& call) {
  const auto size = static_cast<int64_t>(call.array(0).size());
  const int64_t start = call.args[1].v.i, end = call.args[2].v.i;
  if (start < 0 || start > end || end > size) {
    throw_failure("a slice is out of range", cat(start, " to ", end),
                  cat("0 <= start <= end <= ", size));
  }
  Array<Any> array = call.taken();
  if (start > 0 || end < size / 2 || !array.object()->unique()) {
    Array<Any> part;
    append_range(part, array.begin() + start, array.begin() + end);
    return part;
  }
  Ticker ticker;
  for (; static_cast<int64_t>(array.size()) > end; ticker.tick()) array.pop_back();
  return array;
}

template <Array<Any> (*change)(const Change&)>
void invoke(const library::PlainFunction& f, const AnyView* args, Any* result) {
  *result = Any(change({f, args}));
}

}  // namespace

void register_arrays(Registration& functions) {
  using library::add_plain;
  using library::add_typed;
  using library::kArgumentTypes;
  using library::signature;
  using Items = Array<Any>;
  add_plain(functions, signature("vm.array_append"), invoke<append>, kArgumentTypes<Items, Any>);
  add_plain(functions, signature("vm.array_set"), invoke<set>, kArgumentTypes<Items, int64_t, Any>);
  add_plain(functions, signature("vm.array_concat"), invoke<concat>, kArgumentTypes<Items, Items>);
  add_plain(functions, signature("vm.array_slice"), invoke<slice>,
            kArgumentTypes<Items, int64_t, int64_t>);
  add_typed(
      functions, signature("vm.array_empty"), +[] { return Array<Any>(); });
  add_typed(
      functions, signature("vm.array_size"),
      +[](const Array<Any>& a) { return static_cast<int64_t>(a.size()); });
  add_typed(
      functions, signature("vm.array_get"),
      +[](const Array<Any>& a, int64_t i) -> Any { return a[checked_index(a, i)]; });
}

}  // namespace tenon::vm
