#include "import/onnx/sparse_tensor.h"

#include "import/onnx/node_context.h"
#include "object/string_tensor.h"
#include "support/error.h"

namespace tenon::onnx {
namespace {

using graph::attrs;

class Reader {
 public:
  Reader(const SparseData& sparse, std::string_view what) : sparse_(sparse), what_(what) {}

  Operand dense(graph::Builder& builder) const {
    const int64_t count = elements();
    const Operand zeros =
        builder.op("full", {zero()}, attrs({{"shape", graph::attr_dims({count})}}));
    const Operand flat =
        builder.op("scatter_elements",
                   {zeros, graph::constant(places(count)), graph::constant(sparse_.values.tensor)},
                   attrs({{"axis", 0}}));
    const Dims dims(sparse_.dims.begin(), sparse_.dims.end());
    return builder.op("reshape", {flat}, attrs({{"shape", graph::attr_dims(dims)}}));
  }

 private:
  Operand zero() const {
    const DataType dtype = sparse_.values.tensor.dtype();
    if (dtype == string_elements) {
      const std::string_view empty;
      return graph::constant(string_tensor({}, {&empty, 1}));
    }
    return graph::constant(make_tensor(dtype, {}, {0}));
  }

  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t size : sparse_.dims) {
      if (size < 1) throw damaged().found(cat("size ", size)).expected("sizes of 1 or more");
      if (__builtin_mul_overflow(count, size, &count)) {
        throw damaged()
            .found("more elements than 64 bits can count")
            .expected("sizes that fit memory");
      }
    }
    return count;
  }

  // Each value's place among all elements, in row-major order.
  Tensor places(int64_t count) const {
    const Tensor &values = sparse_.values.tensor, &indices = sparse_.indices.tensor;
    if (values.rank() != 1) throw damaged().found(to_text(values)).expected("a list of values");
    const int64_t n = values.count(), rank = static_cast<int64_t>(sparse_.dims.size());
    const bool typed =
        indices && indices.dtype() == i64 && indices.rank() >= 1 && indices.dim(0) == n;
    const bool linear = typed && indices.rank() == 1;
    if (!linear && !(typed && indices.rank() == 2 && indices.dim(1) == rank)) {
      throw damaged()
          .found(indices ? cat("indices ", to_text(indices)) : "no indices")
          .expected(cat("tensor[", n, "; i64] or tensor[", n, ", ", rank, "; i64]"));
    }
    const auto* index = indices.data_as<int64_t>();
    std::vector<int64_t> places(static_cast<size_t>(n), 0);
    for (int64_t& place : places) {
      if (linear) {
        place = within(*index++, count);
        continue;
      }
      for (const int64_t size : sparse_.dims) place = place * size + within(*index++, size);
    }
    return Tensor::copy_of(std::span<const int64_t>(&n, 1), i64, std::span<const int64_t>(places));
  }

  int64_t within(int64_t index, int64_t size) const {
    if (index < 0 || index >= size) {
      throw damaged().found(cat("index ", index)).expected(cat("0 to ", size - 1));
    }
    return index;
  }

  Error damaged() const {
    return Error(ErrorKind::Damaged, cat("sparse tensor '", printable(what_), "' is damaged"));
  }

  const SparseData& sparse_;
  std::string_view what_;
};

}  // namespace

std::string problem_of(const SparseData& sparse) {
  return sparse.values.tensor ? sparse.indices.problem : sparse.values.problem;
}

Operand dense(graph::Builder& builder, const SparseData& sparse, std::string_view what) {
  return Reader(sparse, what).dense(builder);
}

}  // namespace tenon::onnx
