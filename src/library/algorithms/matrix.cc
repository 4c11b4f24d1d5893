// Determinants.
#include "library/algorithms/functions.h"

#include <algorithm>
#include <cmath>

#include "device/scratch.h"
#include "library/argument/argument.h"

namespace tenon::algorithms {

namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.det";

// The determinant of n rows, which it destroys: elimination with the greatest pivot of each column.
double determinant(Scratch<double>& a, size_t n, Ticker& ticker) {
  double out = 1;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    double best = -1;
    for (size_t i = k; i < n; ++i) {
      ticker.tick();
      const double size = std::fabs(a[i * n + k]);
      if (std::isnan(size)) return size;
      if (size <= best) continue;
      pivot = i;
      best = size;
    }
    if (best == 0) return 0;
    if (pivot != k) {
      out = -out;
      std::swap_ranges(&a[k * n + k], &a[k * n] + n, &a[pivot * n + k]);
    }
    out *= a[k * n + k];
    for (size_t i = k + 1; i < n; ++i) {
      const double share = a[i * n + k] / a[k * n + k];
      for (size_t j = k + 1; j < n; ++j) {
        ticker.tick();
        a[i * n + j] -= share * a[k * n + j];
      }
    }
  }
  return out;
}

// f32 or f64 [..., n, n] to [...], computed in f64.
Tensor det(const Tensor& x) {
  require_floats(kName, "x", x);
  const int32_t rank = x.rank();
  if (rank < 2 || x.dim(rank - 1) != x.dim(rank - 2))
    fail(kName, cat("'x' is ", to_text(x), ", expected square matrices"));
  Tensor y =
      allocate_tensor(std::vector<int64_t>(x.shape().begin(), x.shape().end() - 2), x.dtype());
  if (y.count() == 0) return y;
  const auto n = static_cast<size_t>(x.dim(rank - 1)), size = n * n;
  Scratch<double> rows(size);
  Ticker ticker;
  for (int64_t m = 0; m < y.count(); ++m) {
    const size_t first = static_cast<size_t>(m) * size;
    for (size_t i = 0; i < size; ++i) {
      ticker.tick();
      rows[i] = float_at(x, static_cast<int64_t>(first + i));
    }
    set_float(y, m, determinant(rows, n, ticker));
  }
  return y;
}

}  // namespace

void register_matrix(Registration& functions) {
  library::add_typed(functions, library::signature(kName), det);
}

}  // namespace tenon::algorithms
