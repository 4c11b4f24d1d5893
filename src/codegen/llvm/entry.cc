// The packed entry of a kernel. It is where safety is made: the caller may be hostile bytecode, so
// everything that the body assumes is checked here, on every call.
//
//   count of arguments -> tags -> one word per tensor (dtype, rank, device, compact, writable)
//     -> sizes (symbols bound, the rest compared) -> data (null, alignment, overlap) -> body
//
// Each step folds its comparisons into one rarely taken branch; what exactly was wrong is found out
// after it. A tensor's cached word may be read, since values from outside are rewrapped before they
// reach a register (object/tensor.h). Where the word differs, the whole DLTensor decides.
#include <set>

#include "codegen/llvm/lower.h"
#include "object/any.h"
#include "object/tensor.h"
#include "support/error.h"

namespace tenon::codegen {
namespace {

// Byte offsets in an Any and in a TensorObj; object/abi_layout.cc asserts them.
constexpr int64_t kAnySize = 16, kPayload = 8;
constexpr int64_t kData = 24, kDevice = 32, kRank = 40, kDtype = 44, kShape = 48, kStrides = 56,
                  kByteOffset = 64, kLayout = 72;

using vm::KernelError;

// The kernel's tensors as the entry sees them.
struct Parameter {
  Parameter(const loop::Buffer* b, bool output, int32_t i)
      : buffer(b), is_output(output), index(i) {}
  const loop::Buffer* buffer;
  bool is_output;
  int32_t index;  // of the argument
  llvm::Value* tensor = nullptr;
  llvm::Value* shape = nullptr;
  std::vector<llvm::Value*> dims;
  llvm::Value* data = nullptr;   // an address as i64
  llvm::Value* bytes = nullptr;  // i64
};

class EntryWriter {
 public:
  EntryWriter(ModuleWriter& m, const loop::Kernel& kernel) : m_(m), kernel_(kernel), b_(m.context) {
    int32_t index = 0;
    for (const auto& buffer : kernel.inputs) parameters_.emplace_back(buffer.get(), false, index++);
    for (const auto& buffer : kernel.outputs) parameters_.emplace_back(buffer.get(), true, index++);
  }

  llvm::Function* write(llvm::Function* body) {
    function_ = m_.function(m_.i32, {m_.pointer, m_.pointer, m_.i32, m_.pointer},
                            std::string(kernel_.name));
    runtime_ = function_->getArg(0);
    arguments_ = function_->getArg(1);
    b_.SetInsertPoint(llvm::BasicBlock::Create(m_.context, "entry", function_));
    count();
    tensors();
    integers();
    sizes();
    data();
    std::vector<llvm::Value*> values = {runtime_};
    for (const Parameter& p : parameters_) values.push_back(b_.CreateIntToPtr(p.data, m_.pointer));
    for (const std::string& symbol : kernel_symbols(kernel_)) values.push_back(symbols_.at(symbol));
    b_.CreateRet(b_.CreateCall(body, values));
    return function_;
  }

