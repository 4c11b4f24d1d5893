// The packed entry of a kernel. Safety depends on it: the caller may be hostile bytecode, so
// everything that the body assumes is checked here, on every call.
//
//   count of arguments -> tags -> one word per tensor (dtype, rank, device, compact, writable)
//     -> sizes (symbols bound, the rest compared) -> data (null, alignment, overlap) -> body
//
// Each step combines its comparisons into one branch that is never taken in a correct program. If
// it is taken, `refuse` (refuse.cc) walks a description of the parameters, finds the problem and
// raises the error. A tensor's cached word may be read, since values from outside are rewrapped
// before they reach a register (object/tensor.h); it is exact, so no other check is needed.
#include <algorithm>

#include "codegen/llvm/entry_layout.h"
#include "codegen/llvm/lower.h"
#include "codegen/llvm/size.h"
#include "object/tensor.h"
#include "support/error.h"

namespace tenon::codegen {
namespace {

using vm::KernelError;

// A tensor parameter of the kernel.
struct Parameter {
  Parameter(const loop::Buffer* b, bool output, int32_t i)
      : buffer(b), is_output(output), index(i) {}
  const loop::Buffer* buffer;
  bool is_output;
  int32_t index;  // of the argument
  llvm::Value* tensor = nullptr;
  llvm::Value* shape = nullptr;
  std::vector<llvm::Value*> dims, expected;
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
    function_ =
        m_.function(m_.i32, {m_.pointer, m_.pointer, m_.i32, m_.pointer}, symbol_of(kernel_));
    runtime_ = function_->getArg(0);
    arguments_ = function_->getArg(1);
    b_.SetInsertPoint(llvm::BasicBlock::Create(m_.context, "entry", function_));
    refuse_ = block("refuse");
    count();
    tensors();
    integers();
    sizes();
    data();
    std::vector<llvm::Value*> values = {runtime_};
    for (const Parameter& p : parameters_) values.push_back(b_.CreateIntToPtr(p.data, m_.pointer));
    for (const std::string& symbol : kernel_symbols(kernel_)) values.push_back(symbols_.at(symbol));
    b_.CreateRet(b_.CreateCall(body, values));
    b_.SetInsertPoint(refuse_);
    call_refuse(llvm::ConstantPointerNull::get(m_.pointer));
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
    return at(type, arguments_, argument * kAnySize + kAnyPayload);
  }
  llvm::Value* tag(int32_t argument) { return at(m_.i32, arguments_, argument * kAnySize); }

  // Continues if `suspicious` is 0, otherwise branches to `refuse`.
  void refuse_unless_zero(llvm::Value* suspicious, llvm::BasicBlock* refuse) {
    if (auto* c = llvm::dyn_cast<llvm::Constant>(suspicious); c != nullptr && c->isNullValue())
      return;
    llvm::BasicBlock* good = block("good");
    b_.CreateCondBr(b_.CreateIsNotNull(suspicious), refuse, good, m_.unlikely());
    b_.SetInsertPoint(good);
  }
  void call_refuse(llvm::Value* sizes) {
    b_.CreateRet(b_.CreateCall(m_.refuse(), {runtime_, m_.text(kernel_.name), description(),
                                             arguments_, function_->getArg(2), sizes}));
  }

  void count() {
    const auto expected = static_cast<uint32_t>(parameters_.size() + kernel_.integers.size());
    refuse_unless_zero(b_.CreateXor(function_->getArg(2), b_.getInt32(expected)), refuse_);
  }

  uint64_t expected_word(const Parameter& p) const {
    return LayoutWord::of(p.buffer->dtype, static_cast<int32_t>(p.buffer->shape.size()), kDLCPU) |
           LayoutWord::kCompact;
  }

