// Scratch memory of a body, and its parallel loops: each becomes a function of its own, a task,
// that the runtime calls with ranges of iterations and a context on the caller's stack:
//
//   context   8-byte slots: runtime, buffers in scope, symbols, variables in scope
#include <algorithm>

#include "codegen/llvm/lower.h"
#include "loop/cost.h"
#include "support/error.h"

namespace tenon::codegen {

using loop::ForKind;
using loop::StmtKind;

namespace {

constexpr int64_t kStackPerBuffer = 16 << 10, kStackPerFunction = 48 << 10;
constexpr int64_t kScratchAlignment = 64;
// Scalar operations, or kLanes times as many in a vector loop, that make it worth to share a loop:
// a few microseconds. Below, one thread is done before another has begun. What one thread takes at
// once may be far less, so that shares come out even.
constexpr int64_t kWorthThreads = 1 << 15;
constexpr int64_t kWorkPerChunk = 1 << 12;
constexpr uint64_t kLanes = 8;

}  // namespace

// Says of each access which buffers it can't touch: all but its own and those that share its
// memory in place.
void BodyWriter::separate_buffers() {
  std::vector<const loop::Buffer*> buffers;
  for (const auto* list : {&kernel_.inputs, &kernel_.outputs})
    for (const auto& buffer : *list) buffers.push_back(buffer.get());
  std::vector<const loop::Stmt*> pending = {kernel_.body.get()};
  while (!pending.empty()) {
    const loop::Stmt* s = pending.back();
    pending.pop_back();
    if (s->kind == StmtKind::kAlloc)
      buffers.push_back(static_cast<const loop::Alloc*>(s)->buffer.get());
    for_children(*s, [&](const loop::Stmt& child) { pending.push_back(&child); });
  }
  if (buffers.size() > 64) return;  // the lists grow with the square
  llvm::MDBuilder metadata(m_.context);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::MDNode*> scopes;
  for (const auto* buffer : buffers) {
    scopes.push_back(metadata.createAnonymousAliasScope(domain));
    scopes_[buffer] = llvm::MDNode::get(m_.context, scopes.back());
  }
  auto shared = [&](const loop::Buffer* a, const loop::Buffer* b) {
    for (const auto& pair : kernel_.in_place) {
      const auto* out = kernel_.outputs[static_cast<size_t>(pair[0])].get();
      const auto* in = kernel_.inputs[static_cast<size_t>(pair[1])].get();
      if ((a == out && b == in) || (a == in && b == out)) return true;
    }
    return false;
  };
  for (const auto* buffer : buffers) {
    std::vector<llvm::Metadata*> others;
    for (size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i] != buffer && !shared(buffers[i], buffer)) others.push_back(scopes[i]);
    no_alias_[buffer] = llvm::MDNode::get(m_.context, others);
  }
}

