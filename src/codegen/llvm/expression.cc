#include "codegen/llvm/expression.h"

#include <unordered_set>
#include <utility>

#include "loop/byte_matrix.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::codegen {

using loop::ExprKind;

namespace {

// The nodes that evaluating `e` always evaluates.
void always_computed(const loop::Expr& e, std::unordered_set<const loop::Expr*>* nodes) {
  if (e.kind == ExprKind::kLiteral || e.kind == ExprKind::kVar || !nodes->insert(&e).second) return;
  if (e.kind == ExprKind::kSelect)
    return always_computed(*static_cast<const loop::Select&>(e).condition, nodes);
  loop::for_operands(e, [&](const loop::ExprRef& a) { always_computed(*a, nodes); });
}

}  // namespace

Value ExpressionWriter::evaluate(const loop::Expr& e) {
  Scope scope(*this);
  return value(e);
}

Value ExpressionWriter::value(const loop::Expr& e) {
  if (e.kind == ExprKind::kLiteral) return operators_.literal(static_cast<const loop::Literal&>(e));
  if (e.kind == ExprKind::kVar) {
    auto it = f_.env.vars.find(static_cast<const loop::Var*>(&e));
    TENON_ASSERT(it != f_.env.vars.end(), "kernel '", f_.kernel.name, "' uses variable '",
                 static_cast<const loop::Var&>(e).name, "' outside its scope");
    return it->second.value;
  }
  for (auto scope = memo_.rbegin(); scope != memo_.rend(); ++scope) {
    auto it = scope->values.find(&e);
    if (it != scope->values.end()) return it->second;
  }
  const bool guarded = f_.lanes.mask != nullptr && facts_.can_fail(e) && !facts_.varies(e);
  Value result = guarded ? for_some_lane(e) : compute(e);
  memo_.back().values[&e] = result;
  return result;
}

Value ExpressionWriter::compute(const loop::Expr& e) {
  f_.count_cost(e);
  switch (e.kind) {
    case ExprKind::kDimValue:
      return {f_.dim(static_cast<const loop::DimValue&>(e).dim)};
    case ExprKind::kLoad: {
      const auto& l = static_cast<const loop::Load&>(e);
      return memory_.load(*l.buffer, address(*l.buffer, l.indices));
    }
    case ExprKind::kUnary: {
      const auto& u = static_cast<const loop::Unary&>(e);
      return operators_.unary(u, value(*u.a));
    }
    case ExprKind::kBinary: {
      const auto& binary = static_cast<const loop::Binary&>(e);
      if (auto sum = byte_dot_sum(binary)) return *sum;
      if (auto word = word_of_bytes(e)) return *word;
      Value a = value(*binary.a), b = value(*binary.b);
      return operators_.binary(binary, a, b);
    }
    case ExprKind::kSelect:
      return select(static_cast<const loop::Select&>(e));
    case ExprKind::kCast: {
      const auto& c = static_cast<const loop::Cast&>(e);
      if (const auto q = quantised(e)) return quantised_value(*q, quantise);
      if (const auto q = dequantised(e)) return quantised_value(*q, quantise_and_back);
      Value a = value(*c.a);
      if (c.keeps_bits) return {operators_.reinterpret(a.v, c.a->dtype, c.dtype), a.lanes};
      return {operators_.convert(a.v, c.a->dtype, c.dtype), a.lanes};
    }
    case ExprKind::kCheckedIndex:
      return checked_index(static_cast<const loop::CheckedIndex&>(e));
    case ExprKind::kVar:
    case ExprKind::kLiteral:
      break;
  }
  throw Error(ErrorKind::Internal,
              cat("kernel '", f_.kernel.name, "' holds an unknown expression"));
}

// A number plus a dot product of bytes, which one instruction computes where the CPU has it.
std::optional<Value> ExpressionWriter::byte_dot_sum(const loop::Binary& e) {
  if (e.op != loop::BinaryOp::kAdd || e.b->kind != ExprKind::kBinary) return std::nullopt;
  const auto& dot = static_cast<const loop::Binary&>(*e.b);
  if (dot.op != loop::BinaryOp::kByteDot) return std::nullopt;
  f_.count_cost(dot);
  return operators_.byte_dot_sum(value(*e.a), value(*dot.a), value(*dot.b));
}

