#include "library/onednn/constant_product.h"

#include <algorithm>

#include "device/parallel.h"
#include "device/preparation.h"
#include "library/onednn/functions.h"
#include "library/onednn/kernel_sets.h"
#include "library/onednn/packed_weights.h"
#include "library/onednn/team.h"
#include "library/onednn/workspace.h"
#include "support/poll.h"
#include "support/rounding.h"

namespace tenon::onednn {
namespace {

// A part of the depth of a panel of the constant should stay in the second cache while all rows of
// a block are multiplied with it; the rows come from wherever they are, a few at a time.
constexpr int64_t kMostRows = 480, kMostDepth = 1024;
// Threads divide the rows if each gets at least this many.
constexpr int64_t kRowsOfAThread = 24;

// Below, oneDNN is as fast, and faster with two threads: the networks MobileNetV2, V3 and
// EfficientNet take 2 to 5 % less time with it (Zen 5).
constexpr double kLeastWork = 1e7;

double multiplications(const ConstantProduct& p) {
  return static_cast<double>(p.rows) * static_cast<double>(p.depth) *
         static_cast<double>(p.columns);
}

class Product {
 public:
  explicit Product(const ConstantProduct& p)
      : p_(p),
        loops_(kernel_set().product),
        parts_(ceil_div(p.depth, kMostDepth)),
        panels_(ceil_div(p.columns, loops_.panel)),
        stored_columns_(round_up(p.columns, loops_.lanes)),
        packed_(pack()),
        clamp_(*clamp_of(p.activation, p.alpha, p.beta)) {}

  void run() {
    const int32_t threads =
        threads_worth(multiplications(p_), static_cast<size_t>(p_.constant.bytes()));
    // By rows, each thread reads the whole constant; by columns, all of the rows.
    const bool by_rows = p_.rows >= kRowsOfAThread * threads &&
                         p_.rows * (p_.depth + p_.columns) >= p_.depth * p_.columns;
    const int64_t groups = by_rows ? 1 : std::min<int64_t>(threads, panels_);
    const int64_t least = ceil_div(p_.rows, kMostRows);
    const int64_t blocks = by_rows ? round_up(least, threads) : least;
    const ThreadsScope scope(threads);
    parallel_for(groups * blocks, 1, [&](int64_t begin, int64_t end) {
      Ticker ticker;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / blocks, block = i % blocks;
        run_block(p_.rows * block / blocks, p_.rows * (block + 1) / blocks,
                  panels_ * group / groups, panels_ * (group + 1) / groups, &ticker);
      }
    });
  }

 private:
  // The first row of the constant in a part of its depth.
  int64_t first_of(int64_t part) const { return p_.depth * part / parts_; }