  void tensors() {
    llvm::Value* wrong = b_.getInt32(0);
    for (const Parameter& p : parameters_)
      wrong = b_.CreateOr(wrong, b_.CreateXor(tag(p.index), b_.getInt32(TypeIndex::Tensor)));
    refuse_unless_zero(wrong, refuse_);
    wrong = number(0);
    for (Parameter& p : parameters_) {
      p.tensor = payload(p.index, m_.pointer);
      const uint64_t mask =
          LayoutWord::kTypeMask | LayoutWord::kCompact | (p.is_output ? LayoutWord::kReadOnly : 0);
      llvm::Value* word = b_.CreateAnd(at(m_.i64, p.tensor, kLayout), b_.getInt64(mask));
      wrong = b_.CreateOr(wrong, b_.CreateXor(word, b_.getInt64(expected_word(p))));
    }
    refuse_unless_zero(wrong, refuse_);
  }

  void integers() {
    auto index = static_cast<int32_t>(parameters_.size());
    llvm::Value* wrong = number(0);
    for (const String& name : kernel_.integers) {
      llvm::Value* v = payload(index, m_.i64);
      llvm::Value* other = b_.CreateXor(tag(index), b_.getInt32(TypeIndex::Int));
      llvm::Value* no_integer = b_.CreateZExt(other, m_.i64);
      llvm::Value* negative = b_.CreateLShr(v, 63);
      wrong = b_.CreateOr(wrong, b_.CreateOr(no_integer, negative));
      symbols_[name.str()] = v;
      ++index;
    }
    refuse_unless_zero(wrong, refuse_);
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
      b_.CreateRet(m_.raise(b_, runtime_, kernel_, code, -1, -1, found, expected));
      b_.restoreIP(here);
      return failed;
    });
    // Sizes computed only by the body must not overflow either.
    for (const Dim& d : kernel_dims(kernel_)) dims.write(d);

