// The translation of one kernel into LLVM IR functions: what its files share.
//
//   emit.cc         the module: attributes, passes, object file, table
//   entry.cc        the packed entry, which checks every argument; refuse.cc, which says what's
//   wrong size.cc         sizes: expressions of symbols statement.cc    the body: loops, stores,
//   storage (BodyWriter) task.cc         its scratch memory, and parallel loops, whose tasks are
//   functions of their own expression.cc   scalar expressions, one element or one vector of lanes
//   at a time math*.cc        the mathematical functions
//
// A body is `i32 (runtime*, buffer pointers..., symbols as i64...)`; 0, or what raise returned.
// Private to this folder: it shows LLVM types.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/llvm/math.h"
#include "codegen/llvm/target.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "loop/kernel.h"
#include "vm/executable/kernel_abi.h"

namespace tenon::codegen {

struct ModuleWriter {
  ModuleWriter(llvm::Module& m, const Target& t);

  llvm::Module& module;
  llvm::LLVMContext& context;
  const Target& target;
  Math math;
  llvm::IntegerType *i1, *i8, *i16, *i32, *i64;
  llvm::PointerType* pointer;
  llvm::FunctionType *raise_type, *parallel_for_type, *allocate_type, *release_type;

  void prepare(llvm::Function* function) const;  // target and other attributes
  llvm::Function* function(llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters,
                           const std::string& name);
  llvm::Constant* text(std::string_view text);  // nul-terminated, shared
  llvm::Value* field(Builder& b, llvm::Type* type, llvm::Value* base, int64_t offset) const;
  // The runtime's function at an offset of KernelRuntime.
  llvm::Value* runtime_function(Builder& b, llvm::Value* runtime, size_t offset) const;
  // raise(...): an i32, never 0.
  llvm::Value* raise(Builder& b, llvm::Value* runtime, const loop::Kernel& kernel,
                     vm::KernelError code, int32_t argument, int32_t axis, llvm::Value* found,
                     llvm::Value* expected);
  llvm::MDNode* unlikely() const {
    return llvm::MDBuilder(context).createBranchWeights(1, 1 << 20);
  }
  // A private constant; equal ones may share an address.
  llvm::GlobalVariable* constant(llvm::Constant* data, const char* name);
  llvm::Function* refuse();  // declared here, written by write_refuse

 private:
  std::map<std::string, llvm::Constant*, std::less<>> texts_;
};

// The integer parameters of a kernel's body: the symbols that its parameters' shapes bind, in the
// order of first appearance, then its integers.
std::vector<std::string> kernel_symbols(const loop::Kernel& kernel);
// Every size that the kernel's body computes, each once.
std::vector<Dim> kernel_dims(const loop::Kernel& kernel);

// Throws Error (Unsupported) for a kernel whose expressions are nested deeper than the native stack
// can take: everything below walks them on it. `let` counts: what is known of a variable is asked
// of its value.
void check_nesting(const loop::Kernel& kernel);

// Writes `i32 NAME(void* runtime, const Any* args, i32 n, Any* result)` around a body.
llvm::Function* write_entry(ModuleWriter& m, const loop::Kernel& kernel, llvm::Function* body);
void write_refuse(ModuleWriter& m);
// A name for its functions that LLVM does not take for one of its own, which begin with "llvm.".
std::string symbol_of(const loop::Kernel& kernel);
llvm::Function* write_body(ModuleWriter& m, const loop::Kernel& kernel);
// The statements directly within one.
void for_children(const loop::Stmt& s, const std::function<void(const loop::Stmt&)>& f);

// Emits sizes. With `on_failure`, a result that overflows, a division by 0 or a broadcast of
// unequal sizes branches to the block that it returns; without, arithmetic wraps and a division by
// 0 gives 0.
class DimWriter {
 public:
  using OnFailure = std::function<llvm::BasicBlock*(vm::KernelError code, llvm::Value* found,
                                                    llvm::Value* expected)>;
  DimWriter(Builder& b, std::function<llvm::Value*(std::string_view)> symbol,
            OnFailure on_failure = nullptr)
      : b_(b), symbol_(std::move(symbol)), on_failure_(std::move(on_failure)) {}
  llvm::Value* write(const Dim& d) { return write(d.node()); }

