// The body of a kernel: loops, stores, choices and storage.
#include "codegen/llvm/lower.h"
#include "support/error.h"

namespace tenon::codegen {

using loop::ForKind;
using loop::StmtKind;

namespace {

constexpr int64_t kMaxLanes = 64;
constexpr size_t kMaxNesting = 500;   // of statements
constexpr int64_t kMaxCopies = 4096;  // of a statement, by unrolled loops around it

std::optional<int64_t> constant_extent(const loop::For& loop) {
  const loop::Expr& e = *loop.extent;
  if (e.kind == loop::ExprKind::kLiteral) return static_cast<const loop::Literal&>(e).bits;
  if (e.kind == loop::ExprKind::kDimValue)
    return static_cast<const loop::DimValue&>(e).dim.as_const();
  return std::nullopt;
}

}  // namespace

void for_children(const loop::Stmt& s, const std::function<void(const loop::Stmt&)>& f) {
  switch (s.kind) {
    case StmtKind::kSeq:
      for (const loop::StmtRef& child : static_cast<const loop::Seq&>(s).body) f(*child);
      return;
    case StmtKind::kFor:
      return f(*static_cast<const loop::For&>(s).body);
    case StmtKind::kIf: {
      const auto& choice = static_cast<const loop::If&>(s);
      f(*choice.then_body);
      if (choice.else_body) f(*choice.else_body);
      return;
    }
    case StmtKind::kLet:
      return f(*static_cast<const loop::Let&>(s).body);
    case StmtKind::kAlloc:
      return f(*static_cast<const loop::Alloc&>(s).body);
    case StmtKind::kStore:
      return;
  }
}

BodyWriter::BodyWriter(ModuleWriter& m, const loop::Kernel& kernel, llvm::Function* function)
    : m_(m), kernel_(kernel), function_(function), entry_(m.context), b_(m.context) {
  entry_.SetInsertPoint(llvm::BasicBlock::Create(m.context, "entry", function));
  start_ = llvm::BasicBlock::Create(m.context, "start", function);
  b_.SetInsertPoint(start_);
  llvm::FastMathFlags flags;
  flags.setAllowContract(true);
  b_.setFastMathFlags(flags);
  exit_ = llvm::BasicBlock::Create(m.context, "exit", function);
  exit_code_ = llvm::PHINode::Create(m.i32, 4, "code", exit_);
}

void BodyWriter::write_body(ModuleWriter& m, const loop::Kernel& kernel, llvm::Function* function) {
  BodyWriter writer(m, kernel, function);
  llvm::Argument* argument = function->arg_begin();
  writer.runtime_ = argument++;
  for (const auto* buffers : {&kernel.inputs, &kernel.outputs})
    for (const auto& buffer : *buffers) writer.places_[buffer.get()] = {argument++};
  for (const std::string& symbol : kernel_symbols(kernel)) {
    argument->setName(symbol);
    writer.symbols_[symbol] = argument++;
  }
  std::vector<const loop::Stmt*> pending = {kernel.body.get()};
  while (!pending.empty()) {
    const loop::Stmt* s = pending.back();
    pending.pop_back();
    if (s->kind == StmtKind::kFor) {
      const ForKind kind = static_cast<const loop::For*>(s)->loop;
      if (kind == ForKind::kVector || kind == ForKind::kUnrolled) writer.is_scheduled_ = true;
    }
    for_children(*s, [&](const loop::Stmt& child) { pending.push_back(&child); });
  }
  writer.separate_buffers();
  writer.reserve_scratch(*kernel.body);
  writer.statement(*kernel.body);
  writer.finish();
}

void BodyWriter::finish() {
  entry_.CreateBr(reserve_ ? reserve_ : start_);
  return_code(b_.getInt32(0));
  Builder end(exit_);
  if (workspace_ != nullptr)
    end.CreateCall(m_.release_type,
                   m_.runtime_function(end, runtime_, offsetof(vm::KernelRuntime, release)),
                   {runtime_, workspace_});
  end.CreateRet(exit_code_);
}

llvm::BasicBlock* BodyWriter::block(const char* name) {
  return llvm::BasicBlock::Create(m_.context, name, function_, exit_);
}

void BodyWriter::return_code(llvm::Value* code) {
  exit_code_->addIncoming(code, b_.GetInsertBlock());
  b_.CreateBr(exit_);
}

// `condition` may be one per lane: then it counts where the mask is set, and `found` is that of the
// first such lane.
void BodyWriter::stop_if(llvm::Value* condition, vm::KernelError code, llvm::Value* found,
                         llvm::Value* expected, int32_t argument, int32_t axis) {
  const bool lanes = condition->getType()->isVectorTy();
  llvm::Value* failing = active(condition);
  if (auto* known = llvm::dyn_cast<llvm::Constant>(failing);
      known != nullptr && known->isNullValue())
    return;
  llvm::BasicBlock* stop = block("stop");
  llvm::BasicBlock* go_on = block("go.on");
  b_.CreateCondBr(lanes ? b_.CreateOrReduce(failing) : failing, stop, go_on, m_.unlikely());
  b_.SetInsertPoint(stop);
  if (lanes && found != nullptr) {
    llvm::Value* bits = b_.CreateBitCast(failing, b_.getIntNTy(width_));
    llvm::Value* first = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b_.getTrue());
    found = b_.CreateExtractElement(found, b_.CreateZExtOrTrunc(first, m_.i64));
  }
  llvm::Value* zero = b_.getInt64(0);
  return_code(m_.raise(b_, runtime_, kernel_, code, argument, axis, found ? found : zero,
                       expected ? expected : zero));
  b_.SetInsertPoint(go_on);
}

