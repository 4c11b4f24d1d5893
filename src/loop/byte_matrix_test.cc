#include "loop/byte_matrix.h"

#include <gtest/gtest.h>
#include "loop/schedule.h"
#include "loop/schedule_agreement_testing.h"
#include "loop/tensors_testing.h"
#include "loop/walk.h"
#include "loop/word_product_testing.h"

namespace tenon::loop {
namespace {

ScheduleOptions with_matrices() {
  ScheduleOptions options;
  options.target = {.vector_bytes = 64, .vector_registers = 32};
  options.target.dot_products = options.target.byte_matrices = true;
  return options;
}

// What the kernel multiplies in matrices.
std::vector<ByteMatrix> matrices_in(const Kernel& kernel) {
  std::vector<ByteMatrix> found;
  for_each_stmt(kernel.body, [&](const StmtRef& s) {
    if (s->kind != StmtKind::kFor) return;
    if (const auto m = byte_matrix_of(static_cast<const For&>(*s))) found.push_back(*m);
  });
  return found;
}

// Rows in place, where the last tile begins earlier, and packed; depths beside whole steps; columns
// that are packed.
TEST(ByteMatrix, ProductsOfWordsAgreeWithTheCompute) {
  Agreement a;
  const ScheduleOptions options = with_matrices();
  for (const int64_t rows : {7, 33, 70}) {
    for (const int64_t height : {1, 2}) {
      for (const int64_t words : {8, 21}) {
        for (const int64_t columns : {32, 40}) {
          SCOPED_TRACE(
              cat(rows, " rows, ", height, " by ", words, " words, ", columns, " columns"));
          const std::vector<Tensor> inputs = {a.random({rows + height - 1, 4 * words + 4}, u8),
                                              a.random({height, words, columns}, i32)};
          for (const bool symbolic : {false, true}) {
            const ComputeRef c =
                word_product(symbolic ? Dim::symbol("n") : Dim(rows), height, words, columns);
            const KernelRef kernel = lower(*c, "k", options);
            SCOPED_TRACE(to_text(*kernel));
            check(*kernel);
            const auto found = matrices_in(*kernel);
            ASSERT_FALSE(found.empty());
            EXPECT_EQ(found[0].depth, height * words);
            EXPECT_EQ(found[0].left->dtype, !symbolic && height == 1 ? u8 : i32);
            expect_close(evaluate(*kernel, inputs, {{"n", rows}})[0],
                         evaluate(*c, inputs, {{"n", rows}})[0], 0);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// Few steps, and few rows, stay with vectors; so do words whose signed bytes are the rows'.
TEST(ByteMatrix, OtherProductsStayWithVectors) {
  for (const ComputeRef& c : {word_product(64, 1, 7, 64), word_product(6, 1, 64, 64),
                              word_product(64, 1, 64, 64, /*x_second=*/true)}) {
    EXPECT_TRUE(matrices_in(*lower(*c, "k", with_matrices())).empty());
  }
  EXPECT_TRUE(matrices_in(*lower(*word_product(64, 1, 64, 64), "k", {})).empty());
}

TEST(ByteMatrix, WordsAreFourNeighbours) {
  const auto x = buffer("x", u8, {Dim::symbol("n")}), y = buffer("y", u8, {Dim::symbol("n")});
  const auto i = var("i", i64);
  const auto word = [&](const std::array<ExprRef, 4>& places, const Ref<const Buffer>& last) {
    return word_of([&](int64_t byte) {
      return load(byte == 3 ? last : x, {places[static_cast<size_t>(byte)]});
    });
  };
  const auto at = [&](int64_t place) { return ExprRef(i) * index(4) + index(place); };
  const ExprRef neighbours = word({at(2), at(3), at(4), at(5)}, x);
  const Load* const first = load_of_word(neighbours);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->buffer, x);
  EXPECT_EQ(load_of_word(word({at(2), at(3), at(4), at(6)}, x)), nullptr);
  EXPECT_EQ(load_of_word(word({at(2), at(3), at(4), at(5)}, y)), nullptr);
  EXPECT_EQ(load_of_word(word({at(2), at(3), at(4), ExprRef(i) + index(5)}, x)), nullptr);
  EXPECT_EQ(load_of_word(literal_int(i32, 3)), nullptr);
}

// A back end must not take other loops for a product.
TEST(ByteMatrix, LoopsThatDifferAreNotRecognised) {
  const MatrixLoops loops = {var("i", i64), var("j", i64), var("k", i64), 16, 16, 16};
  const auto sums = buffer("sums", i32, {Dim(256)}), a = buffer("a", i32, {Dim(256)}),
             b = buffer("b", i32, {Dim(256)});
  const ExprRef row = ExprRef(loops.row) * index(16), step = ExprRef(loops.step);
  const ExprRef left = load(a, {row + step}),
                right = load(b, {step * index(16) + ExprRef(loops.column)});
  const auto matrix = [&](const ExprRef& l, const ExprRef& r) {
    const StmtRef s = byte_matrix(loops, sums, l, r);
    return byte_matrix_of(static_cast<const For&>(*s));
  };
  ASSERT_TRUE(matrix(left, right));
  EXPECT_EQ(matrix(left, right)->left_row, Dim(16));
  EXPECT_EQ(matrix(left, right)->right_row, Dim(16));
  EXPECT_FALSE(matrix(right, left));                              // rows are columns
  EXPECT_FALSE(matrix(load(a, {row + step * index(2)}), right));  // not side by side
  EXPECT_FALSE(matrix(load(a, {row + step + ExprRef(loops.column)}), right));
  EXPECT_FALSE(matrix(load(sums, {row + step}), right));  // of its own sums
  EXPECT_FALSE(matrix(left, literal_int(i32, 1)));
  const StmtRef whole = byte_matrix(loops, sums, left, right);
  const auto& columns = static_cast<const For&>(*static_cast<const For&>(*whole).body);
  EXPECT_FALSE(byte_matrix_of(columns));
  const StmtRef serial = for_loop(loops.row, index(0), index(16), ForKind::kSerial,
                                  static_cast<const For&>(*whole).body);
  EXPECT_FALSE(byte_matrix_of(static_cast<const For&>(*serial)));
  const StmtRef later = for_loop(loops.row, index(1), index(15), ForKind::kMatrix,
                                 static_cast<const For&>(*whole).body);
  EXPECT_FALSE(byte_matrix_of(static_cast<const For&>(*later)));
}

}  // namespace
}  // namespace tenon::loop
