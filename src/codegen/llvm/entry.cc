// The packed entry of a kernel. Safety depends on it: the caller may be hostile bytecode, so
// everything that the body assumes is checked here, on every call.
//
//   count of arguments -> tags -> one word per tensor (dtype, rank, device, compact, writable)
//     -> sizes (symbols bound, the rest compared) -> data (null, alignment, overlap) -> body
//
// Each step combines its comparisons into one branch that is never taken in a correct program. If
// it is taken, `refuse` (refuse.cc) walks a description of the parameters, finds the problem and
// raises the error. (An entry with many tensors calls `check`, which walks the description in any
// case.) A tensor's cached word may be read, since values from outside are rewrapped
// before they reach a register (object/tensor.h); it is exact, so no other check is needed.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "codegen/llvm/entry_layout.h"
#include "codegen/llvm/lower.h"
#include "codegen/llvm/size.h"
#include "loop/dim_hash.h"
#include "object/tensor.h"
#include "support/error.h"

namespace tenon::codegen {
namespace {

using vm::KernelError;

// A kernel with more tensors, different sizes, or outputs is checked in loops.
constexpr size_t kMaxInline = 64, kMaxInlineOutputs = 8;

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
  EntryWriter(ModuleWriter& m, const loop::Kernel& kernel, CodeSize& size)
      : m_(m), kernel_(kernel), size_(size), b_(m.context) {
    int32_t index = 0;
    for (const auto& buffer : kernel.inputs) parameters_.emplace_back(buffer.get(), false, index++);
    for (const auto& buffer : kernel.outputs) parameters_.emplace_back(buffer.get(), true, index++);
    for (const Parameter& p : parameters_)
      for (const Dim& d : p.buffer->shape)
        if (!d.is_const()) expected_sizes_.try_emplace(d, expected_sizes_.size());
    expected_values_.resize(expected_sizes_.size());
    is_wide_ = parameters_.size() > kMaxInline || expected_sizes_.size() > kMaxInline ||
               kernel.outputs.size() > kMaxInlineOutputs;
    const auto inputs = static_cast<int32_t>(kernel.inputs.size());
    for (const loop::InPlace& pair : kernel.in_place) {
      const Parameter& output = parameters_[static_cast<size_t>(pair.output() + inputs)];
      const Parameter& input = parameters_[static_cast<size_t>(pair.input())];
      may_share_.emplace(output.index, input.index);
    }
  }

  llvm::Function* write(llvm::Function* body) {
    function_ = m_.called_function<vm::KernelEntryFunction>(symbol_of(kernel_));
    runtime_ = function_->getArg(0);
    arguments_ = function_->getArg(1);
    b_.SetInsertPoint(llvm::BasicBlock::Create(m_.context, "entry", function_));
    const std::vector<std::string> symbols = kernel_symbols(kernel_);
    size_.add_parameters(parameters_.size() + kernel_.integers.size(), symbols.size());
    if (is_wide_) {
      check_in_loops();
    } else {
      check_inline();
    }
    std::vector<llvm::Value*> values = {runtime_};
    for (const Parameter& p : parameters_) values.push_back(b_.CreateIntToPtr(p.data, m_.pointer));
    for (const std::string& symbol : symbols) values.push_back(symbols_.at(symbol));
    b_.CreateRet(b_.CreateCall(body, values));
    return function_;
  }

 private:
  void check_inline() {
    refuse_ = block("refuse");
    count();
    tensors();
    integers();
    sizes();
    compare_sizes();
    data();
    auto here = b_.saveIP();
    b_.SetInsertPoint(refuse_);
    b_.CreateRet(call(m_.refuse(), no_sizes()));
    b_.restoreIP(here);
  }

  // Inline, the checks of many tensors would be one large block, in which LLVM takes more than
  // linear time, and those of overlap quadratic in length.
  void check_in_loops() {
    check(no_sizes());
    auto index = static_cast<int32_t>(parameters_.size());
    for (const String& name : kernel_.integers) symbols_[name.str()] = payload(index++, m_.i64);
    for (Parameter& p : parameters_) p.tensor = payload(p.index, m_.pointer);
    sizes();
    for (const Parameter& p : parameters_)
      for (const Dim& d : p.buffer->shape) expected_size(d);
    check(stored_sizes());
    for (Parameter& p : parameters_) p.data = data_of(p);
  }