llvm::AllocaInst* BodyWriter::stack_slot(llvm::Type* type, uint64_t count, uint64_t alignment) {
  Builder first(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  llvm::AllocaInst* slot = first.CreateAlloca(llvm::ArrayType::get(type, count));
  slot->setAlignment(llvm::Align(alignment));
  return slot;
}

void BodyWriter::annotate(llvm::Instruction* access, const loop::Buffer& buffer) {
  auto it = scopes_.find(&buffer);
  if (it == scopes_.end()) return;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, it->second);
  access->setMetadata(llvm::LLVMContext::MD_noalias, no_alias_[&buffer]);
}

void BodyWriter::statement(const loop::Stmt& s) {
  if (enclosing_.size() > kMaxNesting)
    throw Error(ErrorKind::Unsupported,
                cat("kernel '", kernel_.name, "' nests statements too deeply"))
        .expected(cat("at most ", kMaxNesting, " levels"));
  enclosing_.push_back(&s);
  write(s);
  enclosing_.pop_back();
}

void BodyWriter::write(const loop::Stmt& s) {
  switch (s.kind) {
    case StmtKind::kSeq:
      for (const loop::StmtRef& child : static_cast<const loop::Seq&>(s).body) statement(*child);
      return;
    case StmtKind::kFor:
      return for_loop(static_cast<const loop::For&>(s));
    case StmtKind::kStore:
      return store(static_cast<const loop::Store&>(s));
    case StmtKind::kIf:
      return if_statement(static_cast<const loop::If&>(s));
    case StmtKind::kLet:
      return let(static_cast<const loop::Let&>(s));
    case StmtKind::kAlloc:
      return alloc(static_cast<const loop::Alloc&>(s));
  }
}

void BodyWriter::let(const loop::Let& s) {
  vars_[s.var.get()] = evaluate(s.value);
  let_values_[s.var.get()] = s.value.get();
  if (kernel_.in_bounds && varies(*s.value) && lane_stride(*s.value)) {
    memo_.emplace_back();
    let_first_lanes_[s.var.get()] = first_lane(*s.value);
    memo_.pop_back();
  }
  statement(*s.body);
}

void BodyWriter::alloc(const loop::Alloc& s) {
  places_[s.buffer.get()] = scratch_.at(s.buffer.get());
  statement(*s.body);
}

void BodyWriter::if_statement(const loop::If& s) {
  Value condition = evaluate(s.condition);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition.v)) {
    if (known->isOne()) statement(*s.then_body);
    if (known->isZero() && s.else_body) statement(*s.else_body);
    return;
  }
  if (condition.lanes) {
    llvm::Value* outer = mask_;
    mask_ = outer ? b_.CreateAnd(outer, condition.v) : condition.v;
    statement(*s.then_body);
    if (s.else_body) {
      llvm::Value* other = b_.CreateNot(condition.v);
      mask_ = outer ? b_.CreateAnd(outer, other) : other;
      statement(*s.else_body);
    }
    mask_ = outer;
    return;
  }
  llvm::BasicBlock* yes = block("then");
  llvm::BasicBlock* no = s.else_body ? block("else") : nullptr;
  llvm::BasicBlock* after = block("end.if");
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

