// Sizes that depend on data, for reshape, slice and range.
#include "library/core/functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "library/argument/argument.h"
#include "object/array.h"
#include "object/narrow_float.h"
#include "object/shape.h"

namespace tenon::core {

namespace {

using namespace argument;

constexpr std::string_view kReshape = "tenon.shape.reshape", kSlice = "tenon.shape.slice",
                           kRange = "tenon.shape.range_count";

// Holds every sum and quotient of two i64.
__extension__ using Wide = __int128;

std::string list_text(std::span<const int64_t> values) {
  return to_text(values);
}

int64_t checked_product(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (int64_t n : sizes) {
    if (n < 0) fail(kReshape, cat("a size is ", n));
    if (__builtin_mul_overflow(product, n, &product)) {
      fail(kReshape, cat("the sizes ", list_text(sizes), " have too many elements"));
    }
  }
  return product;
}

// The number of steps from `start` to before `end`.
Wide steps_between(Wide start, Wide end, Wide step) {
  Wide way = step > 0 ? end - start : start - end, size = step > 0 ? step : -step;
  return way <= 0 ? 0 : (way + size - 1) / size;
}

double float_of(const Tensor& t) {
  if (t.dtype() == f64) {
    double v;
    std::memcpy(&v, t.data(), sizeof v);
    return v;
  }
  if (t.dtype() == f32) {
    float v;
    std::memcpy(&v, t.data(), sizeof v);
    return v;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, t.data(), static_cast<size_t>(t.dtype().bytes()));
  return narrow_value(t.dtype(), bits);
}

Wide integer_of(const Tensor& t) {
  DataType d = t.dtype();
  uint64_t bits = 0;
  std::memcpy(&bits, t.data(), static_cast<size_t>(d.bytes()));
  if (d.is_unsigned_int() || d.bits == 64) {
    return d.is_unsigned_int() ? static_cast<Wide>(bits)
                               : static_cast<Wide>(static_cast<int64_t>(bits));
  }
  uint64_t sign = uint64_t{1} << (d.bits - 1);
  return static_cast<int64_t>((bits ^ sign) - sign);
}

// `shape` (i64[n]) with a -1 replaced by the size that the elements of x require, and, unless
// `allowzero`, each 0 by the size of x at that index.
Tensor reshape_sizes(const Tensor& shape, const Tensor& x_shape, int64_t allowzero) {
  std::vector<int64_t> sizes = integers_of(kReshape, "shape", shape);
  std::vector<int64_t> x = integers_of(kReshape, "x_shape", x_shape);
  std::vector<int64_t> given = sizes;
  int64_t rest = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && !allowzero) {
      if (i >= x.size()) {
        fail(kReshape,
             cat("entry ", i, " of ", list_text(given), " copies a size, but x is ", list_text(x)));
      }
      sizes[i] = x[i];
    } else if (sizes[i] == -1) {
      if (rest >= 0) fail(kReshape, cat(list_text(given), " holds -1 twice"));
      rest = static_cast<int64_t>(i);
      sizes[i] = 1;
    }
  }
  int64_t count = checked_product(x), known = checked_product(sizes);
  if (rest >= 0) {
    if (known == 0 || count % known != 0) {
      fail(kReshape, cat("the -1 of ", list_text(given), " has no size for x of ", list_text(x)));
    }
    sizes[static_cast<size_t>(rest)] = count / known;
  } else if (known != count) {
    fail(kReshape, cat("x of ", list_text(x), " can't have the sizes ", list_text(given)));
  }
  return list_of(sizes);
}

