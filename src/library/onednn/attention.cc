// Attention without its scores in memory: a block of rows is multiplied with all keys, made
// probabilities, and multiplied with the values, while its scores lie in the second cache.
#include <algorithm>
#include <array>
#include <cstring>

#include "device/parallel.h"
#include "library/onednn/functions.h"
#include "library/onednn/kernel_sets.h"
#include "library/onednn/team.h"
#include "library/onednn/workspace.h"
#include "object/shape.h"
#include "support/poll.h"
#include "support/rounding.h"

namespace tenon::onednn {
namespace {

constexpr const library::Signature& kSignature = library::signature("onednn.attention");
constexpr Position at{kSignature};
constexpr Failure fail{kSignature};

constexpr size_t kRank = 4;
enum Axis : size_t { kBatch, kHead, kRow, kColumn };

// A tensor as [batch, head, row, column].
struct Matrices {
  float* data = nullptr;
  std::array<int64_t, kRank> dims{1, 1, 1, 1}, strides{};

  Strided matrix(int64_t batch, int64_t head) const {
    return {data + batch * strides[kBatch] + head * strides[kHead], strides[kRow],
            strides[kColumn]};
  }
  // Makes one item along the axis serve all, or fails if the sizes differ.
  void broadcast_to(Axis axis, int64_t size, const char* name) {
    if (dims[axis] == size) return;
    if (dims[axis] != 1) fail(cat(name, " has size ", dims[axis], " where ", size, " fits"));
    strides[axis] = 0;
  }
};

// Axis i of the result is axis perm[i] of the tensor, or the other way round for a result.
Matrices permuted(const Tensor& tensor, const Shape& perm, const char* name, bool is_result) {
  require_f32(kSignature, tensor, name);
  const auto rank = static_cast<size_t>(tensor.rank());
  if (rank < 1 || rank > kRank) fail(cat(name, " has rank ", rank, ", expected 1 to ", kRank));
  require_permutation(kSignature, perm, rank, name);
  Matrices m;
  m.data = tensor.data_as<float>();
  for (size_t i = 0; i < rank; ++i) {
    const size_t from = is_result ? i : static_cast<size_t>(perm[i]);
    const size_t to = kRank - rank + (is_result ? static_cast<size_t>(perm[i]) : i);
    m.dims[to] = tensor.dim(static_cast<int32_t>(from));
    m.strides[to] = tensor.strides()[from];
  }
  return m;
}

class Attention {
 public:
  Attention(const AnyView* args) : scale_(args[at("scale")].as<float>()) {
    const auto read = [&](size_t tensor, size_t perm, const char* name, bool is_result = false) {
      return permuted(in_place<Tensor>(args[tensor]), in_place<Shape>(args[perm]), name, is_result);
    };
    q_ = read(at("q"), at("q_perm"), "q");
    k_ = read(at("k"), at("k_perm"), "k");
    v_ = read(at("v"), at("v_perm"), "v");
    out_ = read(at("out"), at("out_perm"), "out", /*is_result=*/true);
    require_output(kSignature, in_place<Tensor>(args[at("out")]));
    if (const Tensor& mask = optional_tensor(args[at("mask")])) {
      std::array<int64_t, kRank> natural{0, 1, 2, 3};
      const auto rank = static_cast<size_t>(std::clamp(mask.rank(), 0, int32_t{kRank}));
      mask_ = permuted(mask, Shape(std::span<const int64_t>(natural.data(), rank)), "mask", false);
    }
    check();
  }

  void run() {
    if (std::ranges::count(out_.dims, 0) != 0) return;
    const int64_t heads = out_.dims[kBatch] * out_.dims[kHead], rows = out_.dims[kRow];
    const double work = static_cast<double>(heads) * static_cast<double>(rows) *
                        static_cast<double>(keys()) * static_cast<double>(depth() + width());
    const int32_t threads = threads_worth(work, 0);
    // If heads can't be shared evenly among threads, each is split by rows; each part packs keys
    // and values.
    const int64_t parts = std::min(rows, heads % threads == 0 ? 1 : int64_t{threads});
    const ThreadsScope scope(threads);
    parallel_for(heads * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i % parts;
        run_rows(i / parts, rows * part / parts, rows * (part + 1) / parts);
      }
    });
  }

 private:
  int64_t depth() const { return q_.dims[kColumn]; }
  int64_t keys() const { return k_.dims[kColumn]; }
  int64_t width() const { return v_.dims[kColumn]; }