// Scratch of constant, small size lies on the stack, where unrolled accesses turn into registers;
// the rest is one piece of the runtime's workspace, asked for before the first statement.
void BodyWriter::reserve_scratch(const loop::Stmt& body) {
  struct Request {
    const loop::Buffer* buffer;
    unsigned lanes;
  };
  std::vector<Request> large;
  int64_t on_stack = 0;
  std::vector<std::pair<const loop::Stmt*, unsigned>> pending = {{&body, 1}};
  while (!pending.empty()) {
    auto [s, lanes] = pending.back();
    pending.pop_back();
    if (s->kind == StmtKind::kFor) {
      const auto& loop = static_cast<const loop::For&>(*s);
      if (loop.loop == ForKind::kParallel && !is_task_ && lanes == 1) continue;  // its tasks' own
      if (loop.loop == ForKind::kVector && lanes == 1 &&
          loop.extent->kind == loop::ExprKind::kLiteral)
        lanes = static_cast<unsigned>(
            std::clamp<int64_t>(static_cast<const loop::Literal&>(*loop.extent).bits, 1, 64));
    }
    if (s->kind == StmtKind::kAlloc) {
      const loop::Buffer* buffer = static_cast<const loop::Alloc*>(s)->buffer.get();
      int64_t bytes = buffer->dtype.bytes() * lanes;
      for (const Dim& d : buffer->shape) {
        const auto extent = d.as_const();
        if (!extent || *extent < 0 || bytes < 0 ||
            (*extent > 0 && bytes > kStackPerBuffer / *extent)) {
          bytes = -1;
        } else {
          bytes *= *extent;
        }
      }
      if (bytes >= 0 && bytes <= kStackPerBuffer && on_stack + bytes <= kStackPerFunction) {
        on_stack += bytes;
        const int64_t aligned = (bytes + kScratchAlignment - 1) & -kScratchAlignment;
        scratch_[buffer] = {stack_slot(m_.i8, static_cast<uint64_t>(std::max<int64_t>(aligned, 64)),
                                       static_cast<uint64_t>(kScratchAlignment)),
                            lanes};
      } else {
        large.push_back({buffer, lanes});
      }
    }
    // The order of first appearance, whatever the shape of the tree.
    std::vector<std::pair<const loop::Stmt*, unsigned>> children;
    const unsigned child_lanes = lanes;
    for_children(*s, [&](const loop::Stmt& c) { children.emplace_back(&c, child_lanes); });
    pending.insert(pending.end(), children.rbegin(), children.rend());
  }
  if (large.empty()) return;
  reserve_ = llvm::BasicBlock::Create(m_.context, "reserve", function_, start_);
  Builder r(reserve_);
  llvm::Value* total = r.getInt64(0);
  llvm::Value* overflow = r.getFalse();
  auto with_overflow = [&](llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* b) {
    llvm::Value* pair = r.CreateBinaryIntrinsic(id, a, b);
    overflow = r.CreateOr(overflow, r.CreateExtractValue(pair, 1));
    return r.CreateExtractValue(pair, 0);
  };
  std::vector<llvm::Value*> offsets;
  for (const Request& request : large) {
    offsets.push_back(total);
    llvm::Value* bytes =
        r.getInt64(static_cast<uint64_t>(request.buffer->dtype.bytes() * request.lanes));
    for (const Dim& d : request.buffer->shape) {
      llvm::Value* extent = dim(d);
      overflow = r.CreateOr(overflow, r.CreateICmpSLT(extent, r.getInt64(0)));
      bytes = with_overflow(llvm::Intrinsic::umul_with_overflow, bytes, extent);
    }
    bytes = with_overflow(llvm::Intrinsic::uadd_with_overflow, bytes,
                          r.getInt64(kScratchAlignment - 1));
    bytes = r.CreateAnd(bytes, r.getInt64(static_cast<uint64_t>(-kScratchAlignment)));
    total = with_overflow(llvm::Intrinsic::uadd_with_overflow, total, bytes);
  }
  auto* too_large = llvm::BasicBlock::Create(m_.context, "too.large", function_, start_);
  auto* ask = llvm::BasicBlock::Create(m_.context, "ask", function_, start_);
  auto* refused = llvm::BasicBlock::Create(m_.context, "refused", function_, start_);
  r.CreateCondBr(overflow, too_large, ask, m_.unlikely());
  r.SetInsertPoint(too_large);
  r.CreateRet(m_.raise(r, runtime_, kernel_, vm::KernelError::Overflow, -1, -1, r.getInt64(0),
                       r.getInt64(0)));
  r.SetInsertPoint(ask);
  workspace_ = r.CreateCall(m_.allocate_type,
                            m_.runtime_function(r, runtime_, offsetof(vm::KernelRuntime, allocate)),
                            {runtime_, m_.text(kernel_.name), total});
  for (size_t i = 0; i < large.size(); ++i)
    scratch_[large[i].buffer] = {r.CreateGEP(m_.i8, workspace_, offsets[i]), large[i].lanes};
  r.CreateCondBr(r.CreateIsNull(workspace_), refused, start_, m_.unlikely());
  r.SetInsertPoint(refused);
  r.CreateRet(r.getInt32(static_cast<uint32_t>(-1)));
}