  llvm::BasicBlock* block(const char* name) {
    size_.add_block();
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
  llvm::Value* call(llvm::Function* function, llvm::Value* sizes) {
    return b_.CreateCall(function, {runtime_, m_.text(kernel_.name), description(), arguments_,
                                    function_->getArg(2), sizes});
  }
  llvm::Value* no_sizes() { return llvm::ConstantPointerNull::get(m_.pointer); }
  // Continues if `check` finds nothing.
  void check(llvm::Value* sizes) {
    llvm::Value* code = call(m_.check(), sizes);
    llvm::BasicBlock* bad = block("bad");
    llvm::BasicBlock* good = block("good");
    b_.CreateCondBr(b_.CreateIsNotNull(code), bad, good, m_.unlikely());
    b_.SetInsertPoint(bad);
    b_.CreateRet(code);
    b_.SetInsertPoint(good);
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

  // Binds symbols and computes sizes.
  void sizes() {
    for (Parameter& p : parameters_) {
      const size_t rank = p.buffer->shape.size();
      if (rank == 0) continue;
      p.shape = at(m_.pointer, p.tensor, kShape);
      for (size_t axis = 0; axis < rank; ++axis) {
        const Dim& d = p.buffer->shape[axis];
        const bool is_symbol = d.kind() == DimKind::kSymbol;
        if (is_wide_ && !(is_symbol && !symbols_.contains(d.node().name.str()))) continue;
        llvm::Value* size = at(m_.i64, p.shape, static_cast<int64_t>(8 * axis));
        p.dims.push_back(size);
        if (is_symbol) symbols_.try_emplace(d.node().name.str(), size);
      }
    }
    // Sizes computed only by the body must not overflow either.
    for (const Dim& d : kernel_dims(kernel_)) dims_.write(d);
  }

  llvm::Value* symbol(std::string_view name) {
    auto it = symbols_.find(std::string(name));
    TENON_ASSERT(it != symbols_.end(), "kernel '", kernel_.name, "' doesn't bind symbol '", name,
                 "'");
    return it->second;
  }

  llvm::BasicBlock* size_failure(KernelError code, llvm::Value* found, llvm::Value* expected) {
    if (code == KernelError::Overflow && overflow_ != nullptr) return overflow_;
    llvm::BasicBlock* failed = block("size");
    if (code == KernelError::Overflow) overflow_ = failed;
    auto here = b_.saveIP();
    b_.SetInsertPoint(failed);
    b_.CreateRet(m_.raise(b_, runtime_, kernel_, code, -1, -1, found, expected));
    b_.restoreIP(here);
    return failed;
  }

  // What a parameter's size must be; computed once if it isn't constant.
  llvm::Value* expected_size(const Dim& d) {
    if (auto known = d.as_const()) return number(*known);
    llvm::Value*& value = expected_values_[expected_sizes_.at(d)];
    if (value == nullptr) value = dims_.write(d);
    return value;
  }

  void compare_sizes() {
    for (Parameter& p : parameters_) {
      for (size_t axis = 0; axis < p.dims.size(); ++axis) {
        llvm::Value* expected = expected_size(p.buffer->shape[axis]);
        p.expected.push_back(expected);
        if (expected != p.dims[axis])  // otherwise the symbol is bound here
          wrong_ = b_.CreateOr(wrong_, b_.CreateXor(p.dims[axis], expected));
      }
    }
  }

  llvm::Value* data_of(const Parameter& p) {
    llvm::Value* start = at(m_.i64, p.tensor, kData);
    return b_.CreateAdd(start, at(m_.i64, p.tensor, kByteOffset));
  }

  void data() {
    for (Parameter& p : parameters_) {
      p.data = data_of(p);
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
    b_.CreateRet(call(m_.refuse(), stored_sizes()));
    b_.restoreIP(here);
  }

  // The address of the symbolic sizes of parameters, in the order of `expected_sizes_`.
  llvm::Value* stored_sizes() {
    Builder first(&function_->getEntryBlock(), function_->getEntryBlock().begin());
    const size_t count = std::max<size_t>(expected_values_.size(), 1);
    llvm::Value* sizes = first.CreateAlloca(llvm::ArrayType::get(m_.i64, count));
    for (size_t i = 0; i < expected_values_.size(); ++i)
      b_.CreateStore(expected_values_[i], b_.CreateConstGEP1_64(m_.i64, sizes, i));
    return sizes;
  }

  void flag(llvm::Value* condition) {
    wrong_ = b_.CreateOr(wrong_, b_.CreateZExt(condition, m_.i64));
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
    return may_share_.contains({a.index, b.index})
               ? b_.CreateAnd(meet, b_.CreateICmpNE(a.data, b.data))
               : meet;
  }

  // The parameters in the form that `refuse` reads: see entry_layout.h.
  llvm::Constant* description() {
    if (description_ != nullptr) return description_;
    size_t rank = 0;
    for (const Parameter& p : parameters_) rank = std::max(rank, p.buffer->shape.size());
    std::vector<uint64_t> words = {parameters_.size(), kernel_.inputs.size(),
                                   kernel_.integers.size(), kTensorWords + rank, may_share_.size()};
    for (const auto& [output, input] : may_share_) {
      words.push_back(static_cast<uint64_t>(output));
      words.push_back(static_cast<uint64_t>(input));
    }
    for (const Parameter& p : parameters_) {
      words.push_back(expected_word(p));
      words.push_back(static_cast<uint64_t>(p.buffer->dtype.bytes()));
      for (size_t axis = 0; axis < rank; ++axis) {
        uint64_t size = 0;
        if (axis < p.buffer->shape.size()) {
          const Dim& d = p.buffer->shape[axis];
          const auto known = d.as_const();
          size = known ? static_cast<uint64_t>(*known) : ~expected_sizes_.at(d);
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
  CodeSize& size_;
  Builder b_;
  bool is_wide_ = false;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* refuse_ = nullptr;
  llvm::Value* runtime_ = nullptr;
  llvm::Value* arguments_ = nullptr;
  llvm::Value* wrong_ = b_.getInt64(0);
  llvm::Constant* description_ = nullptr;
  std::vector<Parameter> parameters_;
  std::map<std::string, llvm::Value*> symbols_;
  llvm::BasicBlock* overflow_ = nullptr;
  std::set<std::pair<int32_t, int32_t>> may_share_;  // an output and the input whose place it takes
  // The symbolic sizes of parameters, and their values once they are written.
  std::unordered_map<Dim, uint64_t, DimHash> expected_sizes_;
  std::vector<llvm::Value*> expected_values_;
  DimWriter dims_{b_, size_, [this](std::string_view name) { return symbol(name); },
                  [this](KernelError code, llvm::Value* found, llvm::Value* expected) {
                    return size_failure(code, found, expected);
                  }};
};

}  // namespace

llvm::Function* write_entry(ModuleWriter& m, const loop::Kernel& kernel, llvm::Function* body,
                            CodeSize& size) {
  return EntryWriter(m, kernel, size).write(body);
}

}  // namespace tenon::codegen
