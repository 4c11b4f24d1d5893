#include "library/onednn/functions.h"

#include <limits>
#include <vector>

#include "support/error.h"

namespace tenon::onednn {

std::optional<Clamp> clamp_of(library::Activation activation, float alpha, float beta) {
  switch (activation) {
    case library::Activation::None:
      return Clamp();
    case library::Activation::Relu:
      return Clamp{true, 0, std::numeric_limits<float>::infinity()};
    case library::Activation::Clip:
      return Clamp{true, alpha, beta};
    default:
      return std::nullopt;
  }
}

void Failure::operator()(const std::string& what) const {
  throw Error(ErrorKind::Runtime, cat(function.name, ": ", what));
}

void require_arity(const library::Signature& function, int32_t count) {
  if (static_cast<size_t>(count) == function.arity()) return;
  Failure{function}(cat("takes ", function.arity(), " arguments, got ", count));
}

void require_f32(const library::Signature& function, const Tensor& tensor, const char* name,
                 int64_t rank) {
  if (tensor && tensor.dtype() == f32 && tensor.device().device_type == kDLCPU &&
      (tensor->layout & LayoutWord::kCompact) && (rank < 0 || tensor.rank() == rank)) {
    return;
  }
  Failure{function}(cat("'", name, "' is not a compact ",
                        tensor_type_text(rank < 0 ? "*" : cat("rank=", rank), f32), " on the CPU"));
}

void require_output(const library::Signature& function, const Tensor& out) {
  if (out->layout & LayoutWord::kReadOnly) Failure{function}("'out' is read-only");
}

void require_permutation(const library::Signature& function, const Shape& perm, size_t rank,
                         const char* name) {
  std::vector<bool> seen(rank, false);
  bool fits = perm.size() == rank;
  for (size_t i = 0; fits && i < rank; ++i) {
    const auto axis = static_cast<size_t>(perm[i]);  // huge if negative
    fits = axis < rank && !seen[axis];
    if (fits) seen[axis] = true;
  }
  if (fits) return;
  Failure{function}(cat("the permutation of '", name, "' is ", to_text(perm),
                        ", expected one of its ", rank, " axes"));
}

}  // namespace tenon::onednn
