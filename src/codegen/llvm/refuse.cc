// `check`: walks the description of a kernel's parameters and raises an error for the first
// argument that is wrong. `refuse` calls it after an entry has detected a problem. One function
// each for all entries of a kernel object.
#include "codegen/llvm/entry_layout.h"
#include "codegen/llvm/lower.h"
#include "object/tensor.h"

namespace tenon::codegen {
namespace {

using vm::KernelError;
using V = llvm::Value*;

class CheckWriter {
 public:
  CheckWriter(ModuleWriter& m, llvm::Function* f)
      : m_(m), f_(f), b_(llvm::BasicBlock::Create(m.context, "entry", f)) {}

  void write() {
    V tensors = word(description(), 0), inputs = word(description(), kDescribedInputs);
    V integers = word(description(), kDescribedIntegers);
    V count = b_.CreateSExt(f_->getArg(4), m_.i64);
    V expected = b_.CreateAdd(tensors, integers);
    raise_if(b_.CreateICmpNE(count, expected), KernelError::ArgumentCount, minus_one(), minus_one(),
             count, expected);

    for_each(zero(), tensors, [&](V t) {
      V tag = argument_tag(t);
      raise_if(b_.CreateICmpNE(tag, number(TypeIndex::Tensor)), KernelError::NotATensor, t,
               minus_one(), tag, number(TypeIndex::Tensor));
    });
    for_each(zero(), tensors, [&](V t) { type_of_tensor(t, b_.CreateICmpUGE(t, inputs)); });
    for_each(tensors, expected, [&](V i) {
      V tag = argument_tag(i);
      raise_if(b_.CreateICmpNE(tag, number(TypeIndex::Int)), KernelError::NotAnInteger, i,
               minus_one(), tag, number(TypeIndex::Int));
      V v = b_.CreateLoad(m_.i64, payload(i));
      raise_if(b_.CreateICmpSLT(v, zero()), KernelError::NegativeSize, i, minus_one(), v, zero());
    });
    for_each(zero(), tensors, [&](V t) {
      V tensor = object(t), rank = rank_of(tensor),
        shape = m_.field(b_, m_.pointer, tensor, kShape);
      for_each(zero(), rank, [&](V axis) {
        V described = element(record(t), b_.CreateAdd(axis, number(kTensorWords)));
        V computed = b_.CreateICmpSLT(described, zero());
        V there = b_.CreateGEP(m_.i64, f_->getArg(5), b_.CreateNot(described));
        // If sizes weren't computed, the address isn't read: a constant is used instead.
        V usable = b_.CreateAnd(computed, b_.CreateIsNotNull(f_->getArg(5)));
        V wanted = b_.CreateLoad(m_.i64, b_.CreateSelect(usable, there, record(t)));
        V size = element(shape, axis);
        wanted = b_.CreateSelect(usable, wanted, b_.CreateSelect(computed, size, described));
        raise_if(b_.CreateICmpNE(size, wanted), KernelError::Dimension, t, axis, size, wanted);
      });
    });
    llvm::BasicBlock* last = block("data");
    llvm::BasicBlock* no_sizes = block("no.sizes");
    b_.CreateCondBr(b_.CreateIsNull(f_->getArg(5)), no_sizes, last);
    b_.SetInsertPoint(no_sizes);
    b_.CreateRet(b_.getInt32(0));
    b_.SetInsertPoint(last);
    for_each(zero(), tensors, [&](V t) {
      V data = data_of(t), bytes = bytes_of(t);
      V null = b_.CreateIsNull(data);
      raise_if(b_.CreateAnd(null, b_.CreateIsNotNull(bytes)), KernelError::NullData, t, minus_one(),
               zero(), zero());
      V unit = element(record(t), number(1));
      V rest = b_.CreateAnd(data, b_.CreateSub(unit, number(1)));
      raise_if(b_.CreateIsNotNull(rest), KernelError::Alignment, t, minus_one(), rest, unit);
    });
    for_each(inputs, tensors, [&](V output) {
      V bytes = bytes_of(output);
      for_each(zero(), tensors, [&](V other) { overlap(output, bytes, other); });
    });
    b_.CreateRet(b_.getInt32(0));
  }

