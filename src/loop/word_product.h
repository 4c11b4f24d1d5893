// For tests: a sum of dot products of bytes, which are read in words from windows of rows.
#pragma once

#include "loop/test_tensors.h"

namespace tenon::loop {

// y[r, c] = sum over h, q of byte_dot(word q of x[r + h], w[h, q, c]) for u8 x[rows + height - 1,
// 4 * words + 4] and i32 w[height, words, columns]. With `x_second`, the signed bytes are those of
// x.
inline ComputeRef word_product(const Dim& rows, const Dim& height, const Dim& words,
                               const Dim& columns, bool x_second = false) {
  auto x = buffer("x", u8, {rows + height - 1, words * 4 + 4}),
       w = buffer("w", i32, {height, words, columns}), y = buffer("y", i32, {rows, columns});
  auto sum = [&](const std::vector<ExprRef>& i, const std::vector<ExprRef>& k) {
    ExprRef word;
    for (int64_t byte = 0; byte < 4; ++byte) {
      const ExprRef at =
          binary(BinaryOp::kAdd, binary(BinaryOp::kMul, k[1], index(4)), index(byte));
      ExprRef part = cast(i32, load(x, {binary(BinaryOp::kAdd, i[0], k[0]), at}));
      if (byte > 0) part = binary(BinaryOp::kShl, part, literal_int(i32, 8 * byte));
      word = word ? binary(BinaryOp::kOr, word, part) : part;
    }
    const ExprRef other = load(w, {k[0], k[1], i[1]});
    return x_second ? binary(BinaryOp::kByteDot, other, word)
                    : binary(BinaryOp::kByteDot, word, other);
  };
  return compute_of({x, w}, {reduce_stage(y, Reduction::kSum, {height, words}, sum)}, {y});
}

}  // namespace tenon::loop