 private:
  llvm::BasicBlock* block(const char* name) {
    return llvm::BasicBlock::Create(m_.context, name, function_);
  }
  llvm::Value* number(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  llvm::Value* at(llvm::Type* type, llvm::Value* base, int64_t offset) {
    return m_.field(b_, type, base, offset);
  }
  llvm::Value* payload(int32_t argument, llvm::Type* type) {
    return at(type, arguments_, argument * kAnySize + kPayload);
  }
  llvm::Value* tag(int32_t argument) { return at(m_.i32, arguments_, argument * kAnySize); }

  void fail(KernelError code, int32_t argument, int32_t axis, llvm::Value* found,
            llvm::Value* expected) {
    b_.CreateRet(m_.raise(b_, runtime_, kernel_, code, argument, axis, found, expected));
  }
  // Returns an error where `condition` holds, and goes on where it doesn't.
  void fail_if(llvm::Value* condition, KernelError code, int32_t argument, int32_t axis,
               llvm::Value* found, llvm::Value* expected) {
    llvm::BasicBlock* bad = block("bad");
    llvm::BasicBlock* good = block("good");
    b_.CreateCondBr(condition, bad, good, m_.unlikely());
    b_.SetInsertPoint(bad);
    fail(code, argument, axis, found, expected);
    b_.SetInsertPoint(good);
  }
  // Runs `explain` where `suspicious` isn't 0; if it comes to its end, all is well after all.
  template <class F>
  void unless_zero(llvm::Value* suspicious, F&& explain) {
    if (auto* c = llvm::dyn_cast<llvm::Constant>(suspicious); c != nullptr && c->isNullValue())
      return;
    llvm::BasicBlock* look = block("look");
    llvm::BasicBlock* good = block("good");
    b_.CreateCondBr(
        b_.CreateICmpNE(suspicious, llvm::Constant::getNullValue(suspicious->getType())), look,
        good, m_.unlikely());
    b_.SetInsertPoint(look);
    explain();
    b_.CreateBr(good);
    b_.SetInsertPoint(good);
  }

  void count() {
    const auto expected = static_cast<int64_t>(parameters_.size() + kernel_.integers.size());
    llvm::Value* found = function_->getArg(2);
    fail_if(b_.CreateICmpNE(found, b_.getInt32(static_cast<uint32_t>(expected))),
            KernelError::ArgumentCount, -1, -1, b_.CreateSExt(found, m_.i64), number(expected));
  }

  uint64_t expected_word(const Parameter& p) const {
    return LayoutWord::of(p.buffer->dtype, static_cast<int32_t>(p.buffer->shape.size()), kDLCPU) |
           LayoutWord::kCompact;
  }

  void tensors() {
    if (parameters_.empty()) return;
    llvm::Value* wrong = nullptr;
    for (const Parameter& p : parameters_) {
      llvm::Value* differs = b_.CreateXor(tag(p.index), b_.getInt32(TypeIndex::Tensor));
      wrong = wrong ? b_.CreateOr(wrong, differs) : differs;
    }
    unless_zero(wrong, [&] {
      for (const Parameter& p : parameters_) {
        llvm::Value* found = tag(p.index);
        fail_if(b_.CreateICmpNE(found, b_.getInt32(TypeIndex::Tensor)), KernelError::NotATensor,
                p.index, -1, b_.CreateSExt(found, m_.i64), number(TypeIndex::Tensor));
      }
    });
    wrong = nullptr;
    for (Parameter& p : parameters_) {
      p.tensor = payload(p.index, m_.pointer);
      const uint64_t mask =
          LayoutWord::kTypeMask | LayoutWord::kCompact | (p.is_output ? LayoutWord::kReadOnly : 0);
      llvm::Value* word = b_.CreateAnd(at(m_.i64, p.tensor, kLayout), b_.getInt64(mask));
      llvm::Value* differs = b_.CreateXor(word, b_.getInt64(expected_word(p)));
      wrong = wrong ? b_.CreateOr(wrong, differs) : differs;
    }
    unless_zero(wrong, [&] {
      for (const Parameter& p : parameters_) {
        llvm::Value* code =
            b_.CreateCall(slow_check(), {runtime_, m_.text(kernel_.name),
                                         b_.getInt32(static_cast<uint32_t>(p.index)), p.tensor,
                                         b_.getInt64(expected_word(p)), b_.getInt1(p.is_output)});
        llvm::BasicBlock* bad = block("bad");
        llvm::BasicBlock* next = block("next");
        b_.CreateCondBr(b_.CreateICmpNE(code, b_.getInt32(0)), bad, next);
        b_.SetInsertPoint(bad);
        b_.CreateRet(code);
        b_.SetInsertPoint(next);
      }
    });
  }

  void integers() {
    auto index = static_cast<int32_t>(parameters_.size());
    for (const String& name : kernel_.integers) {
      llvm::Value* found = tag(index);
      fail_if(b_.CreateICmpNE(found, b_.getInt32(TypeIndex::Int)), KernelError::NotAnInteger, index,
              -1, b_.CreateSExt(found, m_.i64), number(TypeIndex::Int));
      llvm::Value* v = payload(index, m_.i64);
      fail_if(b_.CreateICmpSLT(v, number(0)), KernelError::NegativeSize, index, -1, v, number(0));
      symbols_[name.str()] = v;
      ++index;
    }
  }

  void sizes() {
    for (Parameter& p : parameters_) {
      const size_t rank = p.buffer->shape.size();
      if (rank == 0) continue;
      p.shape = at(m_.pointer, p.tensor, kShape);
      for (size_t axis = 0; axis < rank; ++axis) {
        llvm::Value* size = at(m_.i64, p.shape, static_cast<int64_t>(8 * axis));
        p.dims.push_back(size);
        const Dim& d = p.buffer->shape[axis];
        if (d.kind() == DimKind::kSymbol) symbols_.try_emplace(d.node().name.str(), size);
      }
    }
    auto symbol = [&](std::string_view name) {
      auto it = symbols_.find(std::string(name));
      TENON_ASSERT(it != symbols_.end(), "kernel '", kernel_.name, "' doesn't bind symbol '", name,
                   "'");
      return it->second;
    };
    llvm::BasicBlock* overflow = nullptr;
    DimWriter dims(b_, symbol, [&](KernelError code, llvm::Value* found, llvm::Value* expected) {
      if (code == KernelError::Overflow && overflow != nullptr) return overflow;
      llvm::BasicBlock* failed = block("size");
      if (code == KernelError::Overflow) overflow = failed;
      auto here = b_.saveIP();
      b_.SetInsertPoint(failed);
      fail(code, -1, -1, found, expected);
      b_.restoreIP(here);
      return failed;
    });
    // Sizes that only the body computes can't overflow either.
    for (const Dim& d : kernel_dims(kernel_)) dims.write(d);

    struct Comparison {
      int32_t argument, axis;
      llvm::Value *found, *expected;
    };
    std::vector<Comparison> comparisons;
    llvm::Value* wrong = number(0);
    for (const Parameter& p : parameters_) {
      for (size_t axis = 0; axis < p.dims.size(); ++axis) {
        llvm::Value* expected = dims.write(p.buffer->shape[axis]);
        if (expected == p.dims[axis]) continue;  // where the symbol is bound
        comparisons.push_back({p.index, static_cast<int32_t>(axis), p.dims[axis], expected});
        wrong = b_.CreateOr(wrong, b_.CreateXor(p.dims[axis], expected));
      }
    }
    unless_zero(wrong, [&] {
      for (const Comparison& c : comparisons)
        fail_if(b_.CreateICmpNE(c.found, c.expected), KernelError::Dimension, c.argument, c.axis,
                c.found, c.expected);
    });
  }

  void data() {
    llvm::Value* misaligned = number(0);
    llvm::Value* null = b_.getFalse();
    for (Parameter& p : parameters_) {
      p.data = b_.CreateAdd(at(m_.i64, p.tensor, kData), at(m_.i64, p.tensor, kByteOffset));
      const int64_t element = p.buffer->dtype.bytes();
      p.bytes = number(element);
      for (size_t axis = 0; axis < p.dims.size(); ++axis) {
        auto known = p.buffer->shape[axis].as_const();
        p.bytes = b_.CreateMul(p.bytes, known ? number(*known) : p.dims[axis]);
      }
      misaligned = b_.CreateOr(misaligned, b_.CreateAnd(p.data, number(element - 1)));
      null = b_.CreateOr(null, b_.CreateAnd(b_.CreateICmpEQ(p.data, number(0)),
                                            b_.CreateICmpNE(p.bytes, number(0))));
    }
    unless_zero(b_.CreateOr(misaligned, b_.CreateZExt(null, m_.i64)), [&] {
      for (const Parameter& p : parameters_) {
        fail_if(
            b_.CreateAnd(b_.CreateICmpEQ(p.data, number(0)), b_.CreateICmpNE(p.bytes, number(0))),
            KernelError::NullData, p.index, -1, number(0), number(0));
        const int64_t element = p.buffer->dtype.bytes();
        llvm::Value* rest = b_.CreateAnd(p.data, number(element - 1));
        fail_if(b_.CreateICmpNE(rest, number(0)), KernelError::Alignment, p.index, -1, rest,
                number(element));
      }
    });
    overlaps();
  }

  bool may_share(const Parameter& output, const Parameter& other) const {
    const auto inputs = static_cast<int32_t>(kernel_.inputs.size());
    if (other.is_output || output.buffer->dtype.bytes() != other.buffer->dtype.bytes())
      return false;
    for (const auto& pair : kernel_.in_place)
      if (pair[0] == output.index - inputs && pair[1] == other.index) return true;
    return false;
  }

  // Two ranges are apart when each begins at or after the end of the other, modulo 2^64.
  llvm::Value* touch(const Parameter& a, const Parameter& b) {
    llvm::Value* touch = b_.CreateOr(b_.CreateICmpULT(b_.CreateSub(a.data, b.data), b.bytes),
                                     b_.CreateICmpULT(b_.CreateSub(b.data, a.data), a.bytes));
    return may_share(a, b) ? b_.CreateAnd(touch, b_.CreateICmpNE(a.data, b.data)) : touch;
  }

  void overlaps() {
    struct Pair {
      const Parameter *output, *other;
    };
    std::vector<Pair> pairs;
    llvm::Value* wrong = b_.getFalse();
    for (const Parameter& output : parameters_) {
      if (!output.is_output) continue;
      for (const Parameter& other : parameters_) {
        if (&other == &output || (other.is_output && other.index < output.index)) continue;
        pairs.push_back({&output, &other});
        wrong = b_.CreateOr(wrong, touch(output, other));
      }
    }
    unless_zero(wrong, [&] {
      for (const Pair& pair : pairs) {
        llvm::Value* both = b_.CreateAnd(b_.CreateICmpNE(pair.output->bytes, number(0)),
                                         b_.CreateICmpNE(pair.other->bytes, number(0)));
        fail_if(b_.CreateAnd(both, touch(*pair.output, *pair.other)), KernelError::Overlap,
                pair.output->index, -1, number(pair.other->index), number(0));
      }
    });
  }

  // i32 (runtime, kernel name, argument, tensor, expected word, is output): 0 if the DLTensor is
  // what is expected, else what raise returned. One per module.
  llvm::Function* slow_check() {
    if (m_.slow_check != nullptr) return m_.slow_check;
    llvm::Function* f = m_.slow_check = m_.function(
        m_.i32, {m_.pointer, m_.pointer, m_.i32, m_.pointer, m_.i64, m_.i1}, "tenon.check_tensor");
    f->addFnAttr(llvm::Attribute::NoInline);
    f->addFnAttr(llvm::Attribute::Cold);
    llvm::Value *runtime = f->getArg(0), *name = f->getArg(1), *argument = f->getArg(2),
                *tensor = f->getArg(3), *word = f->getArg(4), *is_output = f->getArg(5);
    auto new_block = [&](const char* label) {
      return llvm::BasicBlock::Create(m_.context, label, f);
    };
    Builder b(new_block("entry"));
    auto none = b.getInt32(static_cast<uint32_t>(-1));
    auto refuse_if = [&](llvm::Value* condition, KernelError code, llvm::Value* axis,
                         llvm::Value* found, llvm::Value* expected) {
      llvm::BasicBlock* bad = new_block("bad");
      llvm::BasicBlock* good = new_block("good");
      b.CreateCondBr(condition, bad, good);
      b.SetInsertPoint(bad);
      b.CreateRet(b.CreateCall(m_.raise_type,
                               m_.runtime_function(b, runtime, offsetof(vm::KernelRuntime, raise)),
                               {runtime, name, b.getInt32(static_cast<uint32_t>(code)), argument,
                                axis, found, expected}));
      b.SetInsertPoint(good);
    };
    auto wide = [&](llvm::Value* v) { return b.CreateZExt(v, m_.i64); };
    llvm::Value* dtype = wide(m_.field(b, m_.i32, tensor, kDtype));
    llvm::Value* wanted_dtype = b.CreateAnd(word, b.getInt64(0xffffffff));
    refuse_if(b.CreateICmpNE(dtype, wanted_dtype), KernelError::Dtype, none, dtype, wanted_dtype);
    llvm::Value* rank = wide(m_.field(b, m_.i32, tensor, kRank));
    llvm::Value* wanted_rank = b.CreateAnd(b.CreateLShr(word, 32), b.getInt64(0xff));
    refuse_if(b.CreateICmpNE(rank, wanted_rank), KernelError::Rank, none, rank, wanted_rank);
    llvm::Value* device_type = m_.field(b, m_.i32, tensor, kDevice);
    refuse_if(b.CreateICmpNE(device_type, b.getInt32(kDLCPU)), KernelError::Device, none,
              m_.field(b, m_.i64, tensor, kDevice), b.getInt64(kDLCPU));
    llvm::Value* flags = m_.field(b, m_.i64, tensor, kLayout);
    refuse_if(
        b.CreateAnd(is_output, b.CreateICmpNE(b.CreateAnd(flags, b.getInt64(LayoutWord::kReadOnly)),
                                              b.getInt64(0))),
        KernelError::NotWritable, none, b.getInt64(0), b.getInt64(0));

    // Compact: no strides, or no elements, or from the last axis on each stride that counts is the
    // product of the sizes after it.
    llvm::BasicBlock* fine = new_block("fine");
    llvm::BasicBlock *empty_head = new_block("empty"), *empty_next = new_block("empty.next");
    llvm::BasicBlock *head = new_block("stride"), *check = new_block("stride.check");
    llvm::BasicBlock *compare = new_block("stride.compare"), *latch = new_block("stride.next");
    llvm::Value* strides = m_.field(b, m_.pointer, tensor, kStrides);
    llvm::Value* shape = m_.field(b, m_.pointer, tensor, kShape);
    llvm::BasicBlock* before = b.GetInsertBlock();
    b.CreateCondBr(b.CreateIsNull(strides), fine, empty_head);

    b.SetInsertPoint(empty_head);
    llvm::PHINode* e = b.CreatePHI(m_.i64, 2);
    e->addIncoming(b.getInt64(0), before);
    b.CreateCondBr(b.CreateICmpULT(e, rank), empty_next, head);
    b.SetInsertPoint(empty_next);
    llvm::Value* size = b.CreateLoad(m_.i64, b.CreateGEP(m_.i64, shape, e));
    e->addIncoming(b.CreateAdd(e, b.getInt64(1)), empty_next);
    b.CreateCondBr(b.CreateICmpEQ(size, b.getInt64(0)), fine, empty_head);

    b.SetInsertPoint(head);
    llvm::PHINode* left = b.CreatePHI(m_.i64, 2);
    llvm::PHINode* product = b.CreatePHI(m_.i64, 2);
    left->addIncoming(rank, empty_head);
    product->addIncoming(b.getInt64(1), empty_head);
    b.CreateCondBr(b.CreateICmpEQ(left, b.getInt64(0)), fine, check);
    b.SetInsertPoint(check);
    llvm::Value* axis = b.CreateSub(left, b.getInt64(1));
    llvm::Value* extent = b.CreateLoad(m_.i64, b.CreateGEP(m_.i64, shape, axis));
    b.CreateCondBr(b.CreateICmpEQ(extent, b.getInt64(1)), latch, compare);
    b.SetInsertPoint(compare);
    llvm::Value* stride = b.CreateLoad(m_.i64, b.CreateGEP(m_.i64, strides, axis));
    refuse_if(b.CreateICmpNE(stride, product), KernelError::NotCompact, b.CreateTrunc(axis, m_.i32),
              stride, product);
    b.CreateBr(latch);
    b.SetInsertPoint(latch);
    left->addIncoming(axis, latch);
    product->addIncoming(b.CreateMul(product, extent), latch);
    b.CreateBr(head);

    b.SetInsertPoint(fine);
    b.CreateRet(b.getInt32(0));
    return f;
  }

  ModuleWriter& m_;
  const loop::Kernel& kernel_;
  Builder b_;
  llvm::Function* function_ = nullptr;
  llvm::Value* runtime_ = nullptr;
  llvm::Value* arguments_ = nullptr;
  std::vector<Parameter> parameters_;
  std::map<std::string, llvm::Value*> symbols_;
};

void collect_dims(const loop::Expr& e, std::set<const loop::Expr*>* seen, std::vector<Dim>* dims) {
  using loop::ExprKind;
  if (e.kind == ExprKind::kLiteral || e.kind == ExprKind::kVar || !seen->insert(&e).second) return;
  auto visit = [&](const loop::ExprRef& a) { collect_dims(*a, seen, dims); };
  switch (e.kind) {
    case ExprKind::kDimValue:
      dims->push_back(static_cast<const loop::DimValue&>(e).dim);
      return;
    case ExprKind::kLoad:
      for (const auto& index : static_cast<const loop::Load&>(e).indices) visit(index);
      return;
    case ExprKind::kUnary:
      return visit(static_cast<const loop::Unary&>(e).a);
    case ExprKind::kBinary:
      visit(static_cast<const loop::Binary&>(e).a);
      return visit(static_cast<const loop::Binary&>(e).b);
    case ExprKind::kSelect:
      visit(static_cast<const loop::Select&>(e).condition);
      visit(static_cast<const loop::Select&>(e).if_true);
      return visit(static_cast<const loop::Select&>(e).if_false);
    case ExprKind::kCast:
      return visit(static_cast<const loop::Cast&>(e).a);
    case ExprKind::kCheckedIndex:
      dims->push_back(static_cast<const loop::CheckedIndex&>(e).extent);
      return visit(static_cast<const loop::CheckedIndex&>(e).index);
    case ExprKind::kVar:
    case ExprKind::kLiteral:
      return;
  }
}

}  // namespace

std::vector<std::string> kernel_symbols(const loop::Kernel& kernel) {
  std::vector<std::string> names;
  auto add = [&](std::string name) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  };
  for (const auto* buffers : {&kernel.inputs, &kernel.outputs})
    for (const auto& buffer : *buffers)
      for (const Dim& d : buffer->shape)
        if (d.kind() == DimKind::kSymbol) add(d.node().name.str());
  for (const String& name : kernel.integers) add(name.str());
  return names;
}

std::vector<Dim> kernel_dims(const loop::Kernel& kernel) {
  std::vector<Dim> dims;
  std::set<const loop::Expr*> seen;
  std::vector<const loop::Stmt*> pending = {kernel.body.get()};
  auto visit = [&](const loop::ExprRef& e) { collect_dims(*e, &seen, &dims); };
  while (!pending.empty()) {
    const loop::Stmt& s = *pending.back();
    pending.pop_back();
    if (s.kind == loop::StmtKind::kFor) {
      visit(static_cast<const loop::For&>(s).begin);
      visit(static_cast<const loop::For&>(s).extent);
    } else if (s.kind == loop::StmtKind::kStore) {
      for (const auto& index : static_cast<const loop::Store&>(s).indices) visit(index);
      visit(static_cast<const loop::Store&>(s).value);
    } else if (s.kind == loop::StmtKind::kIf) {
      visit(static_cast<const loop::If&>(s).condition);
    } else if (s.kind == loop::StmtKind::kLet) {
      visit(static_cast<const loop::Let&>(s).value);
    }
    for_children(s, [&](const loop::Stmt& child) { pending.push_back(&child); });
  }
  // Each once; atoms can't overflow.
  std::vector<Dim> unique;
  for (const Dim& d : dims) {
    if (d.kind() == DimKind::kConst || d.kind() == DimKind::kSymbol) continue;
    if (std::none_of(unique.begin(), unique.end(), [&](const Dim& u) { return u == d; }))
      unique.push_back(d);
  }
  return unique;
}

llvm::Function* write_entry(ModuleWriter& m, const loop::Kernel& kernel, llvm::Function* body) {
  return EntryWriter(m, kernel).write(body);
}

// ---- sizes --------------------------------------------------------------------------------------

void DimWriter::fail_if(llvm::Value* condition, KernelError code, llvm::Value* found,
                        llvm::Value* expected) {
  if (auto* c = llvm::dyn_cast<llvm::Constant>(condition); c != nullptr && c->isNullValue()) return;
  llvm::BasicBlock* failed = on_failure_(code, found, expected);
  llvm::BasicBlock* good =
      llvm::BasicBlock::Create(b_.getContext(), "fits", b_.GetInsertBlock()->getParent());
  b_.CreateCondBr(condition, failed, good,
                  llvm::MDBuilder(b_.getContext()).createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(good);
}

llvm::Value* DimWriter::checked(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* c) {
  llvm::Value* pair = b_.CreateBinaryIntrinsic(id, a, c);
  fail_if(b_.CreateExtractValue(pair, 1), KernelError::Overflow, b_.getInt64(0), b_.getInt64(0));
  return b_.CreateExtractValue(pair, 0);
}

llvm::Value* DimWriter::floor_division(llvm::Value* a, llvm::Value* c, bool remainder) {
  llvm::Value* zero = b_.getInt64(0);
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(c);
  if (known != nullptr && known->getValue().isStrictlyPositive() && known->getValue().isPowerOf2())
    return remainder ? b_.CreateAnd(a, known->getSExtValue() - 1)
                     : b_.CreateAShr(a, known->getValue().logBase2());
  llvm::Value* by_zero = b_.CreateICmpEQ(c, zero);
  llvm::Value* minus_one = b_.CreateICmpEQ(c, b_.getInt64(~uint64_t{0}));
  llvm::Value* divisor = b_.CreateSelect(b_.CreateOr(by_zero, minus_one), b_.getInt64(1), c);
  llvm::Value* quotient = b_.CreateSDiv(a, divisor);
  llvm::Value* rest = b_.CreateSub(a, b_.CreateMul(quotient, divisor));
  llvm::Value* wrong_side =
      b_.CreateAnd(b_.CreateICmpNE(rest, zero), b_.CreateICmpSLT(b_.CreateXor(rest, c), zero));
  llvm::Value* result =
      remainder
          ? b_.CreateSelect(wrong_side, b_.CreateAdd(rest, c), rest)
          : b_.CreateSelect(
                minus_one, b_.CreateSub(zero, a),
                b_.CreateSelect(wrong_side, b_.CreateSub(quotient, b_.getInt64(1)), quotient));
  return b_.CreateSelect(by_zero, zero, result);
}

llvm::Value* DimWriter::write(const DimNode& d) {
  switch (d.kind) {
    case DimKind::kConst:
      return b_.getInt64(static_cast<uint64_t>(d.value));
    case DimKind::kSymbol:
      return symbol_(d.name);
    default:
      break;
  }
  llvm::Value* result = nullptr;
  for (const auto& arg : d.args) {
    llvm::Value* v = write(*arg);
    if (result == nullptr) {
      result = v;
      continue;
    }
    llvm::Value* a = result;
    switch (d.kind) {
      case DimKind::kAdd:
        result =
            on_failure_ ? checked(llvm::Intrinsic::sadd_with_overflow, a, v) : b_.CreateAdd(a, v);
        break;
      case DimKind::kMul:
        result =
            on_failure_ ? checked(llvm::Intrinsic::smul_with_overflow, a, v) : b_.CreateMul(a, v);
        break;
      case DimKind::kFloorDiv:
        result = floor_division(a, v, false);
        break;
      case DimKind::kMod:
        result = floor_division(a, v, true);
        break;
      case DimKind::kMin:
        result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, v);
        break;
      case DimKind::kMax:
        result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, v);
        break;
      case DimKind::kBcast: {
        llvm::Value* one = b_.getInt64(1);
        llvm::Value* a_is_one = b_.CreateICmpEQ(a, one);
        if (on_failure_)
          fail_if(b_.CreateAnd(b_.CreateAnd(b_.CreateNot(a_is_one), b_.CreateICmpNE(v, one)),
                               b_.CreateICmpNE(a, v)),
                  KernelError::Dimension, v, a);
        result = b_.CreateSelect(a_is_one, v, a);
        break;
      }
      case DimKind::kConst:
      case DimKind::kSymbol:
        break;
    }
  }
  return result;
}

}  // namespace tenon::codegen
