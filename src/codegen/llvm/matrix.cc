// Products of matrices of bytes (loop/byte_matrix.h) in the registers of Intel's AMX, each of up to
// 16 rows of 64 bytes. A product of up to 32 rows and 32 columns has its sums in four of them; a
// step loads two registers of each operand and multiplies each pair:
//
//            6 7    right, 16 words of depth, 16 columns each
//         4  0 1
//         5  2 3
//   left, 16 rows each, 16 words of depth
//
// The registers are named by number, so that LLVM doesn't allocate them; they hold nothing before
// and after the product.
#include <algorithm>
#include <array>

#include "codegen/llvm/statement.h"
#include "codegen/llvm/work.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "loop/byte_matrix.h"
#include "loop/walk.h"

namespace tenon::codegen {
namespace {

constexpr int64_t kRows = 16, kWords = 16;  // of a register
constexpr int64_t kLineBytes = 64;          // a row of one
constexpr uint8_t kSums = 0, kLeft = 4, kRight = 6;

// The shapes of the registers, as the processor reads them.
using Shapes = std::array<uint8_t, 64>;

Shapes shapes_of(const loop::ByteMatrix& m) {
  constexpr size_t kBytesOfRow = 16, kRowCounts = 48;
  Shapes shapes{};
  shapes[0] = 1;  // of the only palette
  const auto shape = [&](int64_t which, int64_t rows, int64_t bytes) {
    shapes[kBytesOfRow + 2 * static_cast<size_t>(which)] = static_cast<uint8_t>(bytes);
    shapes[kRowCounts + static_cast<size_t>(which)] = static_cast<uint8_t>(rows);
  };
  const int64_t step = std::min(m.depth, kWords);
  for (int64_t i = 0; i < 2; ++i) {
    shape(kRight + i, step, kLineBytes);
    const int64_t rows = std::clamp<int64_t>(m.rows - i * kRows, 0, kRows);
    if (rows == 0) continue;
    shape(kLeft + i, rows, step * loop::kBytesPerWord);
    for (int64_t j = 0; j < 2; ++j) shape(kSums + 2 * i + j, rows, kLineBytes);
  }
  return shapes;
}

// What the registers multiply of such loops; nullopt if they can't.
std::optional<loop::ByteMatrix> multiplied(const loop::For& loop) {
  const auto m = loop::byte_matrix_of(loop);
  return m && m->rows <= 2 * kRows && m->columns % kWords == 0 ? m : std::nullopt;
}

// The shapes of all products in `s`; nullopt if there is none, if they differ, or if tasks compute
// some.
std::optional<Shapes> common_shapes(const loop::Stmt& s) {
  std::optional<Shapes> common;
  bool differ = false;
  loop::for_each_stmt(loop::StmtRef(&s), [&](const loop::StmtRef& inner) {
    if (inner->kind != loop::StmtKind::kFor) return;
    const auto& loop = static_cast<const loop::For&>(*inner);
    if (loop.loop == loop::ForKind::kParallel) differ = true;
    if (loop.loop != loop::ForKind::kMatrix) return;
    const auto m = multiplied(loop);
    if (!m) return;
    const Shapes shapes = shapes_of(*m);
    differ = differ || (common && *common != shapes);
    common = shapes;
  });
  return differ ? std::nullopt : common;
}

llvm::Value* table_of(Builder& b, const Shapes& shapes) {
  auto* data = llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef<uint8_t>(shapes));
  auto* table = new llvm::GlobalVariable(*b.GetInsertBlock()->getModule(), data->getType(), true,
                                         llvm::GlobalValue::PrivateLinkage, data);
  table->setAlignment(llvm::Align(kLineBytes));
  return table;
}

class MatrixWriter {
 public:
  // The addresses are those of the first elements; `next` is null if nothing is fetched.
  MatrixWriter(FunctionWriter& f, const loop::ByteMatrix& m, llvm::Value* left, llvm::Value* right,
               llvm::Value* sums, llvm::Value* next)
      : f_(f), b_(f.b), m_(m), left_(left), right_(right), sums_(sums), next_(next) {
    const int64_t word = loop::kBytesPerWord;
    left_row_ = bytes(f.dim(m.left_row), m.left->dtype == u8 ? 1 : word);
    right_row_ = bytes(f.dim(m.right_row), word);
    if (next != nullptr) next_row_ = bytes(f.dim(m.next_row), m.next->buffer->dtype.bytes());
  }