void BodyWriter::store(const loop::Store& s) {
  const loop::Buffer& buffer = *s.buffer;
  auto it = places_.find(&buffer);
  TENON_ASSERT(it != places_.end(), "kernel '", kernel_.name, "' writes buffer '", buffer.name,
               "', which is not in scope");
  const Place place = it->second;
  llvm::Type* element = memory_type(buffer.dtype);
  const llvm::Align alignment(static_cast<uint64_t>(buffer.dtype.bytes()));

  memo_.emplace_back();
  Value v = value(*s.value);
  TENON_ASSERT(s.value->dtype == buffer.dtype, "kernel '", kernel_.name, "' stores ",
               s.value->dtype, " into buffer '", buffer.name, "' of ", buffer.dtype);
  Address at = address(buffer, s.indices);
  memo_.pop_back();

  if (place.lanes > 1 && lane_var_ != nullptr) {
    TENON_ASSERT(at.stride.has_value(), "scratch of lanes is written at an index of data");
    at.offset = b_.CreateMul(at.offset, b_.getInt64(place.lanes));
    *at.stride = *at.stride * place.lanes + 1;
  }
  const bool uniform = lane_var_ == nullptr || (at.stride == 0 && !v.lanes && mask_ == nullptr);
  if (uniform) {
    annotate(b_.CreateAlignedStore(to_memory(v.v, buffer.dtype),
                                   b_.CreateInBoundsGEP(element, place.data, at.offset), alignment),
             buffer);
    return;
  }
  llvm::Value* lanes = to_memory(broadcast(v), buffer.dtype);
  if (at.stride == 1) {
    llvm::Value* where = element_address(element, place.data, at.offset);
    annotate(mask_ ? static_cast<llvm::Instruction*>(
                         b_.CreateMaskedStore(lanes, where, alignment, mask_))
                   : b_.CreateAlignedStore(lanes, where, alignment),
             buffer);
    return;
  }
  if (at.stride && mask_ == nullptr) {
    for (unsigned lane = 0; lane < width_; ++lane) {
      llvm::Value* offset = b_.CreateAdd(
          at.offset, b_.getInt64(static_cast<uint64_t>(*at.stride * lane)), "", false, true);
      annotate(b_.CreateAlignedStore(b_.CreateExtractElement(lanes, lane),
                                     b_.CreateInBoundsGEP(element, place.data, offset), alignment),
               buffer);
    }
    return;
  }
  llvm::Value* offsets = at.offset;
  if (at.stride) {
    llvm::Value* lane = b_.CreateStepVector(llvm::FixedVectorType::get(m_.i64, width_));
    offsets =
        b_.CreateAdd(all_lanes(at.offset),
                     b_.CreateMul(lane, all_lanes(b_.getInt64(static_cast<uint64_t>(*at.stride)))));
  }
  annotate(
      b_.CreateMaskedScatter(lanes, b_.CreateGEP(element, place.data, offsets), alignment, mask_),
      buffer);
}

// ---- loops --------------------------------------------------------------------------------------

void BodyWriter::for_loop(const loop::For& loop) {
  if (nonnegative(*loop.begin)) nonnegative_vars_.insert(loop.var.get());
  const auto extent = constant_extent(loop);
  switch (loop.loop) {
    case ForKind::kParallel:
      if (!is_task_ && lane_var_ == nullptr) return parallel_loop(loop);
      break;
    case ForKind::kUnrolled:
      if (extent && *extent <= kMaxCopies && copies_ * *extent <= kMaxCopies)
        return unrolled_loop(loop, *extent);
      break;
    case ForKind::kVector:
      if (extent && *extent > 1 && *extent <= kMaxLanes && (*extent & (*extent - 1)) == 0 &&
          lane_var_ == nullptr)
        return vector_loop(loop, *extent);
      break;
    case ForKind::kSerial:
      break;
  }
  count(evaluate(loop.begin).v, evaluate(loop.extent).v, loop);
}

