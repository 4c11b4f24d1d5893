// The LLVM function being written, either a kernel's body or a parallel loop's task, and the
// services that all parts of the translation use: blocks, sizes, stack slots, lanes, and stopping
// with an error.
//
//   entry     stack slots and sizes, which all later code may use
//   reserve   requests workspace (scratch.cc); only if needed
//   start...  the statements
//   exit      releases the workspace and returns the code: 0, or what raise returned
//
// Private to this folder: it exposes LLVM types.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>

#include "codegen/llvm/code_size.h"
#include "codegen/llvm/lower.h"
#include "codegen/llvm/size.h"

namespace tenon::codegen {

// A scalar, or a vector with one element per lane of the vector loop.
struct Value {
  llvm::Value* v = nullptr;
  bool lanes = false;
};

struct Variable {
  Value value;
  // The value in lane 0, for a variable whose lanes have known offsets.
  llvm::Value* first_lane = nullptr;
};

// The values in scope. A task starts with a copy of its caller's Env, in which parallel.cc replaces
// each value by one that the task reads from its context.
struct Env {
  llvm::Value* runtime = nullptr;                                // the KernelRuntime*
  std::map<std::string, llvm::Value*, std::less<>> symbols;      // i64
  std::unordered_map<const loop::Buffer*, llvm::Value*> places;  // addresses of first elements
  std::unordered_map<const loop::Var*, Variable> vars;
};

// The lanes of the vector loop being written.
struct Lanes {
  unsigned width = 1;           // 1 outside vector loops
  llvm::Value* mask = nullptr;  // the active lanes, one i1 each; null if all are active
};

struct FunctionWriter {
  // `function` must be empty.
  FunctionWriter(ModuleWriter& m, const loop::Kernel& kernel, CodeSize& size,
                 llvm::Function* function);
  // Ends the function, which returns 0 from the current position of `b`.
  void finish();

  // A new block, which counts in `size`.
  llvm::BasicBlock* block(const char* name);
  // Counts an expression that is about to be written in `size`.
  void count_cost(const loop::Expr& e);
  // Throws Error (Unsupported) if the slots alone exceed vm::kKernelStack: LLVM takes long for
  // functions with very many.
  llvm::AllocaInst* stack_slot(llvm::Type* type, uint64_t count, uint64_t alignment);
  llvm::Value* dim(const Dim& d);  // i64, computed once, in `entry`
  // Inserts the block `reserve` between `entry` and `start`, to which it must branch; the exit
  // releases `workspace`.
  void use_workspace(llvm::BasicBlock* reserve, llvm::Value* workspace);

  // Ends the block with a jump to the exit, returning an i32.
  void return_code(llvm::Value* code);
  // Stops the kernel with an error if `condition` holds. The condition is an i1, or one i1 per
  // lane; then only active lanes count, `found` has one value per lane, and the first failing
  // lane's value is reported. `found` and `expected` are i64s; null means 0.
  void stop_if(llvm::Value* condition, vm::KernelError code, llvm::Value* found,
               llvm::Value* expected, int32_t argument = -1, int32_t axis = -1);

  bool in_lanes() const { return lanes.width > 1; }
  llvm::Value* all_lanes(llvm::Value* scalar);  // as a vector
  llvm::Value* broadcast(Value v) { return v.lanes ? v.v : all_lanes(v.v); }
  llvm::Value* lane_numbers();                    // 0, 1, 2...: i64s
  llvm::Value* mask_and(llvm::Value* condition);  // condition: one i1 per lane

  ModuleWriter& m;
  const loop::Kernel& kernel;
  CodeSize& size;
  Builder entry;
  Builder b;  // the current position
  llvm::BasicBlock* start;
  Env env;
  Lanes lanes;
  // Where the shapes of the registers that hold matrices are, while they have some (matrix.cc).
  llvm::Value* matrix_shapes = nullptr;
  int64_t stack_bytes = 0;  // of buffers on the stack, here and in the functions around a task

 private:
  llvm::Value* symbol(std::string_view name) const;
  llvm::Function* function_;
  llvm::BasicBlock* exit_;
  llvm::PHINode* exit_code_;
  llvm::BasicBlock* reserve_ = nullptr;
  llvm::Value* workspace_ = nullptr;
  uint64_t slot_bytes_ = 0;
  int64_t blocks_ = 0, sizes_ = 0;
  std::unordered_map<const DimNode*, llvm::Value*> dims_;
  DimWriter dim_writer_{entry, size, [this](std::string_view name) { return symbol(name); }};
};

// Gives the registers that hold matrices the shapes of `f.matrix_shapes`, and takes their shapes
// and content (matrix.cc).
void load_matrix_shapes(FunctionWriter& f);
void release_matrices(FunctionWriter& f);

}  // namespace tenon::codegen
