// The statements of a function: loops, stores, choices, variables and storage; parallel loops are
// in parallel.cc. Private to this folder: it exposes LLVM types.
#pragma once

#include <unordered_map>
#include <vector>

#include "codegen/llvm/alias.h"
#include "codegen/llvm/expression.h"
#include "codegen/llvm/facts.h"
#include "codegen/llvm/function.h"
#include "codegen/llvm/interrupt.h"
#include "codegen/llvm/memory.h"
#include "loop/emptiness.h"

namespace tenon::codegen {

class StatementWriter {
 public:
  // Reserves the scratch of `body`, which must be the statement written afterwards.
  StatementWriter(FunctionWriter& f, Facts& facts, const AliasScopes& alias,
                  const loop::StmtRef& body);

  void statement(const loop::Stmt& s);
  // Writes a loop of any kind as one that counts `extent` iterations from `begin` and can be
  // stopped.
  void count(llvm::Value* begin, llvm::Value* extent, const loop::For& loop);
  // That loop's `count` iterations from `first` are to run backwards if `direction` isn't 0.
  void may_go_back(const loop::For& loop, llvm::Value* first, llvm::Value* count,
                   llvm::Value* direction);

 private:
  void write(const loop::Stmt& s);
  void for_loop(const loop::For& loop);
  void unrolled_loop(const loop::For& loop, int64_t extent);
  void vector_loop(const loop::For& loop, unsigned width);
  void store(const loop::Store& s);
  void prefetch(const loop::Prefetch& s);
  void if_statement(const loop::If& s);
  void let(const loop::Let& s);
  void alloc(const loop::Alloc& s);
  // The iterations of a counting loop, each of which counts as `counted` work.
  void turns(llvm::Value* begin, llvm::Value* extent, const loop::For& loop, int64_t counted = 0);
  // The same in parts, between which the runtime may be polled; an iteration does `work`.
  void turns_in_parts(llvm::Value* begin, llvm::Value* extent, const loop::For& loop, int64_t work);
  // How often the loop turns: not at all where its body would do nothing for any index.
  llvm::Value* turns_of(const loop::For& loop);
  // Binds the variable and writes the body.
  void body(const loop::For& loop, Variable variable);

  // ---- matrix.cc
  // Whether registers compute all products of matrices in a loop with the same shapes.
  bool uses_matrices(const loop::For& loop) const;
  // Writes such a loop.
  void with_matrices(const loop::For& loop);
  // Writes the product that begins at this loop; false if it isn't one, or registers have no
  // shapes.
  bool matrix_loop(const loop::For& loop);

  // ---- parallel.cc
  void parallel_loop(const loop::For& loop);
  // A serial loop around parallel ones, for which threads stand by if one of them is worth it.
  void team_loop(const loop::For& loop);
  void return_failure(llvm::Value* code);
  std::vector<llvm::Value**> values_of(Env& env) const;

  FunctionWriter& f_;
  Builder& b_;
  Facts& facts_;
  const AliasScopes& alias_;
  MemoryWriter memory_;
  ExpressionWriter expressions_;
  WorkCount work_;
  loop::Emptiness emptiness_;
  std::unordered_map<const loop::Buffer*, llvm::Value*> scratch_;
  std::vector<const loop::Stmt*> enclosing_;
  bool has_team_ = false;  // whether threads stand by, if any are worth it
  int64_t copies_ = 1;     // of the current statement, made by enclosing unrolled loops
  struct {
    const loop::For* loop = nullptr;
    llvm::Value *both_ends = nullptr, *is_back = nullptr;
  } alternating_;
};

}  // namespace tenon::codegen