Value ExpressionWriter::quantised_value(const Quantised& q, decltype(quantise)* write) {
  Value v = value(*q.value), zero = value(*q.zero);
  if (v.lanes != zero.lanes) v = {f_.broadcast(v), true}, zero = {f_.broadcast(zero), true};
  return {write(b_, q.dtype, v.v, zero.v), v.lanes};
}

// A word for each lane whose bytes, and the words themselves, are neighbours in memory.
std::optional<Value> ExpressionWriter::word_of_bytes(const loop::Expr& e) {
  if (!f_.in_lanes() || !f_.kernel.in_bounds || e.dtype != i32 || !facts_.varies(e)) {
    return std::nullopt;
  }
  const loop::Load* const first = loop::load_of_word(loop::ExprRef(&e));
  if (first == nullptr || first->dtype != u8) return std::nullopt;
  return memory_.load_words(*first->buffer, address(*first->buffer, first->indices));
}

// A value that is uniform across lanes and may fail, under a mask: computed if any lane is active.
Value ExpressionWriter::for_some_lane(const loop::Expr& e) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* some = f_.block("some.lane");
  llvm::BasicBlock* after = f_.block("after");
  b_.CreateCondBr(b_.CreateOrReduce(f_.lanes.mask), some, after);
  b_.SetInsertPoint(some);
  llvm::Value* outer = std::exchange(f_.lanes.mask, nullptr);
  llvm::Value* v = evaluate(e).v;
  f_.lanes.mask = outer;
  some = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* result = b_.CreatePHI(v->getType(), 2);
  result->addIncoming(llvm::Constant::getNullValue(v->getType()), before);
  result->addIncoming(v, some);
  return {result};
}

// ---- indices

llvm::Value* ExpressionWriter::first_lane(const loop::Expr& e) {
  if (!facts_.varies(e)) return value(e).v;
  if (e.kind == ExprKind::kVar) return f_.env.vars.at(static_cast<const loop::Var*>(&e)).first_lane;
  for (auto scope = memo_.rbegin(); scope != memo_.rend(); ++scope) {
    auto it = scope->first_lanes.find(&e);
    if (it != scope->first_lanes.end()) return it->second;
  }
  const auto& binary = static_cast<const loop::Binary&>(e);
  llvm::Value* a = first_lane(*binary.a);
  llvm::Value* b = first_lane(*binary.b);
  llvm::Value* result = operators_.integer_binary(binary, a, b);
  memo_.back().first_lanes[&e] = result;
  return result;
}

MemoryWriter::Address ExpressionWriter::address(const loop::Buffer& buffer,
                                                const Array<loop::ExprRef>& indices) {
  const bool flat = indices.size() == 1 && buffer.shape.size() != 1;
  std::vector<const LaneOffsets*> lanes;
  for (const loop::ExprRef& index : indices) lanes.push_back(facts_.lane_offsets(*index));
  return memory_.address(buffer, lanes, [&](size_t k, bool per_lane) {
    if (f_.kernel.in_bounds)
      return per_lane ? f_.broadcast(value(*indices[k])) : first_lane(*indices[k]);
    // Use the value that was checked: evaluated again, it could differ.
    Value v = inside(*indices[k], buffer, flat ? -1 : static_cast<int32_t>(k));
    if (per_lane) return f_.broadcast(v);
    return v.lanes ? b_.CreateExtractElement(v.v, uint64_t{0}) : v.v;
  });
}

// An index that must lie within an axis or, for axis -1, within all elements.
Value ExpressionWriter::inside(const loop::Expr& index, const loop::Buffer& buffer, int32_t axis) {
  llvm::Value* extent = memory_.extent(buffer, axis);
  Value v = value(index);
  memory_.require_inside(v, extent, buffer, axis);
  return v;
}

Value ExpressionWriter::checked_index(const loop::CheckedIndex& e) {
  Value a = value(*e.index);
  const bool is_signed = e.index->dtype.is_signed_int();
  Num index = {&b_, operators_.convert(a.v, e.index->dtype, i64)};
  // A hostile caller's sizes may make the extent negative. No index is valid then, but the unsigned
  // comparison below would accept any.
  llvm::Value* extent = f_.dim(e.extent);
  if (!proves_nonnegative(e.extent))
    extent = f_.entry.CreateBinaryIntrinsic(llvm::Intrinsic::smax, extent, f_.entry.getInt64(0));
  llvm::Value* limit = a.lanes ? f_.all_lanes(extent) : extent;
  llvm::Value* adjusted = index.v;
  if (is_signed && !facts_.nonnegative(*e.index)) {
    llvm::Value* negative = b_.CreateICmpSLT(index.v, index.i(0).v);
    adjusted = b_.CreateSelect(negative, b_.CreateAdd(index.v, limit), index.v);
  }
  f_.stop_if(b_.CreateICmpUGE(adjusted, limit), vm::KernelError::IndexOutOfRange, index.v, extent);
  return {adjusted, a.lanes};
}

