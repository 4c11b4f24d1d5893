// Products of matrices of bytes, which some processors compute in registers that hold matrices.
// They are written as three loops of the kind kMatrix around a dot product of words of four bytes:
//
//   matrix i from 0 count rows
//     matrix j from 0 count columns
//       sums[at] = 0
//       matrix k from 0 count depth
//         sums[at] = sums[at] + byte_dot(left, right)
//         prefetch next             (or nothing)
//
// As loops they mean what serial loops do. A back end that has such registers recognises them
// (`byte_matrix_of`); any other runs them one by one.
#pragma once

#include <array>
#include <optional>

#include "loop/kernel.h"

namespace tenon::loop {

// The bytes of which the word `e` is made, as i32, from the lowest on; nullopt if it isn't a word
// of four u8.
using WordBytes = std::array<ExprRef, kBytesPerWord>;
std::optional<WordBytes> bytes_of(const ExprRef& e);

// The load of a word's first byte, if its four bytes are neighbours in one buffer with flat
// indices; of a word that is loaded as such, that load. Else null.
const Load* load_of_word(const ExprRef& e);

// What the loops multiply. All indices are flat, and grow by constants with i, j and k.
struct ByteMatrix {
  const Var *row, *column, *step;  // i, j, k
  int64_t rows = 0, columns = 0, depth = 0;
  const Buffer* sums = nullptr;
  ExprRef at;
  int64_t sums_row = 0;         // from one row of `sums` to the next, in elements
  const Load* left = nullptr;   // of the unsigned bytes: words side by side along k, or their first
                                // bytes
  Dim left_row;                 // from one row to the next, in elements
  const Load* right = nullptr;  // of the signed bytes: words side by side along j
  Dim right_row;                // from one k to the next, in elements
  const Prefetch* next = nullptr;  // what is fetched meanwhile, with one index; null if nothing is
  Dim next_row;                    // from one k to the next, in elements
};

// The loops for sums[first + i * columns + j], of i32. `left` and `right` are words that depend on
// `row`, `column` and `step`; `next` is a prefetch that depends on `step`, or empty.
struct MatrixLoops {
  Ref<const Var> row, column, step;
  int64_t rows = 0, columns = 0, depth = 0;
};
StmtRef byte_matrix(const MatrixLoops& loops, const Ref<const Buffer>& sums, const ExprRef& left,
                    const ExprRef& right, const StmtRef& next = {});

// What such loops multiply; nullopt if `loop` isn't the outermost of them.
std::optional<ByteMatrix> byte_matrix_of(const For& loop);

}  // namespace tenon::loop