  // Parts of the depth one after the other, each in panels of columns. The last panel has the
  // columns that are left, filled up to a multiple of a vector.
  std::shared_ptr<const float> pack() const {
    static constexpr char kForms[2] = {};  // their addresses tell the forms apart
    const auto count = static_cast<size_t>(p_.depth * stored_columns_);
    return transformed_weights(p_.constant, &kForms[p_.transposed], count, [&](float* to) {
      parallel_for(parts_ * panels_, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          poll();
          pack_panel(i / panels_, i % panels_, to);
        }
      });
    });
  }

  void pack_panel(int64_t part, int64_t panel, float* to) const {
    const int64_t first = first_of(part), depth = first_of(part + 1) - first;
    const int64_t start = panel * loops_.panel;
    const auto* const from = p_.constant.data_as<const float>();
    const int64_t row = p_.transposed ? 1 : p_.columns, column = p_.transposed ? p_.depth : 1;
    loops_.pack({from + first * row + start * column, row, column}, depth,
                std::min(loops_.panel, p_.columns - start), to + place_of(part, panel));
  }

  int64_t place_of(int64_t part, int64_t panel) const {
    const int64_t first = first_of(part), depth = first_of(part + 1) - first;
    return first * stored_columns_ + panel * loops_.panel * depth;
  }

  void run_block(int64_t first, int64_t end, int64_t panel, int64_t panels_end, Ticker* ticker) {
    for (; panel < panels_end; ++panel) {
      const int64_t start = panel * loops_.panel;
      const int64_t width = std::min(loops_.panel, p_.columns - start);
      // Its cost in bytes that are copied instead, roughly.
      ticker->tick(static_cast<size_t>((end - first) * p_.depth * width / 8));
      if (width % loops_.lanes == 0) {
        const int64_t at = first * p_.columns + start;
        ProductEnd whole;
        whole.clamp = clamp_;
        whole.added = p_.residual ? p_.residual + at : nullptr;
        whole.added_row = p_.columns;
        whole.bias = p_.bias ? p_.bias + start : nullptr;
        multiply(first, end, panel, panel + 1 < panels_end, whole, p_.out + at, p_.columns);
      } else {
        run_last(first, end, panel, width);
      }
    }
  }

  // The last panel, if it ends within a vector, which can't be stored.
  void run_last(int64_t first, int64_t end, int64_t panel, int64_t width) {
    const int64_t row = loops_.panel, start = panel * row;
    const auto bytes = static_cast<size_t>((end - first) * row) * sizeof(float);
    const Counted counted(bytes);
    auto* const products = static_cast<float*>(scratch(bytes));
    multiply(first, end, panel, /*has_next=*/false, ProductEnd(), products, row);
    for (int64_t r = first; r < end; ++r) {
      const float* const from = products + (r - first) * row;
      for (int64_t c = 0, at = r * p_.columns + start; c < width; ++c, ++at) {
        float y = from[c];
        if (p_.residual) y += p_.residual[at];
        if (p_.bias) y += p_.bias[start + c];
        if (clamp_.clamps) y = y > clamp_.low ? std::min(y, clamp_.high) : clamp_.low;
        p_.out[at] = y;
      }
    }
  }

  // Rows [first, end) x a panel: the sum of the products of each part of the depth.
  void multiply(int64_t first, int64_t end, int64_t panel, bool has_next,
                const ProductEnd& product_end, float* to, int64_t to_row) const {
    const int64_t width = std::min(loops_.panel, stored_columns_ - panel * loops_.panel);
    for (int64_t part = 0; part < parts_; ++part) {
      const bool is_last = part + 1 == parts_;
      ProductEnd own = is_last ? product_end : ProductEnd();
      own.added = part == 0 ? product_end.added : to;
      own.added_row = part == 0 ? product_end.added_row : to_row;
      const int64_t depth = first_of(part + 1) - first_of(part);
      const float* const packed = packed_.get() + place_of(part, panel);
      const float* next = packed;
      if (!is_last && first_of(part + 2) - first_of(part + 1) >= depth) {
        next = packed_.get() + place_of(part + 1, panel);
      } else if (is_last && has_next && parts_ == 1 &&
                 stored_columns_ - (panel + 1) * loops_.panel >= width) {
        next = packed + width * depth;
      }
      loops_.multiply(end - first, depth, width, p_.left + first * p_.depth + first_of(part),
                      p_.depth, packed, next, own, to, to_row);
    }
  }

  const ConstantProduct& p_;
  const ProductKernels& loops_;
  const int64_t parts_, panels_;
  const int64_t stored_columns_;
  const std::shared_ptr<const float> packed_;
  const Clamp clamp_;
};

}  // namespace

bool fits_constant_product(const ConstantProduct& p) {
  const KernelSet& set = kernel_set();
  return set.wins_over_onednn && p.constant.constant() && p.depth > 0 &&
         p.columns >= set.product.lanes && clamp_of(p.activation, p.alpha, p.beta);
}

bool is_fast_constant_product(const ConstantProduct& p) {
  return p.rows > 1 && multiplications(p) >= kLeastWork && fits_constant_product(p);
}

void run_constant_product(const ConstantProduct& p) {
  Product product(p);  // packs the constant
  if (!is_preparing()) product.run();
}

}  // namespace tenon::onednn