//   if (extent > 0) do { body } while (++i < begin + extent)
//
// In a kernel that isn't in bounds begin + extent may overflow, where counting `extent` turns does
// not.
void BodyWriter::count(llvm::Value* begin, llvm::Value* extent, const loop::For& loop) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(extent); known && known->isOne()) {
    vars_[loop.var.get()] = {begin};
    return statement(*loop.body);
  }
  llvm::BasicBlock* body = block("loop");
  llvm::BasicBlock* after = block("end.loop");
  const bool fits = kernel_.in_bounds;
  llvm::Value* end = fits ? b_.CreateAdd(begin, extent, "", false, true) : extent;
  b_.CreateCondBr(b_.CreateICmpSGT(extent, b_.getInt64(0)), body, after);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.SetInsertPoint(body);
  llvm::PHINode* i = b_.CreatePHI(m_.i64, 2, std::string(loop.var->name));
  i->addIncoming(fits ? begin : b_.getInt64(0), before);
  vars_[loop.var.get()] = {fits ? i : b_.CreateAdd(begin, i)};
  statement(*loop.body);
  llvm::Value* next = b_.CreateAdd(i, b_.getInt64(1), "", false, true);
  i->addIncoming(next, b_.GetInsertBlock());
  llvm::BranchInst* back = b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, after);
  if (is_scheduled_) {
    auto flag = [&](const char* name) {
      return llvm::MDNode::get(
          m_.context, {llvm::MDString::get(m_.context, name),
                       llvm::ConstantAsMetadata::get(llvm::ConstantInt::getFalse(m_.context))});
    };
    auto disable = llvm::MDNode::get(m_.context,
                                     {llvm::MDString::get(m_.context, "llvm.loop.unroll.disable")});
    llvm::Metadata* parts[] = {nullptr, flag("llvm.loop.vectorize.enable"), disable};
    llvm::MDNode* id = llvm::MDNode::getDistinct(m_.context, parts);
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  b_.SetInsertPoint(after);
}

void BodyWriter::unrolled_loop(const loop::For& loop, int64_t extent) {
  llvm::Value* begin = evaluate(loop.begin).v;
  const int64_t outer = copies_;
  copies_ = std::max<int64_t>(1, copies_ * extent);
  for (int64_t k = 0; k < extent; ++k) {
    vars_[loop.var.get()] = {
        b_.CreateAdd(begin, b_.getInt64(static_cast<uint64_t>(k)), "", false, kernel_.in_bounds)};
    statement(*loop.body);
  }
  copies_ = outer;
}

void BodyWriter::vector_loop(const loop::For& loop, int64_t extent) {
  llvm::Value* begin = evaluate(loop.begin).v;
  const int64_t multiple = first_lane_multiple(*loop.begin);
  lane_var_ = loop.var.get();
  lane_begin_ = begin;
  lane_begin_multiple_ = multiple;
  width_ = static_cast<unsigned>(extent);
  const bool possible = can_vectorise(*loop.body, false);
  if (possible) {
    llvm::Value* step = b_.CreateStepVector(llvm::FixedVectorType::get(m_.i64, width_));
    vars_[lane_var_] = {b_.CreateAdd(all_lanes(begin), step), true};
    statement(*loop.body);
  }
  lane_var_ = nullptr;
  lane_begin_ = nullptr;
  width_ = 1;
  varies_.clear();
  lane_strides_.clear();
  if (!possible) count(begin, b_.getInt64(static_cast<uint64_t>(extent)), loop);
}

// Lanes must not meet in one element, and control must not differ between them but by masks.
bool BodyWriter::can_vectorise(const loop::Stmt& s, bool masked) {
  switch (s.kind) {
    case StmtKind::kStore: {
      const auto& store = static_cast<const loop::Store&>(s);
      bool is_private =
          scratch_.count(store.buffer.get()) != 0 && scratch_.at(store.buffer.get()).lanes > 1;
      for (const loop::ExprRef& index : store.indices)
        if (lane_stride(*index) != 0) return !is_private;
      return is_private || (!masked && !varies(*store.value));
    }
    case StmtKind::kFor: {
      const auto& loop = static_cast<const loop::For&>(s);
      if (varies(*loop.begin) || varies(*loop.extent)) return false;
      break;
    }
    case StmtKind::kLet: {
      const auto& let = static_cast<const loop::Let&>(s);
      let_values_[let.var.get()] = let.value.get();
      break;
    }
    case StmtKind::kIf:
      masked = masked || varies(*static_cast<const loop::If&>(s).condition);
      break;
    default:
      break;
  }
  bool possible = true;
  for_children(s, [&](const loop::Stmt& c) { possible = possible && can_vectorise(c, masked); });
  return possible;
}

}  // namespace tenon::codegen
