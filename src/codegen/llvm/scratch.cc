#include "codegen/llvm/scratch.h"

#include <algorithm>
#include <optional>

#include "loop/cost.h"
#include "loop/walk.h"

namespace tenon::codegen {

namespace {

// Half of vm::kKernelStack leaves room for spilled registers.
constexpr int64_t kStackPerBuffer = 16 << 10, kStackPerKernel = vm::kKernelStack / 2;
// Clearing is inlined, since a kernel object can't import memset.
constexpr int64_t kClearedPerBuffer = 2 << 10;
constexpr int64_t kAlignment = 64;

using Buffers = std::vector<const loop::Buffer*>;
using Addresses = std::unordered_map<const loop::Buffer*, llvm::Value*>;

// Without duplicates, in statement order.
Buffers allocated(const loop::StmtRef& body) {
  Buffers buffers;
  std::unordered_set<const loop::Buffer*> seen;
  std::vector<loop::StmtRef> pending = {body};
  while (!pending.empty()) {
    const loop::StmtRef s = std::move(pending.back());
    pending.pop_back();
    if (s->kind == loop::StmtKind::kFor &&
        static_cast<const loop::For&>(*s).loop == loop::ForKind::kParallel)
      continue;
    if (s->kind == loop::StmtKind::kAlloc) {
      const loop::Buffer* buffer = static_cast<const loop::Alloc&>(*s).buffer.get();
      if (seen.insert(buffer).second) buffers.push_back(buffer);
    }
    const std::vector<loop::StmtRef> below = loop::direct_bodies(*s);
    pending.insert(pending.end(), below.rbegin(), below.rend());
  }
  return buffers;
}

// The size of a buffer in bytes if it may be on the stack.
std::optional<int64_t> small_size(const loop::Buffer& buffer, unsigned lanes) {
  int64_t bytes = buffer.dtype.bytes() * lanes;
  for (const Dim& d : buffer.shape) {
    const auto extent = d.as_const();
    if (!extent || *extent < 0 || (*extent > 0 && bytes > kStackPerBuffer / *extent))
      return std::nullopt;
    bytes *= *extent;
  }
  if (bytes > kStackPerBuffer) return std::nullopt;
  return bytes;
}

// Computes the total workspace of buffers and requests it from the runtime.
class Workspace {
 public:
  Workspace(FunctionWriter& f, const Facts& facts)
      : f_(f), facts_(facts), r_(new_block("reserve")) {
    overflow_ = r_.getFalse();
  }

  void reserve(const Buffers& buffers, Addresses* addresses) {
    llvm::BasicBlock* first = r_.GetInsertBlock();
    llvm::Value* total = r_.getInt64(0);
    std::vector<llvm::Value*> offsets;
    for (const loop::Buffer* buffer : buffers) {
      offsets.push_back(total);
      total = checked(llvm::Intrinsic::uadd_with_overflow, total, aligned_bytes(*buffer));
    }
    llvm::BasicBlock* too_large = new_block("too.large");
    llvm::BasicBlock* ask = new_block("ask");
    llvm::BasicBlock* refused = new_block("refused");
    ModuleWriter& m = f_.m;
    llvm::Value* runtime = f_.env.runtime;
    r_.CreateCondBr(overflow_, too_large, ask, m.unlikely());
    r_.SetInsertPoint(too_large);
    r_.CreateRet(m.raise(r_, runtime, f_.kernel, vm::KernelError::Overflow, -1, -1, r_.getInt64(0),
                         r_.getInt64(0)));
    r_.SetInsertPoint(ask);
    llvm::Value* workspace =
        m.call(r_, runtime, &vm::KernelRuntime::allocate, m.text(f_.kernel.name), total);
    for (size_t i = 0; i < buffers.size(); ++i)
      (*addresses)[buffers[i]] = r_.CreateGEP(m.i8, workspace, offsets[i]);
    r_.CreateCondBr(r_.CreateIsNull(workspace), refused, f_.start, m.unlikely());
    r_.SetInsertPoint(refused);
    r_.CreateRet(r_.getInt32(static_cast<uint32_t>(-1)));  // the runtime has set the error
    f_.use_workspace(first, workspace);
  }

 private:
  llvm::BasicBlock* new_block(const char* name) {
    return llvm::BasicBlock::Create(f_.m.context, name, f_.start->getParent(), f_.start);
  }

  llvm::Value* checked(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* b) {
    llvm::Value* pair = r_.CreateBinaryIntrinsic(id, a, b);
    overflow_ = r_.CreateOr(overflow_, r_.CreateExtractValue(pair, 1));
    return r_.CreateExtractValue(pair, 0);
  }

  llvm::Value* aligned_bytes(const loop::Buffer& buffer) {
    llvm::Value* bytes =
        r_.getInt64(static_cast<uint64_t>(buffer.dtype.bytes() * facts_.lanes_of(buffer)));
    for (const Dim& d : buffer.shape) {
      f_.size.add_cost(loop::kSimpleCost);
      llvm::Value* extent = f_.dim(d);
      overflow_ = r_.CreateOr(overflow_, r_.CreateICmpSLT(extent, r_.getInt64(0)));
      bytes = checked(llvm::Intrinsic::umul_with_overflow, bytes, extent);
    }
    bytes = checked(llvm::Intrinsic::uadd_with_overflow, bytes, r_.getInt64(kAlignment - 1));
    return r_.CreateAnd(bytes, r_.getInt64(static_cast<uint64_t>(-kAlignment)));
  }

  FunctionWriter& f_;
  const Facts& facts_;
  Builder r_;
  llvm::Value* overflow_ = nullptr;  // an i1: whether some size so far overflows
};

}  // namespace

Addresses reserve_scratch(FunctionWriter& f, const Facts& facts, const loop::StmtRef& body) {
  Addresses addresses;
  Buffers large;
  const int64_t most = f.m.clear_scratch ? kClearedPerBuffer : kStackPerBuffer;
  for (const loop::Buffer* buffer : allocated(body)) {
    const auto bytes = small_size(*buffer, facts.lanes_of(*buffer));
    if (bytes && *bytes <= most && f.stack_bytes + *bytes <= kStackPerKernel) {
      f.stack_bytes += *bytes;
      const int64_t aligned = std::max((*bytes + kAlignment - 1) & -kAlignment, kAlignment);
      llvm::Value* slot =
          f.stack_slot(f.m.i8, static_cast<uint64_t>(aligned), static_cast<uint64_t>(kAlignment));
      addresses[buffer] = slot;
      // What is behind the elements is always cleared: a vector that holds the last ones is read
      // as a whole, and the time of a division by what it finds there would depend on it.
      const int64_t from = f.m.clear_scratch ? 0 : *bytes;
      if (from < aligned) {
        f.entry.CreateMemSetInline(
            f.entry.CreateConstGEP1_64(f.m.i8, slot, static_cast<uint64_t>(from)),
            llvm::MaybeAlign(), f.entry.getInt8(0),
            f.entry.getInt64(static_cast<uint64_t>(aligned - from)));
      }
    } else {
      large.push_back(buffer);
    }
  }
  if (!large.empty()) Workspace(f, facts).reserve(large, &addresses);
  return addresses;
}

}  // namespace tenon::codegen