llvm::Value* BodyWriter::size_or_guess(const loop::Expr& e) {
  using loop::BinaryOp;
  using loop::ExprKind;
  switch (e.kind) {
    case ExprKind::kLiteral:
      return b_.getInt64(static_cast<uint64_t>(static_cast<const loop::Literal&>(e).bits));
    case ExprKind::kDimValue:
      return dim(static_cast<const loop::DimValue&>(e).dim);
    case ExprKind::kBinary: {
      const auto& binary = static_cast<const loop::Binary&>(e);
      llvm::Value* a = size_or_guess(*binary.a);
      llvm::Value* b = size_or_guess(*binary.b);
      auto* divisor = llvm::dyn_cast<llvm::ConstantInt>(b);
      if (binary.op == BinaryOp::kAdd) return b_.CreateAdd(a, b);
      if (binary.op == BinaryOp::kSub) return b_.CreateSub(a, b);
      if (binary.op == BinaryOp::kMul) return b_.CreateMul(a, b);
      if (binary.op == BinaryOp::kFloorDiv && divisor && divisor->getSExtValue() > 0)
        return b_.CreateSDiv(a, b);
      if (binary.op == BinaryOp::kMin) return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
      break;
    }
    case ExprKind::kVar: {
      auto guess = guesses_.find(static_cast<const loop::Var*>(&e));
      if (guess != guesses_.end()) return guess->second;
      auto known = vars_.find(static_cast<const loop::Var*>(&e));  // bound outside the loop
      if (known != vars_.end() && known->second.v->getType()->isIntegerTy(64)) {
        return known->second.v;
      }
      break;
    }
    default:
      break;
  }
  return b_.getInt64(4);  // known only when the loop runs
}

llvm::Value* BodyWriter::work_of(const loop::Stmt& s) {
  switch (s.kind) {
    case StmtKind::kStore:
      return b_.getInt64(static_cast<uint64_t>(std::max<int64_t>(
          1, loop::cost(static_cast<const loop::Store&>(s).value) / loop::kSimpleCost)));
    case StmtKind::kFor: {
      const auto& loop = static_cast<const loop::For&>(s);
      llvm::Value* extent = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax,
                                                     size_or_guess(*loop.extent), b_.getInt64(0));
      guesses_[loop.var.get()] = size_or_guess(*loop.begin);  // the first turn is like the others
      llvm::Value* product = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smul_with_overflow, extent,
                                                      work_of(*loop.body));
      llvm::Value* most = b_.getInt64(kWorthThreads);
      llvm::Value* work = b_.CreateExtractValue(product, 0);
      if (loop.loop == loop::ForKind::kVector) {  // rounded up: narrow vectors are work, too
        work = b_.CreateUDiv(b_.CreateAdd(work, b_.getInt64(kLanes - 1)), b_.getInt64(kLanes));
      }
      return b_.CreateSelect(b_.CreateExtractValue(product, 1), most,
                             b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, most, work));
    }
    case StmtKind::kLet: {
      const auto& let = static_cast<const loop::Let&>(s);
      guesses_[let.var.get()] = size_or_guess(*let.value);
      return work_of(*let.body);
    }
    default: {
      llvm::Value* total = b_.getInt64(1);
      for_children(s, [&](const loop::Stmt& c) { total = b_.CreateAdd(total, work_of(c)); });
      return total;
    }
  }
}

