#include "codegen/llvm/statement.h"

#include <algorithm>

#include "codegen/llvm/scratch.h"
#include "codegen/llvm/work.h"
#include "support/error.h"

namespace tenon::codegen {

using loop::ForKind;
using loop::StmtKind;

namespace {

constexpr size_t kMaxNesting = 500;   // of statements
constexpr int64_t kMaxCopies = 4096;  // of a statement, made by enclosing unrolled loops

// Keeps LLVM from vectorising or unrolling the loop that `back` closes.
void leave_loop_alone(llvm::BranchInst* back) {
  llvm::LLVMContext& context = back->getContext();
  auto* disable_vectors = llvm::MDNode::get(
      context, {llvm::MDString::get(context, "llvm.loop.vectorize.enable"),
                llvm::ConstantAsMetadata::get(llvm::ConstantInt::getFalse(context))});
  auto* disable_unrolling =
      llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.unroll.disable")});
  llvm::Metadata* parts[] = {nullptr, disable_vectors, disable_unrolling};
  llvm::MDNode* id = llvm::MDNode::getDistinct(context, parts);
  id->replaceOperandWith(0, id);
  back->setMetadata(llvm::LLVMContext::MD_loop, id);
}

}  // namespace

StatementWriter::StatementWriter(FunctionWriter& f, Facts& facts, const AliasScopes& alias,
                                 const loop::StmtRef& body)
    : f_(f),
      b_(f.b),
      facts_(facts),
      alias_(alias),
      memory_(f, facts, alias),
      expressions_(f, facts, memory_),
      work_(f),
      emptiness_(f.kernel.in_bounds),
      scratch_(reserve_scratch(f, facts, body)) {}

void StatementWriter::statement(const loop::Stmt& s) {
  if (enclosing_.size() > kMaxNesting)
    throw Error(ErrorKind::Unsupported,
                cat("kernel '", f_.kernel.name, "' nests statements too deeply"))
        .expected(cat("at most ", kMaxNesting, " levels"));
  enclosing_.push_back(&s);
  write(s);
  enclosing_.pop_back();
}

void StatementWriter::write(const loop::Stmt& s) {
  switch (s.kind) {
    case StmtKind::kSeq:
      for (const loop::StmtRef& child : static_cast<const loop::Seq&>(s).body) statement(*child);
      return;
    case StmtKind::kFor:
      return for_loop(static_cast<const loop::For&>(s));
    case StmtKind::kStore:
      return store(static_cast<const loop::Store&>(s));
    case StmtKind::kPrefetch:
      return prefetch(static_cast<const loop::Prefetch&>(s));
    case StmtKind::kIf:
      return if_statement(static_cast<const loop::If&>(s));
    case StmtKind::kLet:
      return let(static_cast<const loop::Let&>(s));
    case StmtKind::kAlloc:
      return alloc(static_cast<const loop::Alloc&>(s));
  }
}

void StatementWriter::let(const loop::Let& s) {
  Variable variable = {expressions_.evaluate(*s.value)};
  facts_.define(s);
  if (f_.kernel.in_bounds && facts_.varies(*s.value) && facts_.lane_offsets(*s.value)) {
    ExpressionWriter::Scope scope(expressions_);
    variable.first_lane = expressions_.first_lane(*s.value);
  }
  f_.env.vars[s.var.get()] = variable;
  statement(*s.body);
  f_.env.vars.erase(s.var.get());
}

void StatementWriter::alloc(const loop::Alloc& s) {
  f_.env.places[s.buffer.get()] = scratch_.at(s.buffer.get());
  statement(*s.body);
  f_.env.places.erase(s.buffer.get());
}

void StatementWriter::store(const loop::Store& s) {
  ExpressionWriter::Scope scope(expressions_);
  Value v = expressions_.value(*s.value);
  TENON_ASSERT(s.value->dtype == s.buffer->dtype, "kernel '", f_.kernel.name, "' stores ",
               s.value->dtype, " into buffer '", s.buffer->name, "' of ", s.buffer->dtype);
  memory_.store(*s.buffer, expressions_.address(*s.buffer, s.indices), v);
}

void StatementWriter::prefetch(const loop::Prefetch& s) {
  if (!f_.kernel.in_bounds) return;  // an index would be checked
  ExpressionWriter::Scope scope(expressions_);
  memory_.prefetch(*s.buffer, expressions_.address(*s.buffer, s.indices));
}

void StatementWriter::if_statement(const loop::If& s) {
  Value condition = expressions_.evaluate(*s.condition);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition.v)) {
    if (known->isOne()) statement(*s.then_body);
    if (known->isZero() && s.else_body) statement(*s.else_body);
    return;
  }
  if (condition.lanes) {
    llvm::Value* outer = f_.lanes.mask;
    f_.lanes.mask = f_.mask_and(condition.v);
    statement(*s.then_body);
    f_.lanes.mask = outer;
    if (s.else_body) {
      f_.lanes.mask = f_.mask_and(b_.CreateNot(condition.v));
      statement(*s.else_body);
      f_.lanes.mask = outer;
    }
    return;
  }
  llvm::BasicBlock* yes = f_.block("then");
  llvm::BasicBlock* no = s.else_body ? f_.block("else") : nullptr;
  llvm::BasicBlock* after = f_.block("end.if");
  b_.CreateCondBr(condition.v, yes, no ? no : after);
  b_.SetInsertPoint(yes);
  statement(*s.then_body);
  b_.CreateBr(after);
  if (no) {
    b_.SetInsertPoint(no);
    statement(*s.else_body);
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

// ---- loops

// loop::check has verified the nesting of loops: a parallel loop is in serial ones only, and
// a vector loop contains only unrolled ones.
void StatementWriter::for_loop(const loop::For& loop) {
  facts_.define(loop);
  if (loop.loop == ForKind::kParallel) return parallel_loop(loop);
  if (!has_team_ && !parallel_loops_in(loop).empty()) return team_loop(loop);
  if (uses_matrices(loop)) return with_matrices(loop);
  if (loop.loop == ForKind::kMatrix && matrix_loop(loop)) return;
  if (auto width = vector_width(loop)) return vector_loop(loop, *width);
  if (loop.loop == ForKind::kUnrolled) {
    const int64_t extent = std::max<int64_t>(loop::as_int(loop.extent).value(), 0);
    if (extent <= kMaxCopies / copies_) return unrolled_loop(loop, extent);
  }
  llvm::Value* begin = expressions_.evaluate(*loop.begin).v;
  llvm::Value* extent = turns_of(loop);
  count(begin, extent, loop);
}

llvm::Value* StatementWriter::turns_of(const loop::For& loop) {
  constexpr int64_t kShort = 1 << 16;  // so many turns for nothing take no time
  llvm::Value* extent = expressions_.evaluate(*loop.extent).v;
  const auto known = loop::as_int(loop.extent);
  if (known && *known <= kShort) return extent;
  const loop::ExprRef& acts = emptiness_.may_act(*loop.body);
  if (loop::is_always_true(acts)) return extent;
  return b_.CreateSelect(expressions_.evaluate(*acts).v, extent, b_.getInt64(0));
}

void StatementWriter::may_go_back(const loop::For& loop, llvm::Value* first, llvm::Value* count,
                                  llvm::Value* direction) {
  llvm::Value* last = b_.CreateSub(b_.CreateAdd(first, count), b_.getInt64(1));
  alternating_ = {&loop, b_.CreateAdd(first, last), b_.CreateICmpNE(direction, b_.getInt64(0))};
}

void StatementWriter::body(const loop::For& loop, Variable variable) {
  if (&loop == alternating_.loop) {
    llvm::Value*& i = variable.value.v;
    i = b_.CreateSelect(alternating_.is_back, b_.CreateSub(alternating_.both_ends, i), i);
  }
  f_.env.vars[loop.var.get()] = variable;
  statement(*loop.body);
  f_.env.vars.erase(loop.var.get());
}

//   if (extent > 0) do { body } while (++i < begin + extent)
//
// In a kernel that isn't in bounds, begin + extent may overflow; counting `extent` iterations
// can't.
void StatementWriter::turns(llvm::Value* begin, llvm::Value* extent, const loop::For& loop,
                            int64_t counted) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(extent); known && known->isOne()) {
    return body(loop, {{begin}});
  }
  llvm::BasicBlock* turn = f_.block("loop");
  llvm::BasicBlock* after = f_.block("end.loop");
  const bool fits = f_.kernel.in_bounds;
  llvm::Value* end = fits ? b_.CreateAdd(begin, extent, "", false, true) : extent;
  b_.CreateCondBr(b_.CreateICmpSGT(extent, b_.getInt64(0)), turn, after);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.SetInsertPoint(turn);
  llvm::PHINode* i = b_.CreatePHI(f_.m.i64, 2, std::string(loop.var->name));
  i->addIncoming(fits ? begin : b_.getInt64(0), before);
  if (counted > 0) work_.spend(b_.getInt64(static_cast<uint64_t>(counted)));
  body(loop, {{fits ? i : b_.CreateAdd(begin, i)}});
  llvm::Value* next = b_.CreateAdd(i, b_.getInt64(1), "", false, true);
  i->addIncoming(next, b_.GetInsertBlock());
  llvm::BranchInst* back = b_.CreateCondBr(b_.CreateICmpSLT(next, end), turn, after);
  if (facts_.is_scheduled()) leave_loop_alone(back);
  b_.SetInsertPoint(after);
}