 private:
  llvm::Value* write(const DimNode& d);
  llvm::Value* checked(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* b);
  void fail_if(llvm::Value* condition, vm::KernelError code, llvm::Value* found,
               llvm::Value* expected);
  llvm::Value* floor_division(llvm::Value* a, llvm::Value* b, bool remainder);

  Builder& b_;
  std::function<llvm::Value*(std::string_view)> symbol_;
  OnFailure on_failure_;
};

// A buffer as a body sees it.
struct Place {
  llvm::Value* data = nullptr;
  // Scratch inside a vector loop holds `lanes` values per element, one per lane; else 1.
  unsigned lanes = 1;
};

// A scalar, or one per lane of the vector loop.
struct Value {
  llvm::Value* v = nullptr;
  bool lanes = false;
};

// One function's worth of statements: a kernel's body, or a task of a parallel loop in it.
class BodyWriter {
 public:
  // Writes all of `function`, which has a body's parameters.
  static void write_body(ModuleWriter& m, const loop::Kernel& kernel, llvm::Function* function);

 private:
  BodyWriter(ModuleWriter& m, const loop::Kernel& kernel, llvm::Function* function);

  // ---- statement.cc
  void finish();  // the function's end
  void statement(const loop::Stmt& s);
  void write(const loop::Stmt& s);
  void for_loop(const loop::For& loop);
  void count(llvm::Value* begin, llvm::Value* extent, const loop::For& loop);
  void unrolled_loop(const loop::For& loop, int64_t extent);
  void vector_loop(const loop::For& loop, int64_t extent);
  bool can_vectorise(const loop::Stmt& s, bool masked);
  void store(const loop::Store& s);
  void if_statement(const loop::If& s);
  void let(const loop::Let& s);
  void alloc(const loop::Alloc& s);
  llvm::AllocaInst* stack_slot(llvm::Type* type, uint64_t count, uint64_t alignment);
  void return_code(llvm::Value* code);  // ends the block: releases scratch and returns
  void stop_if(llvm::Value* condition, vm::KernelError code, llvm::Value* found,
               llvm::Value* expected, int32_t argument = -1, int32_t axis = -1);
  llvm::BasicBlock* block(const char* name);
  void annotate(llvm::Instruction* access, const loop::Buffer& buffer);

  // ---- task.cc
  void separate_buffers();  // alias scopes
  void reserve_scratch(const loop::Stmt& body);
  void parallel_loop(const loop::For& loop);
  llvm::Value* work_of(const loop::Stmt& s);
  llvm::Value* size_or_guess(const loop::Expr& extent);
  std::unordered_map<const loop::Var*, llvm::Value*> guesses_;  // of variables, as in a first turn

