// Kernels: loop nests over buffers, which the back end translates to machine code.
#pragma once

#include "loop/compute.h"

namespace tenon::loop {

enum class StmtKind : uint8_t { kSeq, kFor, kStore, kPrefetch, kIf, kLet, kAlloc };

struct Stmt : Object {
  const StmtKind kind;  // which of the structs below this is

  TENON_BASE_TYPE(TypeIndex::LoopStmt, TypeIndex::LoopStmtLast);

 protected:
  explicit Stmt(StmtKind which) : kind(which) {}
};
using StmtRef = Ref<const Stmt>;

struct Seq : Stmt {
  Seq() : Stmt(StmtKind::kSeq) {}
  Array<StmtRef> body;
  TENON_TYPE(TypeIndex::LoopSeq);
};

enum class ForKind : uint8_t {
  kSerial,
  kParallel,  // iterations are independent; in no loops but serial ones
  // Constant extent, a power of two; the body is emitted as vector operations. Accesses should be
  // `uniform + var` (contiguous) or independent of var (uniform); an If or Select with a condition
  // that depends on var masks what it guards. Contains no loops except kUnrolled ones.
  kVector,
  kUnrolled,  // constant extent
  kMatrix,    // constant extent: one of the loops of loop/byte_matrix.h
};
// The names in text.
inline constexpr const char* kForNames[] = {"for", "parallel", "vector", "unrolled", "matrix"};
static_assert(std::size(kForNames) == static_cast<size_t>(ForKind::kMatrix) + 1);

// for var in [begin, begin + extent)
struct For : Stmt {
  For() : Stmt(StmtKind::kFor) {}
  Ref<const Var> var;
  ExprRef begin, extent;  // i64
  ForKind loop = ForKind::kSerial;
  StmtRef body;
  TENON_TYPE(TypeIndex::LoopFor);
};

// buffer[indices] = value; indices as in Load.
struct Store : Stmt {
  Store() : Stmt(StmtKind::kStore) {}
  Ref<const Buffer> buffer;
  Array<ExprRef> indices;
  ExprRef value;
  TENON_TYPE(TypeIndex::LoopStore);
};

// A hint to bring buffer[indices] into the second-level cache. Nothing is read, so the element may
// be outside the buffer. Indices have no loads and can't fail. Without effect in a kernel that
// isn't in bounds.
struct Prefetch : Stmt {
  Prefetch() : Stmt(StmtKind::kPrefetch) {}
  Ref<const Buffer> buffer;
  Array<ExprRef> indices;
  TENON_TYPE(TypeIndex::LoopPrefetch);
};

struct If : Stmt {
  If() : Stmt(StmtKind::kIf) {}
  ExprRef condition;
  StmtRef then_body;
  StmtRef else_body;  // may be null
  TENON_TYPE(TypeIndex::LoopIf);
};

// Binds a variable to a scalar for the statements of `body`.
struct Let : Stmt {
  Let() : Stmt(StmtKind::kLet) {}
  Ref<const Var> var;
  ExprRef value;
  StmtRef body;
  TENON_TYPE(TypeIndex::LoopLet);
};

// Scratch storage that lives during `body`: registers or the stack if small and constant, otherwise
// workspace from the runtime.
struct Alloc : Stmt {
  Alloc() : Stmt(StmtKind::kAlloc) {}
  Ref<const Buffer> buffer;
  StmtRef body;
  TENON_TYPE(TypeIndex::LoopAlloc);
};

struct Kernel : KernelInterface {
  String name;
  StmtRef body;
  TENON_TYPE(TypeIndex::LoopKernel);
};
using KernelRef = Ref<const Kernel>;

// Constructors. A null or empty statement is an empty Seq.
StmtRef seq(std::vector<StmtRef> body);  // nested Seqs are flattened
StmtRef for_loop(
    const Ref<const Var>& v, const ExprRef& begin, const ExprRef& extent, ForKind loop,
    const StmtRef& body);  // empty if the body is empty or the extent is 0; a Let for extent 1
StmtRef store(const Ref<const Buffer>& buffer, Array<ExprRef> indices, const ExprRef& value);
StmtRef prefetch(const Ref<const Buffer>& buffer, Array<ExprRef> indices);
StmtRef if_then(const ExprRef& condition, const StmtRef& then_body, const StmtRef& else_body = {});
StmtRef let(const Ref<const Var>& v, const ExprRef& value, const StmtRef& body);
StmtRef alloc(const Ref<const Buffer>& buffer, const StmtRef& body);
bool is_empty(const StmtRef& s);

// The kernel with another name.
KernelRef renamed(const Kernel& kernel, std::string_view name);

// Throws an Internal error with the statement that breaks a rule: variables and buffers are in
// scope and bound once, symbols are bound by parameters, index counts and dtypes match, vector and
// unrolled loops have constant extents, a parallel loop is in serial ones only, inputs aren't
// written, a prefetch can't fail.
void check(const Kernel& kernel);
std::string to_text(const Kernel& kernel);

}  // namespace tenon::loop