    for (Parameter& p : parameters_) {
      for (size_t axis = 0; axis < p.dims.size(); ++axis) {
        const Dim& d = p.buffer->shape[axis];
        llvm::Value* expected = nullptr;
        if (auto known = d.as_const()) {
          expected = number(*known);
        } else {
          for (const auto& [computed, v] : expected_sizes_)
            if (computed == d) expected = v;
          if (expected == nullptr) {
            expected = dims.write(d);
            expected_sizes_.emplace_back(d, expected);
          }
        }
        p.expected.push_back(expected);
        if (expected != p.dims[axis])  // otherwise the symbol is bound here
          wrong_ = b_.CreateOr(wrong_, b_.CreateXor(p.dims[axis], expected));
      }
    }
  }

  void data() {
    for (Parameter& p : parameters_) {
      llvm::Value* start = at(m_.i64, p.tensor, kData);
      p.data = b_.CreateAdd(start, at(m_.i64, p.tensor, kByteOffset));
      const int64_t element = p.buffer->dtype.bytes();
      // From the expected sizes: tensors of the same shape share the product, and other sizes are
      // refused.
      p.bytes = number(element);
      for (llvm::Value* size : p.expected) p.bytes = b_.CreateMul(p.bytes, size);
      wrong_ = b_.CreateOr(wrong_, b_.CreateAnd(p.data, number(element - 1)));
      llvm::Value* null = b_.CreateIsNull(p.data);
      flag(b_.CreateAnd(null, b_.CreateIsNotNull(p.bytes)));
    }
    for (const Parameter& output : parameters_) {
      if (!output.is_output) continue;
      for (const Parameter& other : parameters_)
        if (&other != &output && !(other.is_output && other.index < output.index))
          flag(overlap(output, other));
    }
    llvm::BasicBlock* refuse = block("refuse.size");
    refuse_unless_zero(wrong_, refuse);
    auto here = b_.saveIP();
    b_.SetInsertPoint(refuse);
    llvm::Value* sizes = llvm::ConstantPointerNull::get(m_.pointer);
    if (!expected_sizes_.empty()) {
      Builder first(&function_->getEntryBlock(), function_->getEntryBlock().begin());
      sizes = first.CreateAlloca(llvm::ArrayType::get(m_.i64, expected_sizes_.size()));
      for (size_t i = 0; i < expected_sizes_.size(); ++i)
        b_.CreateStore(expected_sizes_[i].second, b_.CreateConstGEP1_64(m_.i64, sizes, i));
    }
    call_refuse(sizes);
    b_.restoreIP(here);
  }
  void flag(llvm::Value* condition) {
    wrong_ = b_.CreateOr(wrong_, b_.CreateZExt(condition, m_.i64));
  }

  bool may_share(const Parameter& output, const Parameter& other) const {
    const auto inputs = static_cast<int32_t>(kernel_.inputs.size());
    if (other.is_output || output.buffer->dtype.bytes() != other.buffer->dtype.bytes())
      return false;
    for (const auto& pair : kernel_.in_place)
      if (pair[0] == output.index - inputs && pair[1] == other.index) return true;
    return false;
  }

  // Two ranges are disjoint if each begins at or after the end of the other, modulo 2^64. An empty
  // range overlaps nothing.
  llvm::Value* overlap(const Parameter& a, const Parameter& b) {
    llvm::Value* a_in_b = b_.CreateICmpULT(b_.CreateSub(a.data, b.data), b.bytes);
    llvm::Value* b_in_a = b_.CreateICmpULT(b_.CreateSub(b.data, a.data), a.bytes);
    llvm::Value* meet = b_.CreateOr(a_in_b, b_in_a);
    llvm::Value* a_has_bytes = b_.CreateIsNotNull(a.bytes);
    llvm::Value* both = b_.CreateAnd(a_has_bytes, b_.CreateIsNotNull(b.bytes));
    meet = b_.CreateAnd(meet, both);
    return may_share(a, b) ? b_.CreateAnd(meet, b_.CreateICmpNE(a.data, b.data)) : meet;
  }

  // The parameters in the form that `refuse` reads: see entry_layout.h.
  llvm::Constant* description() {
    if (description_ != nullptr) return description_;
    size_t rank = 0;
    for (const Parameter& p : parameters_) rank = std::max(rank, p.buffer->shape.size());
    std::vector<uint64_t> pairs;
    for (const Parameter& output : parameters_)
      for (const Parameter& other : parameters_)
        if (output.is_output && may_share(output, other)) {
          pairs.push_back(static_cast<uint64_t>(output.index));
          pairs.push_back(static_cast<uint64_t>(other.index));
        }
    std::vector<uint64_t> words = {parameters_.size(), kernel_.inputs.size(),
                                   kernel_.integers.size(), kTensorWords + rank, pairs.size() / 2};
    words.insert(words.end(), pairs.begin(), pairs.end());
    for (const Parameter& p : parameters_) {
      words.push_back(expected_word(p));
      words.push_back(static_cast<uint64_t>(p.buffer->dtype.bytes()));
      for (size_t axis = 0; axis < rank; ++axis) {
        uint64_t size = 0;
        if (axis < p.buffer->shape.size()) {
          const Dim& d = p.buffer->shape[axis];
          if (auto known = d.as_const()) {
            size = static_cast<uint64_t>(*known);
          } else {
            auto it = std::find_if(expected_sizes_.begin(), expected_sizes_.end(),
                                   [&](const auto& s) { return s.first == d; });
            size = ~static_cast<uint64_t>(it - expected_sizes_.begin());
          }
        }
        words.push_back(size);
      }
    }
    llvm::Constant* data = llvm::ConstantDataArray::get(m_.context, words);
    description_ = m_.constant(data, "description");
    return description_;
  }

  ModuleWriter& m_;
  const loop::Kernel& kernel_;
  Builder b_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* refuse_ = nullptr;
  llvm::Value* runtime_ = nullptr;
  llvm::Value* arguments_ = nullptr;
  llvm::Value* wrong_ = b_.getInt64(0);
  llvm::Constant* description_ = nullptr;
  std::vector<Parameter> parameters_;
  std::map<std::string, llvm::Value*> symbols_;
  std::vector<std::pair<Dim, llvm::Value*>> expected_sizes_;  // symbolic sizes of parameters
};

}  // namespace

llvm::Function* write_entry(ModuleWriter& m, const loop::Kernel& kernel, llvm::Function* body) {
  return EntryWriter(m, kernel).write(body);
}

}  // namespace tenon::codegen