// ---- choices

Value ExpressionWriter::select(const loop::Select& e) {
  Value condition = value(*e.condition);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition.v))
    return value(known->isOne() ? *e.if_true : *e.if_false);
  if (auto* known = llvm::dyn_cast<llvm::Constant>(condition.v); known && condition.lanes) {
    if (known->isAllOnesValue()) return value(*e.if_true);
    if (known->isNullValue()) return value(*e.if_false);
  }
  if (condition.lanes) return select_by_lane(e, condition.v);
  if (facts_.can_fail(*e.if_true) || facts_.can_fail(*e.if_false))
    return select_by_branch(e, condition.v);
  Value yes = value(*e.if_true), no = value(*e.if_false);
  const bool lanes = yes.lanes || no.lanes;
  return {b_.CreateSelect(condition.v, lanes ? f_.broadcast(yes) : yes.v,
                          lanes ? f_.broadcast(no) : no.v),
          lanes};
}

// Evaluates a side that can fail only in the lanes that choose it.
Value ExpressionWriter::select_by_lane(const loop::Select& e, llvm::Value* condition) {
  auto side = [&](const loop::Expr& s, llvm::Value* mask) {
    if (!facts_.can_fail(s)) return f_.broadcast(value(s));
    llvm::Value* outer = std::exchange(f_.lanes.mask, f_.mask_and(mask));
    Scope scope(*this);
    llvm::Value* v = f_.broadcast(value(s));
    f_.lanes.mask = outer;
    return v;
  };
  llvm::Value* yes = side(*e.if_true, condition);
  llvm::Value* no = side(*e.if_false, b_.CreateNot(condition));
  return {b_.CreateSelect(condition, yes, no), true};
}

Value ExpressionWriter::select_by_branch(const loop::Select& e, llvm::Value* condition) {
  compute_shared(e);
  llvm::BasicBlock* blocks[2] = {f_.block("yes"), f_.block("no")};
  llvm::BasicBlock* after = f_.block("chosen");
  b_.CreateCondBr(condition, blocks[0], blocks[1]);
  const bool lanes = facts_.varies(*e.if_true) || facts_.varies(*e.if_false);
  llvm::Value* values[2];
  for (int i = 0; i < 2; ++i) {
    b_.SetInsertPoint(blocks[i]);
    Value v = evaluate(i == 0 ? *e.if_true : *e.if_false);
    values[i] = lanes ? f_.broadcast(v) : v.v;
    blocks[i] = b_.GetInsertBlock();
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
  llvm::PHINode* result = b_.CreatePHI(values[0]->getType(), 2);
  result->addIncoming(values[0], blocks[0]);
  result->addIncoming(values[1], blocks[1]);
  return {result, lanes};
}

// Computes what both sides always compute once, before the branch: otherwise a chain of choices
// over a shared value would double in size with each link.
void ExpressionWriter::compute_shared(const loop::Select& e) {
  std::unordered_set<const loop::Expr*> yes_nodes, no_nodes;
  always_computed(*e.if_true, &yes_nodes);
  always_computed(*e.if_false, &no_nodes);
  std::vector<const loop::Expr*> pending = {e.if_true.get()};
  std::unordered_set<const loop::Expr*> seen;
  while (!pending.empty()) {
    const loop::Expr* node = pending.back();
    pending.pop_back();
    if (yes_nodes.count(node) == 0 || !seen.insert(node).second) continue;
    if (no_nodes.count(node) != 0) {
      value(*node);
    } else if (node->kind == ExprKind::kSelect) {
      pending.push_back(static_cast<const loop::Select*>(node)->condition.get());
    } else {
      loop::for_operands(*node, [&](const loop::ExprRef& a) { pending.push_back(a.get()); });
    }
  }
}

}  // namespace tenon::codegen