  void check() {
    if (k_.dims[kRow] != depth()) fail("the inner sizes of q and k differ");
    if (v_.dims[kRow] != keys()) fail("k and v differ in the number of keys");
    if (out_.dims[kRow] != q_.dims[kRow] || out_.dims[kColumn] != width())
      fail("out has another shape");
    for (const Axis axis : {kBatch, kHead}) {
      q_.broadcast_to(axis, out_.dims[axis], "q");
      k_.broadcast_to(axis, out_.dims[axis], "k");
      v_.broadcast_to(axis, out_.dims[axis], "v");
      if (mask_.data) mask_.broadcast_to(axis, out_.dims[axis], "mask");
    }
    if (!mask_.data) return;
    mask_.broadcast_to(kRow, out_.dims[kRow], "mask");
    mask_.broadcast_to(kColumn, keys(), "mask");
  }

  // The scratch memory of a part of a head.
  struct Space {
    float *keys, *values, *rows, *scores, *products, *part, *sums, *mask;
    int64_t block;  // rows
    int64_t scores_row, products_row;
  };

  // Whether packing keys and values would take longer than the products. Of all rows, not of a
  // part: both ways add in different orders, and results must not depend on the number of threads.
  bool has_few_rows() const {
    return out_.dims[kRow] < kRowsAtOnce && k_.strides[kRow] == 1 && v_.strides[kColumn] == 1;
  }

  // How many keys are packed or multiplied between two polls, unless there are fewer.
  int64_t keys_of_part() const {
    const int64_t fitting = kMostOfPart / std::max<int64_t>(1, std::max(depth(), width()));
    return std::max(kWholePanels, fitting / kWholePanels * kWholePanels);
  }

  // Calls `each` with the first key and the number of each part: once, if there are no keys.
  template <class Each>
  void for_each_part(const Each& each) const {
    const int64_t most = keys_of_part();
    for (int64_t key = 0; key == 0 || key < keys(); key += most) {
      poll();
      each(key, std::min(most, keys() - key));
    }
  }

  static Strided from(const Strided& matrix, int64_t row, int64_t column) {
    return {matrix.data + row * matrix.row + column * matrix.column, matrix.row, matrix.column};
  }

  void run_rows(int64_t head, int64_t first, int64_t end) {
    const AttentionKernels& loops = kernel_set().attention;
    const ProductKernels& product = kernel_set().product;
    const int64_t batch = head / out_.dims[kHead];
    head %= out_.dims[kHead];
    const bool packs = !has_few_rows();
    Space space{};
    space.scores_row = round_up(keys(), product.lanes);
    space.products_row = round_up(width(), product.lanes);
    space.block = std::min(end - first, rows_of_block(space.scores_row));
    const std::array<std::pair<float**, int64_t>, 8> parts = {{
        {&space.keys, packs ? depth() * space.scores_row : 0},
        {&space.values, packs ? keys() * space.products_row : 0},
        {&space.rows, space.block * depth()},
        {&space.scores, space.block * space.scores_row},
        {&space.products, space.block * space.products_row},
        {&space.part, keys() > keys_of_part() ? space.block * space.products_row : 0},
        {&space.sums, space.block},
        {&space.mask, mask_.data ? space.block * keys() : 0},
    }};
    int64_t floats = 0;
    for (const auto& [at, count] : parts) floats += round_up(count, kLine);
    const auto bytes = static_cast<size_t>(floats) * sizeof(float);
    const Counted counted(bytes);
    auto* memory = static_cast<float*>(scratch(bytes));
    for (const auto& [at, count] : parts) {
      *at = memory;
      memory += round_up(count, kLine);
    }
    const Strided k = k_.matrix(batch, head), v = v_.matrix(batch, head);
    if (packs) {
      for_each_part([&](int64_t key, int64_t count) {
        product.pack(from(k, 0, key), depth(), count, space.keys + key * depth());
        product.pack(from(v, key, 0), count, width(), space.values + key * space.products_row);
      });
    }
    for (int64_t row = first; row < end; row += space.block) {
      const int64_t rows = std::min(space.block, end - row);
      const Strided q = rows_from(q_.matrix(batch, head), row, rows, depth(), space.rows);
      for_each_part([&](int64_t key, int64_t count) {
        if (packs) {
          return multiply(rows, depth(), count, q.data, q.row, space.keys + key * depth(),
                          space.scores + key, space.scores_row);
        }
        for (int64_t r = 0; r < rows; ++r)
          loops.dot_rows(count, depth(), q.data + r * q.row, k.data + key * k.column, k.column,
                         space.scores + r * space.scores_row + key);
      });
      Strided mask{};
      if (mask_.data) mask = rows_from(mask_.matrix(batch, head), row, rows, keys(), space.mask);
      loops.exponentials(rows, keys(), scale_, mask.data, mask.row, space.scores, space.scores_row,
                         space.sums);
      for_each_part([&](int64_t key, int64_t count) {
        float* const to = key == 0 ? space.products : space.part;
        const float* const scores = space.scores + key;
        if (packs) {
          multiply(rows, count, width(), scores, space.scores_row,
                   space.values + key * space.products_row, to, space.products_row);
        } else {
          for (int64_t r = 0; r < rows; ++r)
            loops.sum_rows(count, width(), scores + r * space.scores_row, v.data + key * v.row,
                           v.row, to + r * space.products_row);
        }
        if (key == 0) return;
        for (int64_t i = 0; i < rows * space.products_row; ++i) space.products[i] += to[i];
      });
      store(batch, head, row, rows, space);
    }
  }