  void write() {
    const int64_t rest = m_.depth > kWords ? m_.depth % kWords : 0;
    if (rest > 0) store_rest(rest);
    for (int64_t column = 0; column < m_.columns; column += 2 * kWords) {
      columns(column, m_.columns - column > kWords ? 2 : 1);
    }
  }

 private:
  llvm::Value* number(int64_t n) { return b_.getInt64(static_cast<uint64_t>(n)); }
  llvm::Value* bytes(llvm::Value* elements, int64_t each) {
    return b_.CreateMul(elements, number(each));
  }
  llvm::Value* after(llvm::Value* address, llvm::Value* distance) {
    return b_.CreateGEP(b_.getInt8Ty(), address, distance);
  }
  llvm::Value* name(int64_t which) { return b_.getInt8(static_cast<uint8_t>(which)); }
  int64_t halves() const { return m_.rows > kRows ? 2 : 1; }

  // `turn` for 0 to count - 1.
  template <class Turn>
  void repeat(int64_t count, const Turn& turn) {
    if (count == 1) return turn(number(0));
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::BasicBlock* loop = f_.block("steps");
    llvm::BasicBlock* end = f_.block("end.steps");
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(number(0), before);
    turn(i);
    llvm::Value* next = b_.CreateAdd(i, number(1), "", true, true);
    i->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpULT(next, number(count)), loop, end);
    b_.SetInsertPoint(end);
  }

  // The last 16 words of each row of `left`, of which the first ones, which whole steps have
  // multiplied, are 0.
  void store_rest(int64_t rest) {
    auto* line = llvm::FixedVectorType::get(b_.getInt32Ty(), kWords);
    rest_ = f_.stack_slot(line, static_cast<uint64_t>(m_.rows), kLineBytes);
    std::array<bool, kWords> is_new{};
    std::fill(is_new.end() - rest, is_new.end(), true);
    std::array<llvm::Constant*, kWords> lanes;
    std::ranges::transform(is_new, lanes.begin(), [&](bool lane) { return b_.getInt1(lane); });
    llvm::Value* mask = llvm::ConstantVector::get(lanes);
    llvm::Value* last = after(left_, number((m_.depth - kWords) * loop::kBytesPerWord));
    repeat(m_.rows, [&](llvm::Value* row) {
      llvm::Value* words =
          b_.CreateAlignedLoad(line, after(last, b_.CreateMul(row, left_row_)), llvm::Align(1));
      words = b_.CreateSelect(mask, words, llvm::Constant::getNullValue(line));
      b_.CreateAlignedStore(words, after(rest_, bytes(row, kLineBytes)), llvm::Align(kLineBytes));
    });
  }