//   do { part = min(left, most); spend; turns of part; begin += part } while ((left -= part) > 0)
//
// Every part except the last does about as much work as is allowed between two polls.
void StatementWriter::turns_in_parts(llvm::Value* begin, llvm::Value* extent, const loop::For& loop,
                                     int64_t work) {
  const int64_t most = WorkCount::kBetweenPolls / work + 1;
  llvm::BasicBlock* part_block = f_.block("part");
  llvm::BasicBlock* after = f_.block("end.parts");
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.CreateCondBr(b_.CreateICmpSGT(extent, b_.getInt64(0)), part_block, after);
  b_.SetInsertPoint(part_block);
  llvm::PHINode* first = b_.CreatePHI(f_.m.i64, 2);
  llvm::PHINode* left = b_.CreatePHI(f_.m.i64, 2);
  first->addIncoming(begin, before);
  left->addIncoming(extent, before);
  llvm::Value* part = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left,
                                               b_.getInt64(static_cast<uint64_t>(most)));
  work_.spend(b_.CreateMul(part, b_.getInt64(static_cast<uint64_t>(work))));
  turns(first, part, loop);
  llvm::Value* next = b_.CreateAdd(first, part, "", false, f_.kernel.in_bounds);
  llvm::Value* rest = b_.CreateSub(left, part, "", false, true);
  first->addIncoming(next, b_.GetInsertBlock());
  left->addIncoming(rest, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSGT(rest, b_.getInt64(0)), part_block, after);
  b_.SetInsertPoint(after);
}