  // products[rows, columns] = left[rows, depth] x a packed matrix; also writes up to the next
  // multiple of ProductKernels::lanes. Deep products are sums of shallow ones, so that what all
  // rows multiply with stays near. The order of a sum depends on nothing but `depth`.
  static void multiply(int64_t rows, int64_t depth, int64_t columns, const float* left,
                       int64_t left_row, const float* packed, float* products,
                       int64_t products_row) {
    const ProductKernels& product = kernel_set().product;
    for (int64_t start = 0; start < columns; start += product.panel) {
      const int64_t width = std::min(product.panel, round_up(columns - start, product.lanes));
      const float* const panel_end = packed + depth * width;
      float* const to = products + start;
      for (int64_t d = 0; d == 0 || d < depth; d += kDepth) {
        const int64_t some = std::min(kDepth, depth - d);
        const float* const next = packed + some * width;
        ProductEnd end;
        if (d > 0) {
          end.added = to;
          end.added_row = products_row;
        }
        product.multiply(rows, some, width, left + d, left_row, packed,
                         d == 0 || next < panel_end ? next : packed, end, to, products_row);
        packed = next;
      }
    }
  }

  void store(int64_t batch, int64_t head, int64_t first, int64_t rows, const Space& space) {
    float* to = out_.data + batch * out_.strides[kBatch] + head * out_.strides[kHead] +
                first * out_.strides[kRow];
    for (int64_t r = 0; r < rows; ++r, to += out_.strides[kRow]) {
      const float* const from = space.products + r * space.products_row;
      const float sum = keys() == 0 ? 1 : space.sums[r];
      for (int64_t c = 0; c < width(); ++c) to[c * out_.strides[kColumn]] = from[c] / sum;
    }
  }

  // Rows whose elements are neighbours: where they lie, or copied.
  static Strided rows_from(const Strided& matrix, int64_t first, int64_t rows, int64_t columns,
                           float* copy) {
    const Strided wanted = from(matrix, first, 0);
    if (wanted.column == 1) return wanted;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        copy[r * columns + c] = wanted.data[r * wanted.row + c * wanted.column];
    }
    return {copy, columns, 1};
  }

  static int64_t rows_of_block(int64_t scores_row) {
    const int64_t fitting = kMostScores / std::max<int64_t>(1, scores_row);
    return std::clamp(fitting / kRowsAtOnce * kRowsAtOnce, kRowsAtOnce, 16 * kRowsAtOnce);
  }

  static constexpr int64_t kLine = 16;              // floats of a cache line
  static constexpr int64_t kRowsAtOnce = 6;         // that `multiply` keeps in registers
  static constexpr int64_t kDepth = 256;            // of a shallow product
  static constexpr int64_t kMostScores = 64 << 10;  // floats of a block's
  static constexpr int64_t kMostOfPart = 4 << 20;   // floats of keys or values, some 5 ms

  Matrices q_, k_, v_, mask_, out_;
  float scale_;
};

}  // namespace

void attention(const AnyView* args, int32_t count, Any*) {
  require_arity(kSignature, count);
  Attention(args).run();
}

}  // namespace tenon::onednn
