// For tests: sums of dot products of bytes, which are read in words from windows.
#pragma once

#include "loop/tensors_testing.h"

namespace tenon::loop {

// The word of four such bytes.
inline ExprRef word_of(const std::function<ExprRef(int64_t byte)>& byte) {
  ExprRef word = cast(i32, byte(0));
  for (int64_t b = 1; b < kBytesPerWord; ++b) {
    const ExprRef part = binary(BinaryOp::kShl, cast(i32, byte(b)), literal_int(i32, 8 * b));
    word = binary(BinaryOp::kOr, word, part);
  }
  return word;
}

// y[r, c] = sum over h, q of byte_dot(word q of x[r + h], w[h, q, c]) for u8 x[rows + height - 1,
// 4 * words + 4] and i32 w[height, words, columns]. With `x_second`, the signed bytes are those of
// x.
inline ComputeRef word_product(const Dim& rows, const Dim& height, const Dim& words,
                               const Dim& columns, bool x_second = false) {
  auto x = buffer("x", u8, {rows + height - 1, words * kBytesPerWord + kBytesPerWord}),
       w = buffer("w", i32, {height, words, columns}), y = buffer("y", i32, {rows, columns});
  auto sum = [&](const std::vector<ExprRef>& i, const std::vector<ExprRef>& k) {
    const ExprRef word = word_of([&](int64_t byte) {
      return load(x, {i[0] + k[0], k[1] * index(kBytesPerWord) + index(byte)});
    });
    const ExprRef other = load(w, {k[0], k[1], i[1]});
    return x_second ? binary(BinaryOp::kByteDot, other, word)
                    : binary(BinaryOp::kByteDot, word, other);
  };
  return compute_of({x, w}, {reduce_stage(y, Reduction::kSum, {height, words}, sum)}, {y});
}

// Windows of `height` rows and 4 * words places that slide by `stride` over u8 x[rows, places,
// channels], which `pad` numbers 7 surround, each channel with weights w[height, words, channels]
// of its own: y[r, p, c], plus a bias for each channel.
struct SlidingWords {
  int64_t rows, places, channels, height, words, stride, pad;
};
inline ComputeRef sliding_words(const SlidingWords& s, const Dim& rows) {
  auto x = buffer("x", u8, {rows, Dim(s.places), Dim(s.channels)}),
       w = buffer("w", i32, {Dim(s.height), Dim(s.words), Dim(s.channels)}),
       bias = buffer("bias", i32, {Dim(s.channels)});
  const auto count = [&](const Dim& extent, int64_t kernel) {
    return floordiv(extent + 2 * s.pad - kernel, Dim(s.stride)) + 1;
  };
  const std::vector<Dim> shape = {count(rows, s.height),
                                  count(Dim(s.places), kBytesPerWord * s.words), Dim(s.channels)};
  auto sum = buffer("sum", i32, shape), y = buffer("y", i32, shape);
  const auto inside = [](const ExprRef& i, const Dim& extent) {
    return binary(BinaryOp::kAnd, binary(BinaryOp::kLe, index(0), i),
                  binary(BinaryOp::kLt, i, dim_value(extent)));
  };
  const auto place = [&](const ExprRef& i, const ExprRef& k) {
    return i * index(s.stride) + k - index(s.pad);
  };
  auto products = reduce_stage(
      sum, Reduction::kSum, {Dim(s.height), Dim(s.words)},
      [&](const std::vector<ExprRef>& i, const std::vector<ExprRef>& k) {
        const ExprRef row = place(i[0], k[0]);
        const ExprRef word = word_of([&](int64_t byte) {
          const ExprRef at = place(i[1], k[1] * index(kBytesPerWord) + index(byte));
          const ExprRef both = binary(BinaryOp::kAnd, inside(row, rows), inside(at, Dim(s.places)));
          const ExprRef element = load(x, {row, at, i[2]});
          return s.pad == 0 ? element : select(both, element, literal_int(u8, 7));
        });
        return binary(BinaryOp::kByteDot, word, load(w, {k[0], k[1], i[2]}));
      });
  auto biased = map_stage(y, [&](const std::vector<ExprRef>& i) {
    return load(sum, Array<ExprRef>(i)) + load(bias, {i[2]});
  });
  return compute_of({x, w, bias}, {products, biased}, {y});
}

}  // namespace tenon::loop
