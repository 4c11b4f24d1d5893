#include "loop/sweep.h"

#include <algorithm>
#include <unordered_set>

#include "loop/affine.h"
#include "loop/walk.h"
#include "object/shape.h"

namespace tenon::loop {
namespace {

// Smaller arrays stay in a second-level cache. Larger pieces than these are read just as fast in
// any order.
constexpr int64_t kLargeBytes = 512 << 10, kPieceBytes = 16 << 10;
// What a kernel writes takes the cache, too.
constexpr int64_t kReadPerWritten = 8;
// A body that has so many loads of large arrays isn't such a loop.
constexpr int kMostLoads = 256;

bool is_input(const Kernel& kernel, const Buffer* buffer) {
  return std::ranges::any_of(kernel.inputs,
                             [&](const auto& input) { return input.get() == buffer; });
}

std::optional<int64_t> known_bytes(const Buffer& buffer) {
  std::vector<int64_t> shape;
  for (const Dim& size : buffer.shape) {
    const auto known = size.as_const();
    if (!known) return std::nullopt;
    shape.push_back(*known);
  }
  return byte_count(shape, buffer.dtype);
}

// The size of all arrays that the loop writes to, as if symbols were 1: a number of rows, or of
// sequences, is small where a large matrix is read once. Nothing if the size is too large.
std::optional<int64_t> bytes_written(const For& loop) {
  std::unordered_set<const Buffer*> arrays;
  int64_t all = 0;
  bool known = true;
  for_each_stmt(loop.body, [&](const StmtRef& s) {
    if (s->kind != StmtKind::kStore) return;
    const auto& array = static_cast<const Store&>(*s).buffer;
    if (!arrays.insert(array.get()).second) return;
    std::vector<int64_t> shape;
    for (const Dim& size : array->shape) shape.push_back(size.as_const().value_or(1));
    const auto bytes = byte_count(shape, array->dtype);
    known = known && bytes && !__builtin_add_overflow(all, *bytes, &all);
  });
  return known ? std::optional(all) : std::nullopt;
}

}  // namespace

bool is_sweep(const Kernel& kernel, const For& loop) {
  const auto turns = as_int(loop.extent);
  if (!kernel.in_bounds || !turns || *turns < 2) return false;
  const auto written = bytes_written(loop);
  if (!written) return false;
  bool found = false, fails = false;
  int loads = 0;
  const auto look_at = [&](const ExprRef& e) {
    fails = fails || can_fail(*e);
    if (found || e->kind != ExprKind::kLoad) return;
    const auto& load = static_cast<const Load&>(*e);
    const auto bytes = known_bytes(*load.buffer);
    if (!bytes || *bytes < kLargeBytes || *bytes / *turns < kPieceBytes ||
        *bytes / kReadPerWritten < *written || load.indices.size() != 1 || ++loads > kMostLoads ||
        !is_input(kernel, load.buffer.get())) {
      return;
    }
    // An iteration's piece begins as far from the one before as it is long.
    const auto step = coefficient(load.indices[0], loop.var);
    const auto elements = step ? step->as_const() : std::nullopt;
    found = elements && *elements >= *bytes / load.buffer->dtype.bytes() / (*turns + 1) &&
            *elements > 0;
  };
  Seen seen;
  for_each_stmt(loop.body, [&](const StmtRef& s) {
    for (const ExprRef& e : direct_exprs(*s)) post_order(e, look_at, &seen);
  });
  return found && !fails;
}

}  // namespace tenon::loop
