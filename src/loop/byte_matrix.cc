#include "loop/byte_matrix.h"

#include <algorithm>

#include "loop/affine.h"
#include "loop/walk.h"

namespace tenon::loop {
namespace {

// b - a, if it is the same wherever the variables are.
std::optional<Dim> distance(const ExprRef& a, const ExprRef& b) {
  VarMap at_zero;
  Seen seen;
  bool agree = true;
  const auto visit = [&](const ExprRef& e) {
    if (e->kind == ExprKind::kLoad) agree = false;
    if (e->kind != ExprKind::kVar) return;
    const Ref<const Var> v(static_cast<const Var*>(e.get()));
    const auto of_a = coefficient(a, v), of_b = coefficient(b, v);
    agree = agree && of_a && of_b && *of_a == *of_b;
    at_zero[v.get()] = index(0);
  };
  post_order(a, visit, &seen);
  post_order(b, visit, &seen);
  if (!agree) return std::nullopt;
  const auto from = as_dim(substitute(a, at_zero)), to = as_dim(substitute(b, at_zero));
  if (!from || !to) return std::nullopt;
  return *to - *from;
}

// The load that casts to wider integers surround, of u8 with a flat index.
const Load* load_of_byte(const ExprRef& e) {
  const Expr* inner = e.get();
  while (inner->kind == ExprKind::kCast && !static_cast<const Cast&>(*inner).keeps_bits) {
    inner = static_cast<const Cast&>(*inner).a.get();
    if (inner->dtype != u8 && inner->dtype != i32) return nullptr;
  }
  if (inner->kind != ExprKind::kLoad || inner->dtype != u8) return nullptr;
  const auto* load = static_cast<const Load*>(inner);
  return load->indices.size() == 1 ? load : nullptr;
}

const For* matrix_loop(const StmtRef& s) {
  if (s->kind != StmtKind::kFor) return nullptr;
  const auto& loop = static_cast<const For&>(*s);
  const auto extent = as_int(loop.extent);
  const bool from_zero = as_int(loop.begin) == 0;
  return loop.loop == ForKind::kMatrix && from_zero && extent && *extent > 0 ? &loop : nullptr;
}

const Store* store_in(const StmtRef& s) {
  if (s->kind != StmtKind::kStore) return nullptr;
  const auto* store = static_cast<const Store*>(s.get());
  return store->indices.size() == 1 ? store : nullptr;
}

std::optional<int64_t> constant_step(const ExprRef& e, const Ref<const Var>& v) {
  const auto c = coefficient(e, v);
  return c ? c->as_const() : std::nullopt;
}

}  // namespace

std::optional<WordBytes> bytes_of(const ExprRef& e) {
  WordBytes bytes;
  std::vector<ExprRef> open{e};
  for (size_t parts = 0; !open.empty(); ++parts) {
    if (parts > 2 * kBytesPerWord) return std::nullopt;
    const ExprRef part = std::move(open.back());
    open.pop_back();
    int64_t place = 0;
    ExprRef byte = part;
    if (part->kind == ExprKind::kBinary) {
      const auto& b = static_cast<const Binary&>(*part);
      if (b.op == BinaryOp::kOr) {
        open.push_back(b.a);
        open.push_back(b.b);
        continue;
      }
      const auto bits = as_int(b.b);
      if (b.op != BinaryOp::kShl || !bits || *bits % 8 != 0) return std::nullopt;
      place = *bits / 8;
      byte = b.a;
    }
    const bool is_byte = byte->kind == ExprKind::kCast && byte->dtype == i32 &&
                         static_cast<const Cast&>(*byte).a->dtype == u8;
    if (!is_byte || place < 0 || place >= kBytesPerWord || bytes[static_cast<size_t>(place)]) {
      return std::nullopt;
    }
    bytes[static_cast<size_t>(place)] = byte;
  }
  const bool all = std::ranges::all_of(bytes, [](const ExprRef& b) { return bool(b); });
  return all ? std::optional(bytes) : std::nullopt;
}

const Load* load_of_word(const ExprRef& e) {
  if (e->kind == ExprKind::kLoad) {
    const auto* load = static_cast<const Load*>(e.get());
    return load->dtype == i32 && load->indices.size() == 1 ? load : nullptr;
  }
  const auto bytes = bytes_of(e);
  if (!bytes) return nullptr;
  const Load* const first = load_of_byte((*bytes)[0]);
  if (first == nullptr) return nullptr;
  for (size_t j = 1; j < bytes->size(); ++j) {
    const Load* const next = load_of_byte((*bytes)[j]);
    if (next == nullptr || next->buffer != first->buffer) return nullptr;
    const auto by = distance(first->indices[0], next->indices[0]);
    if (!by || !by->is_const(static_cast<int64_t>(j))) return nullptr;
  }
  return first;
}

StmtRef byte_matrix(const MatrixLoops& loops, const Ref<const Buffer>& sums, const ExprRef& left,
                    const ExprRef& right, const StmtRef& next) {
  const ExprRef at =
      binary(BinaryOp::kAdd, binary(BinaryOp::kMul, loops.row, index(loops.columns)), loops.column);
  const ExprRef more =
      binary(BinaryOp::kAdd, load(sums, {at}), binary(BinaryOp::kByteDot, left, right));
  const StmtRef steps = for_loop(loops.step, index(0), index(loops.depth), ForKind::kMatrix,
                                 seq({store(sums, {at}, more), next}));
  const StmtRef columns = for_loop(loops.column, index(0), index(loops.columns), ForKind::kMatrix,
                                   seq({store(sums, {at}, zero(i32)), steps}));
  return for_loop(loops.row, index(0), index(loops.rows), ForKind::kMatrix, columns);
}

std::optional<ByteMatrix> byte_matrix_of(const For& loop) {
  if (loop.loop != ForKind::kMatrix) return std::nullopt;
  const For* const rows = matrix_loop(StmtRef(&loop));
  const For* const columns = rows ? matrix_loop(rows->body) : nullptr;
  if (columns == nullptr || columns->body->kind != StmtKind::kSeq) return std::nullopt;
  const auto& parts = static_cast<const Seq&>(*columns->body).body;
  if (parts.size() != 2) return std::nullopt;
  const Store* const clear = store_in(parts[0]);
  const For* const depth = matrix_loop(parts[1]);
  if (depth == nullptr) return std::nullopt;
  std::vector<StmtRef> body{depth->body};
  if (body[0]->kind == StmtKind::kSeq) body = static_cast<const Seq&>(*body[0]).body.to_vector();
  if (body.empty() || body.size() > 2) return std::nullopt;
  const Store* const add = store_in(body[0]);
  if (clear == nullptr || add == nullptr || clear->buffer != add->buffer ||
      clear->buffer->dtype != i32 || as_int(clear->value) != 0 ||
      add->value->kind != ExprKind::kBinary) {
    return std::nullopt;
  }
  const auto& sum = static_cast<const Binary&>(*add->value);
  if (sum.op != BinaryOp::kAdd || sum.a->kind != ExprKind::kLoad ||
      sum.b->kind != ExprKind::kBinary) {
    return std::nullopt;
  }
  const auto& before = static_cast<const Load&>(*sum.a);
  const auto& dot = static_cast<const Binary&>(*sum.b);
  if (dot.op != BinaryOp::kByteDot || before.buffer != add->buffer || before.indices.size() != 1) {
    return std::nullopt;
  }
  ByteMatrix m;
  m.row = rows->var.get(), m.column = columns->var.get(), m.step = depth->var.get();
  m.rows = *as_int(rows->extent), m.columns = *as_int(columns->extent);
  m.depth = *as_int(depth->extent);
  m.sums = add->buffer.get();
  m.at = add->indices[0];
  const auto same = [&](const ExprRef& e) {
    const auto by = distance(m.at, e);
    return by && by->is_const(0);
  };
  m.left = load_of_word(dot.a), m.right = load_of_word(dot.b);
  if (!same(clear->indices[0]) || !same(before.indices[0]) || m.left == nullptr ||
      m.right == nullptr || m.right->dtype != i32 || m.left->buffer == add->buffer ||
      m.right->buffer == add->buffer) {
    return std::nullopt;
  }
  const ExprRef &left = m.left->indices[0], &right = m.right->indices[0];
  const auto sums_row = constant_step(m.at, rows->var);
  const auto left_row = coefficient(left, rows->var), right_row = coefficient(right, depth->var);
  const int64_t word = m.left->dtype == u8 ? kBytesPerWord : 1;
  if (!sums_row || *sums_row < m.columns || constant_step(m.at, columns->var) != 1 ||
      constant_step(m.at, depth->var) != 0 || !left_row || !right_row ||
      constant_step(left, columns->var) != 0 || constant_step(left, depth->var) != word ||
      constant_step(right, rows->var) != 0 || constant_step(right, columns->var) != 1) {
    return std::nullopt;
  }
  m.sums_row = *sums_row, m.left_row = *left_row, m.right_row = *right_row;
  if (body.size() == 2) {
    if (body[1]->kind != StmtKind::kPrefetch) return std::nullopt;
    m.next = static_cast<const Prefetch*>(body[1].get());
    if (m.next->indices.size() != 1) return std::nullopt;
    const ExprRef& at = m.next->indices[0];
    const auto next_row = coefficient(at, depth->var);
    if (!next_row || depends_on(at, rows->var) || depends_on(at, columns->var)) return std::nullopt;
    m.next_row = *next_row;
  }
  return m;
}

}  // namespace tenon::loop