  // ---- expression.cc
  Value evaluate(const loop::ExprRef& e);  // a root: nothing is remembered past it
  Value value(const loop::Expr& e);
  Value compute(const loop::Expr& e);
  Value load(const loop::Load& e);
  Value unary(const loop::Unary& e);
  Value binary(const loop::Binary& e);
  Value select(const loop::Select& e);
  Value cast(const loop::Cast& e);
  Value checked_index(const loop::CheckedIndex& e);
  Value literal(const loop::Literal& e);
  Value guarded_by_lanes(const loop::Expr& e);  // a uniform that may fail, under a mask
  llvm::Value* scalar_select(const loop::Select& e, llvm::Value* condition);
  llvm::Value* integer_binary(const loop::Binary& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* integer_division(const loop::Binary& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* float_binary(const loop::Binary& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* convert(llvm::Value* v, DataType from, DataType to);
  llvm::Value* rounded(llvm::Value* v, DataType t);  // to a 16-bit float's values
  llvm::Value* broadcast(Value v);
  llvm::Value* per_lane(llvm::ArrayRef<llvm::Value*> operands,
                        const std::function<llvm::Value*(llvm::ArrayRef<llvm::Value*>)>& f);
  llvm::Value* all_lanes(llvm::Value* scalar);
  llvm::Value* mask_and(llvm::Value* condition);
  llvm::Value* active(llvm::Value* lanes);  // of a failure: only where the mask is set

  // The value of memory: loads and stores of `width` elements (1: a scalar).
  llvm::Type* register_type(DataType t) const;
  llvm::Type* memory_type(DataType t) const;
  llvm::Value* from_memory(llvm::Value* v, DataType t);
  llvm::Value* to_memory(llvm::Value* v, DataType t);

  // Where an access lands: its element offset, as a scalar plus stride * lane where that is known.
  struct Address {
    llvm::Value* offset = nullptr;  // of lane 0 when `stride`; else one per lane
    std::optional<int64_t> stride;
  };
  Address address(const loop::Buffer& buffer, const Array<loop::ExprRef>& indices);
  Value checked_access(const loop::Expr& index, const loop::Buffer& buffer, int32_t axis);
  int32_t argument_of(const loop::Buffer& buffer) const;
  llvm::Value* count_of(const loop::Buffer& buffer);
  llvm::Value* read_value(llvm::Instruction* read, const loop::Buffer& buffer);
  llvm::Value* element_address(llvm::Type* element, llvm::Value* data, llvm::Value* offset);
  bool varies(const loop::Expr& e);    // by lane
  bool can_fail(const loop::Expr& e);  // loads, or stops the kernel
  bool nonnegative(const loop::Expr& e);
  bool find_nonnegative(const loop::Expr& e);
  std::optional<int64_t> lane_stride(const loop::Expr& e);
  std::optional<int64_t> find_lane_stride(const loop::Expr& e);
  int64_t first_lane_multiple(const loop::Expr& e, int levels = 8);
  llvm::Value* first_lane(const loop::Expr& e);
  llvm::Value* dim(const Dim& d);

  ModuleWriter& m_;
  const loop::Kernel& kernel_;
  llvm::Function* function_;
  Builder entry_;  // the function's first block: stack slots, sizes
  Builder b_;
  llvm::Value* runtime_ = nullptr;
  llvm::BasicBlock* exit_ = nullptr;
  llvm::PHINode* exit_code_ = nullptr;
  llvm::BasicBlock* reserve_ = nullptr;  // asks for workspace, after entry_
  llvm::BasicBlock* start_ = nullptr;    // where b_ begins
  std::vector<const loop::Stmt*> enclosing_;

  std::map<std::string, llvm::Value*, std::less<>> symbols_;
  std::unordered_map<const DimNode*, llvm::Value*> dims_;
  std::unordered_map<const loop::Buffer*, Place> places_;
  std::unordered_map<const loop::Buffer*, llvm::MDNode*> scopes_;    // {buffer}
  std::unordered_map<const loop::Buffer*, llvm::MDNode*> no_alias_;  // every other
  std::unordered_map<const loop::Var*, Value> vars_;
  std::unordered_map<const loop::Var*, const loop::Expr*> let_values_;
  std::unordered_map<const loop::Var*, llvm::Value*> let_first_lanes_;
  std::unordered_set<const loop::Var*> nonnegative_vars_;
  llvm::Value* workspace_ = nullptr;
  std::unordered_map<const loop::Buffer*, Place> scratch_;  // reserved, by reserve_scratch
  bool is_task_ = false;
  bool is_scheduled_ = false;  // has vector or unrolled loops: LLVM is not to make its own
  int64_t copies_ = 1;         // of what is being written, by unrolled loops around it

  // The vector loop being written.
  const loop::Var* lane_var_ = nullptr;
  llvm::Value* lane_begin_ = nullptr;
  int64_t lane_begin_multiple_ = 0;
  unsigned width_ = 1;
  llvm::Value* mask_ = nullptr;  // null: every lane
  std::unordered_map<const loop::Expr*, bool> varies_;
  std::unordered_map<const loop::Expr*, std::optional<int64_t>> lane_strides_;

  // Values of shared nodes, innermost block last.
  std::vector<std::unordered_map<const loop::Expr*, Value>> memo_;
  std::unordered_map<const loop::Expr*, bool> can_fail_, nonnegative_;
};

}  // namespace tenon::codegen