  // The function that calls `check`, which finds something.
  void write_refuse() {
    std::vector<V> arguments;
    for (llvm::Argument& a : f_->args()) arguments.push_back(&a);
    V code = b_.CreateCall(m_.check(), arguments);
    llvm::BasicBlock* found = block("found");
    llvm::BasicBlock* nothing = block("nothing");
    b_.CreateCondBr(b_.CreateIsNotNull(code), found, nothing);
    b_.SetInsertPoint(found);
    b_.CreateRet(code);
    // A bug: the entry and `check` disagree.
    b_.SetInsertPoint(nothing);
    b_.CreateRet(raise(KernelError::ChecksDisagree, minus_one(), minus_one(), zero(), zero()));
  }

 private:
  V number(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  V zero() { return b_.getInt64(0); }
  V minus_one() { return number(-1); }
  V description() { return f_->getArg(2); }
  V element(V words, V index) { return b_.CreateLoad(m_.i64, b_.CreateGEP(m_.i64, words, index)); }
  V word(V words, int64_t index) { return element(words, number(index)); }
  V argument(V i) { return b_.CreateGEP(m_.i8, f_->getArg(3), b_.CreateMul(i, number(kAnySize))); }
  V argument_tag(V i) { return b_.CreateSExt(b_.CreateLoad(m_.i32, argument(i)), m_.i64); }
  V payload(V i) { return b_.CreateGEP(m_.i8, argument(i), number(kAnyPayload)); }
  V object(V t) { return b_.CreateLoad(m_.pointer, payload(t)); }
  V rank_of(V tensor) { return b_.CreateZExt(m_.field(b_, m_.i32, tensor, kRank), m_.i64); }
  V record(V t) {
    V pairs = word(description(), kDescribedPairs), step = word(description(), kDescribedStep);
    V start = b_.CreateAdd(b_.CreateShl(pairs, 1), number(kDescriptionHead));
    V base = description();
    return b_.CreateGEP(m_.i64, base, b_.CreateAdd(start, b_.CreateMul(t, step)));
  }
  V data_of(V t) {
    V tensor = object(t);
    return b_.CreateAdd(m_.field(b_, m_.i64, tensor, kData),
                        m_.field(b_, m_.i64, tensor, kByteOffset));
  }
  V bytes_of(V t) {
    V tensor = object(t), shape = m_.field(b_, m_.pointer, tensor, kShape);
    return fold(zero(), rank_of(tensor), element(record(t), number(1)),
                [&](V axis, V bytes) { return b_.CreateMul(bytes, element(shape, axis)); });
  }

  llvm::BasicBlock* block(const char* name) {
    return llvm::BasicBlock::Create(m_.context, name, f_);
  }
  V raise(KernelError code, V argument, V axis, V found, V expected) {
    V narrow_argument = b_.CreateTrunc(argument, m_.i32);
    V narrow_axis = b_.CreateTrunc(axis, m_.i32);
    return m_.call(b_, f_->getArg(0), &vm::KernelRuntime::raise, f_->getArg(1),
                   b_.getInt32(static_cast<uint32_t>(code)), narrow_argument, narrow_axis, found,
                   expected);
  }
  void raise_if(V condition, KernelError code, V argument, V axis, V found, V expected) {
    llvm::BasicBlock* bad = block("bad");
    llvm::BasicBlock* good = block("good");
    b_.CreateCondBr(condition, bad, good);
    b_.SetInsertPoint(bad);
    b_.CreateRet(raise(code, argument, axis, found, expected));
    b_.SetInsertPoint(good);
  }
  // state = f(i, state) for i from `begin` to `end`.
  template <class F>
  V fold(V begin, V end, V state, F&& f) {
    llvm::BasicBlock *head = block("head"), *body = block("body"), *after = block("after");
    llvm::BasicBlock* before = b_.GetInsertBlock();
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* i = b_.CreatePHI(m_.i64, 2);
    llvm::PHINode* s = b_.CreatePHI(m_.i64, 2);
    i->addIncoming(begin, before);
    s->addIncoming(state, before);
    b_.CreateCondBr(b_.CreateICmpSLT(i, end), body, after);
    b_.SetInsertPoint(body);
    V next_state = f(i, s);
    V next = b_.CreateAdd(i, number(1));
    i->addIncoming(next, b_.GetInsertBlock());
    s->addIncoming(next_state, b_.GetInsertBlock());
    b_.CreateBr(head);
    b_.SetInsertPoint(after);
    return s;
  }
  template <class F>
  void for_each(V begin, V end, F&& f) {
    fold(begin, end, zero(), [&](V i, V state) {
      f(i);
      return state;
    });
  }

  void type_of_tensor(V t, V is_output) {
    V tensor = object(t), wanted = element(record(t), zero());
    V dtype = b_.CreateZExt(m_.field(b_, m_.i32, tensor, kDtype), m_.i64);
    V wanted_dtype = b_.CreateAnd(wanted, number(0xffffffff));
    raise_if(b_.CreateICmpNE(dtype, wanted_dtype), KernelError::Dtype, t, minus_one(), dtype,
             wanted_dtype);
    V rank = rank_of(tensor);
    V wanted_rank = b_.CreateAnd(b_.CreateLShr(wanted, 32), number(0xff));
    raise_if(b_.CreateICmpNE(rank, wanted_rank), KernelError::Rank, t, minus_one(), rank,
             wanted_rank);
    V device = m_.field(b_, m_.i64, tensor, kDevice);
    raise_if(b_.CreateICmpNE(b_.CreateTrunc(device, m_.i32), b_.getInt32(kDLCPU)),
             KernelError::Device, t, minus_one(), device, number(kDLCPU));
    V flags = m_.field(b_, m_.i64, tensor, kLayout);
    auto has = [&](uint64_t bit) {
      return b_.CreateIsNotNull(b_.CreateAnd(flags, b_.getInt64(bit)));
    };
    raise_if(b_.CreateAnd(is_output, has(LayoutWord::kReadOnly)), KernelError::NotWritable, t,
             minus_one(), zero(), zero());
    // The axis that isn't compact: the last one whose stride isn't the product of the sizes after
    // it.
    V strides = m_.field(b_, m_.pointer, tensor, kStrides);
    V shape = m_.field(b_, m_.pointer, tensor, kShape);
    V not_compact = b_.CreateNot(has(LayoutWord::kCompact));
    V strided = b_.CreateAnd(not_compact, b_.CreateIsNotNull(strides));
    fold(zero(), b_.CreateSelect(strided, rank, zero()), number(1), [&](V i, V product) {
      V axis = b_.CreateSub(b_.CreateSub(rank, number(1)), i);
      V size = element(shape, axis), stride = element(strides, axis);
      V not_one = b_.CreateICmpNE(size, number(1));
      V wrong = b_.CreateAnd(not_one, b_.CreateICmpNE(stride, product));
      raise_if(wrong, KernelError::NotCompact, t, axis, stride, product);
      return b_.CreateMul(product, size);
    });
  }

  void overlap(V output, V a_bytes, V other) {
    V a = data_of(output), b = data_of(other);
    V b_bytes = bytes_of(other);
    V a_in_b = b_.CreateICmpULT(b_.CreateSub(a, b), b_bytes);
    V b_in_a = b_.CreateICmpULT(b_.CreateSub(b, a), a_bytes);
    V a_has_bytes = b_.CreateIsNotNull(a_bytes), b_has_bytes = b_.CreateIsNotNull(b_bytes);
    V meet = b_.CreateAnd(b_.CreateOr(a_in_b, b_in_a), b_.CreateAnd(a_has_bytes, b_has_bytes));
    meet = b_.CreateAnd(meet, b_.CreateICmpNE(output, other));
    llvm::BasicBlock* meeting = block("meet");
    llvm::BasicBlock* after = block("apart");
    b_.CreateCondBr(meet, meeting, after);
    b_.SetInsertPoint(meeting);
    V shared = fold(zero(), word(description(), kDescribedPairs), zero(), [&](V i, V found) {
      V at = b_.CreateAdd(b_.CreateShl(i, 1), number(kDescriptionHead));
      V first = element(description(), at);
      V second = element(description(), b_.CreateAdd(at, number(1)));
      V is_output = b_.CreateICmpEQ(first, output), is_other = b_.CreateICmpEQ(second, other);
      V same = b_.CreateAnd(is_output, is_other);
      return b_.CreateOr(found, b_.CreateZExt(same, m_.i64));
    });
    V may_share = b_.CreateIsNotNull(shared);
    V allowed = b_.CreateAnd(may_share, b_.CreateICmpEQ(a, b));
    raise_if(b_.CreateNot(allowed), KernelError::Overlap, output, minus_one(), other, zero());
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  ModuleWriter& m_;
  llvm::Function* f_;
  Builder b_;
};

}  // namespace

void write_checks(ModuleWriter& m) {
  CheckWriter(m, m.check()).write();
  CheckWriter(m, m.refuse()).write_refuse();
}

}  // namespace tenon::codegen