void StatementWriter::count(llvm::Value* begin, llvm::Value* extent, const loop::For& loop) {
  if (!work_.work_of(loop).counts_itself) return turns(begin, extent, loop);
  const WorkCount::Work inner = work_.work_of(*loop.body);
  const int64_t work = std::max<int64_t>(inner.uncounted, 1);
  if (inner.counts_itself) return turns(begin, extent, loop, work);
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(extent);
  if (known != nullptr && known->getSExtValue() <= WorkCount::kBetweenPolls / work) {
    // Work is counted before it is done, when registers that the loop may fill are still free.
    const int64_t all = std::max<int64_t>(known->getSExtValue(), 0) * work;
    work_.spend(b_.getInt64(static_cast<uint64_t>(all)));
    return turns(begin, extent, loop);
  }
  return work >= WorkCount::kWorthCounting ? turns(begin, extent, loop, work)
                                           : turns_in_parts(begin, extent, loop, work);
}

void StatementWriter::unrolled_loop(const loop::For& loop, int64_t extent) {
  llvm::Value* begin = expressions_.evaluate(*loop.begin).v;
  const int64_t outer = copies_;
  copies_ = std::max<int64_t>(1, copies_ * extent);
  for (int64_t k = 0; k < extent; ++k)
    body(loop, {{b_.CreateAdd(begin, b_.getInt64(static_cast<uint64_t>(k)), "", false,
                              f_.kernel.in_bounds)}});
  copies_ = outer;
}

void StatementWriter::vector_loop(const loop::For& loop, unsigned width) {
  llvm::Value* begin = expressions_.evaluate(*loop.begin).v;
  facts_.enter({loop.var.get(), width, facts_.first_lane(*loop.begin)});
  const bool possible = facts_.can_vectorise(*loop.body);
  if (possible) {
    f_.lanes.width = width;
    llvm::Value* numbers = f_.lane_numbers();
    body(loop, {{b_.CreateAdd(f_.all_lanes(begin), numbers), true}, begin});
    f_.lanes = {};
  }
  facts_.leave();
  if (!possible) count(begin, b_.getInt64(width), loop);
}

}  // namespace tenon::codegen