// [starts, sizes, steps], i64[rank] each, of ONNX's Slice. Starts and ends are clamped to x, and
// negative ones count from the end. `axes` may be null (the first axes), and so may `steps` (all
// 1). An empty slice starts at 0. The step of a slice of one element is 1.
Array<Any> slice_bounds(const Tensor& x_shape, const Tensor& starts, const Tensor& ends,
                        const Tensor& axes, const Tensor& steps) {
  std::vector<int64_t> sizes = integers_of(kSlice, "x_shape", x_shape);
  std::vector<int64_t> from = integers_of(kSlice, "starts", starts);
  std::vector<int64_t> to = integers_of(kSlice, "ends", ends);
  std::vector<int64_t> which, by(from.size(), 1);
  for (size_t i = 0; i < from.size(); ++i) which.push_back(static_cast<int64_t>(i));
  if (axes) which = integers_of(kSlice, "axes", axes);
  if (steps) by = integers_of(kSlice, "steps", steps);
  if (to.size() != from.size() || which.size() != from.size() || by.size() != from.size()) {
    fail(kSlice, "starts, ends, axes and steps differ in size");
  }
  int64_t rank = static_cast<int64_t>(sizes.size());
  std::vector<int64_t> first(sizes.size(), 0), strides(sizes.size(), 1);
  std::vector<bool> seen(sizes.size(), false);
  for (size_t i = 0; i < from.size(); ++i) {
    if (which[i] < -rank || which[i] >= rank) {
      fail(kSlice, cat("axis ", which[i], " of a tensor of rank ", rank));
    }
    auto axis = static_cast<size_t>(which[i] < 0 ? which[i] + rank : which[i]);
    if (seen[axis]) fail(kSlice, cat("axis ", axis, " is given twice"));
    seen[axis] = true;
    if (by[i] == 0) fail(kSlice, cat("the step of axis ", axis, " is 0"));
    int64_t n = sizes[axis];
    if (n < 0) fail(kSlice, cat("a size of x is ", n));
    auto clamped = [&](int64_t place, int64_t low, int64_t high) {
      if (place < 0) place += n;
      return std::clamp(place, low, high);
    };
    bool forward = by[i] > 0;
    if (n > 0) {
      int64_t start = clamped(from[i], 0, forward ? n : n - 1);
      int64_t end = clamped(to[i], forward ? 0 : -1, forward ? n : n - 1);
      sizes[axis] = static_cast<int64_t>(steps_between(start, end, by[i]));
      first[axis] = sizes[axis] > 0 ? start : 0;
      if (sizes[axis] > 1) strides[axis] = by[i];  // otherwise there is no step
    }
  }
  return {list_of(first), list_of(sizes), list_of(strides)};
}

// max(0, ceil((limit - start) / delta)), i64 of rank 0; the operands have one element and one
// dtype.
Tensor range_count(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  const std::pair<std::string_view, const Tensor*> all[] = {
      {"start", &start}, {"limit", &limit}, {"delta", &delta}};
  for (const auto& [name, t] : all) {
    require_host(kRange, name, *t);
    if (t->count() != 1 || t->dtype() != start.dtype() || t->dtype().is_bool()) {
      fail(kRange, cat("'", name, "' is ", to_text(*t), ", expected one number of start's dtype"));
    }
  }
  int64_t count = 0;
  if (start.dtype().is_float()) {
    double step = float_of(delta);
    if (step == 0) fail(kRange, "'delta' is 0");
    double n = std::ceil((float_of(limit) - float_of(start)) / step);
    if (!(n < 9.2e18)) fail(kRange, cat("the range has ", n, " elements"));
    count = n > 0 ? static_cast<int64_t>(n) : 0;
  } else {
    Wide step = integer_of(delta);
    if (step == 0) fail(kRange, "'delta' is 0");
    Wide n = steps_between(integer_of(start), integer_of(limit), step);
    if (n > INT64_MAX) fail(kRange, "the range has more than 2^63 elements");
    count = static_cast<int64_t>(n);
  }
  Tensor y = allocate_tensor({}, i64);
  *y.data_as<int64_t>() = count;
  return y;
}

}  // namespace

void register_sizes(Registration& functions) {
  library::add_typed(functions, library::signature(kReshape), reshape_sizes);
  library::add_typed(functions, library::signature(kSlice), slice_bounds);
  library::add_typed(functions, library::signature(kRange), range_count);
}

}  // namespace tenon::core