  void load(int64_t which, llvm::Value* from, llvm::Value* row) {
    b_.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {}, {name(which), from, row});
  }
  llvm::Value* half_of(llvm::Value* left, llvm::Value* row) {
    return after(left, b_.CreateMul(row, number(kRows)));
  }

  // Adds the products of a step. The registers of both operands are loaded between multiplications,
  // which they don't wait for.
  void step(llvm::Value* left, llvm::Value* left_row, llvm::Value* right, int64_t count) {
    load(kLeft, left, left_row);
    for (int64_t j = 0; j < count; ++j) {
      load(kRight + j, after(right, number(j * kLineBytes)), right_row_);
    }
    if (halves() > 1) load(kLeft + 1, half_of(left, left_row), left_row);
    for (int64_t i = 0; i < halves(); ++i) {
      for (int64_t j = 0; j < count; ++j) {
        b_.CreateIntrinsic(llvm::Intrinsic::x86_tdpbusd, {},
                           {name(kSums + 2 * i + j), name(kLeft + i), name(kRight + j)});
      }
    }
  }

  // What belongs to step `i`, of which each pair of columns fetches its share.
  void fetch(llvm::Value* i, int64_t first) {
    constexpr uint32_t kForReading = 0, kSecondLevel = 2, kData = 1;
    const int64_t pairs = (m_.columns + 2 * kWords - 1) / (2 * kWords);
    const int64_t pair = first / (2 * kWords), step = std::min(m_.depth, kWords);
    for (int64_t k = step * pair / pairs; k < step * (pair + 1) / pairs; ++k) {
      llvm::Value* row = b_.CreateAdd(b_.CreateMul(i, number(kWords)), number(k));
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {next_->getType()},
                         {after(next_, b_.CreateMul(row, next_row_)), b_.getInt32(kForReading),
                          b_.getInt32(kSecondLevel), b_.getInt32(kData)});
    }
  }

  // The sums of 16 or 32 columns.
  void columns(int64_t first, int64_t count) {
    llvm::Value* const right = after(right_, number(first * loop::kBytesPerWord));
    for_sums(count, [&](int64_t which, int64_t, int64_t) {
      b_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {name(which)});
    });
    repeat(std::max<int64_t>(m_.depth / kWords, 1), [&](llvm::Value* i) {
      step(after(left_, bytes(i, kLineBytes)), left_row_,
           after(right, b_.CreateMul(i, b_.CreateMul(right_row_, number(kWords)))), count);
      if (next_ != nullptr) fetch(i, first);
    });
    if (rest_ != nullptr) {
      step(rest_, number(kLineBytes),
           after(right, b_.CreateMul(right_row_, number(m_.depth - kWords))), count);
    }
    const int64_t row = m_.sums_row * loop::kBytesPerWord;
    for_sums(count, [&](int64_t which, int64_t i, int64_t j) {
      const int64_t column = (first + j * kWords) * loop::kBytesPerWord;
      b_.CreateIntrinsic(
          llvm::Intrinsic::x86_tilestored64, {},
          {name(which), after(sums_, number(i * kRows * row + column)), number(row)});
    });
  }
  template <class Visit>
  void for_sums(int64_t count, const Visit& visit) {
    for (int64_t i = 0; i < halves(); ++i) {
      for (int64_t j = 0; j < count; ++j) visit(kSums + 2 * i + j, i, j);
    }
  }

  FunctionWriter& f_;
  Builder& b_;
  const loop::ByteMatrix& m_;
  llvm::Value *left_, *right_, *sums_, *next_;
  // Bytes from one row to the next.
  llvm::Value *left_row_ = nullptr, *right_row_ = nullptr, *next_row_ = nullptr;
  llvm::Value* rest_ = nullptr;
};

}  // namespace

void load_matrix_shapes(FunctionWriter& f) {
  f.b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {f.matrix_shapes});
}
void release_matrices(FunctionWriter& f) {
  f.b.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

bool StatementWriter::uses_matrices(const loop::For& loop) const {
  const bool could = f_.m.target.capabilities.byte_matrices && f_.kernel.in_bounds &&
                     f_.matrix_shapes == nullptr && !f_.in_lanes();
  return could && common_shapes(loop);
}

void StatementWriter::with_matrices(const loop::For& loop) {
  f_.matrix_shapes = table_of(b_, *common_shapes(loop));
  load_matrix_shapes(f_);
  for_loop(loop);
  release_matrices(f_);
  f_.matrix_shapes = nullptr;
}

bool StatementWriter::matrix_loop(const loop::For& loop) {
  if (f_.matrix_shapes == nullptr) return false;
  const auto m = multiplied(loop);
  if (!m) return false;
  if (work_.work_of(loop).counts_itself) {
    const int64_t work =
        m->rows * m->columns * m->depth / (kLanesOfWork * kLanesOfWork * kLanesOfWork);
    work_.spend(b_.getInt64(static_cast<uint64_t>(std::max<int64_t>(work, 1))));
  }
  for (const loop::Var* v : {m->row, m->column, m->step}) f_.env.vars[v] = {{b_.getInt64(0)}};
  {
    ExpressionWriter::Scope scope(expressions_);
    const auto place = [&](const loop::Buffer& buffer, const loop::ExprRef& at) {
      return memory_.place(buffer, expressions_.address(buffer, {at}));
    };
    llvm::Value* left = place(*m->left->buffer, m->left->indices[0]);
    llvm::Value* right = place(*m->right->buffer, m->right->indices[0]);
    llvm::Value* sums = place(*m->sums, m->at);
    llvm::Value* next = m->next ? place(*m->next->buffer, m->next->indices[0]) : nullptr;
    MatrixWriter(f_, *m, left, right, sums, next).write();
  }
  for (const loop::Var* v : {m->row, m->column, m->step}) f_.env.vars.erase(v);
  return true;
}

}  // namespace tenon::codegen