void BodyWriter::parallel_loop(const loop::For& loop) {
  llvm::Value* begin = evaluate(loop.begin).v;
  llvm::Value* extent = evaluate(loop.extent).v;

  // What the task may use. Constants need no slot.
  struct Slot {
    llvm::Value* here;
    llvm::Value** there;
  };
  llvm::Function* function =
      m_.function(m_.i32, {m_.pointer, m_.i64, m_.i64}, cat(symbol_of(kernel_), ".task"));
  BodyWriter task(m_, kernel_, function);
  task.is_task_ = true;
  task.is_scheduled_ = is_scheduled_;
  task.places_ = places_;
  task.symbols_ = symbols_;
  task.vars_ = vars_;
  task.scopes_ = scopes_;
  task.no_alias_ = no_alias_;
  task.let_values_ = let_values_;
  task.nonnegative_vars_ = nonnegative_vars_;
  llvm::Value* task_begin = begin;

  std::vector<Slot> slots = {{runtime_, &task.runtime_}, {begin, &task_begin}};
  // In an order that doesn't depend on addresses.
  auto add_buffer = [&](const loop::Buffer* buffer) {
    auto it = task.places_.find(buffer);
    if (it != task.places_.end()) slots.push_back({it->second.data, &it->second.data});
  };
  for (const auto* list : {&kernel_.inputs, &kernel_.outputs})
    for (const auto& buffer : *list) add_buffer(buffer.get());
  for (const loop::Stmt* s : enclosing_)
    if (s->kind == StmtKind::kAlloc) add_buffer(static_cast<const loop::Alloc*>(s)->buffer.get());
  for (auto& [name, v] : task.symbols_) slots.push_back({v, &v});
  task.vars_.clear();
  for (const loop::Stmt* s : enclosing_) {
    const loop::Var* var = s->kind == StmtKind::kFor   ? static_cast<const loop::For*>(s)->var.get()
                           : s->kind == StmtKind::kLet ? static_cast<const loop::Let*>(s)->var.get()
                                                       : nullptr;
    if (var == nullptr || vars_.count(var) == 0) continue;
    Value& v = task.vars_[var] = vars_.at(var);
    slots.push_back({v.v, &v.v});
  }

  llvm::AllocaInst* context = stack_slot(m_.i64, slots.size(), 8);
  llvm::Argument* context_there = function->getArg(0);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (llvm::isa<llvm::Constant>(slots[i].here)) {
      *slots[i].there = slots[i].here;
      continue;
    }
    const auto offset = static_cast<int64_t>(8 * i);
    b_.CreateStore(slots[i].here, b_.CreateConstGEP1_64(m_.i8, context, offset));
    *slots[i].there = m_.field(task.entry_, slots[i].here->getType(), context_there, offset);
  }
  for (auto& entry : task.places_) task.scratch_.emplace(entry.first, entry.second);

  task.reserve_scratch(*loop.body);
  llvm::Value* first =
      task.b_.CreateAdd(task_begin, function->getArg(1), "", false, kernel_.in_bounds);
  llvm::Value* number =
      task.b_.CreateSub(function->getArg(2), function->getArg(1), "", false, true);
  task.count(first, number, loop);
  task.finish();

  llvm::BasicBlock* some = block("parallel");
  llvm::BasicBlock* after = block("end.parallel");
  b_.CreateCondBr(b_.CreateICmpSGT(extent, b_.getInt64(0)), some, after);
  b_.SetInsertPoint(some);
  guesses_ = {{loop.var.get(), begin}};
  llvm::Value* work =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, work_of(*loop.body), b_.getInt64(1));
  llvm::Value* grain = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.getInt64(1),
                                                b_.CreateUDiv(b_.getInt64(kWorkPerChunk), work));
  llvm::BasicBlock* alone = block("alone");
  llvm::BasicBlock* together = block("together");
  llvm::BasicBlock* done = block("done");
  llvm::Value* unshared = b_.CreateUDiv(b_.getInt64(kWorthThreads), work);
  b_.CreateCondBr(b_.CreateICmpSLE(extent, unshared), alone, together);
  b_.SetInsertPoint(alone);
  llvm::Value* code_alone = b_.CreateCall(function, {context, b_.getInt64(0), extent});
  b_.CreateBr(done);
  b_.SetInsertPoint(together);
  llvm::Value* code_together =
      b_.CreateCall(m_.parallel_for_type,
                    m_.runtime_function(b_, runtime_, offsetof(vm::KernelRuntime, parallel_for)),
                    {runtime_, function, context, extent, grain});
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  llvm::PHINode* code = b_.CreatePHI(m_.i32, 2);
  code->addIncoming(code_alone, alone);
  code->addIncoming(code_together, together);
  llvm::BasicBlock* failed = block("failed");
  b_.CreateCondBr(b_.CreateICmpNE(code, b_.getInt32(0)), failed, after, m_.unlikely());
  b_.SetInsertPoint(failed);
  return_code(code);
  b_.SetInsertPoint(after);
}

}  // namespace tenon::codegen
