// Lowers dimensions: symbols and computed sizes in registers, the matches that bind symbols, and
// checks.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/bytecode/constant_pool.h"
#include "codegen/bytecode/virtual_code.h"
#include "graph/ir/expr.h"
#include "loop/dim_hash.h"

namespace tenon::codegen {

class SizeLowering {
 public:
  SizeLowering(VirtualCode* code, ConstantPool* constants) : code_(*code), constants_(*constants) {}

  // What is bound and computed while a Scope exists is forgotten at its end: one per block.
  class Scope {
   public:
    explicit Scope(SizeLowering* sizes) : sizes_(*sizes), begin_(sizes_.in_scope_.size()) {}
    ~Scope() { sizes_.forget(begin_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    SizeLowering& sizes_;
    size_t begin_;
  };

  // An immediate or a register. The dimension's symbols must be bound.
  vm::Arg size(const Dim& dim);
  std::vector<vm::Arg> sizes(const Array<Dim>& dims);

  // Matches each parameter's value with its type, which binds the type's symbols.
  void match_parameters(const Array<graph::VarRef>& params, const std::vector<vm::Arg>& values);
  void match_shape(const graph::MatchShape& match, vm::Arg value);
  // Matches the tensors, shapes and numbers in what a packed function or closure returned, or a
  // container held, with the type that is stated. The type's symbols must be bound.
  void match_result(vm::Arg value, const graph::TypeRef& type);
  void check(const graph::Check& check);

 private:
  // Dimensions compared after all symbols of a match are bound: those of `value`'s shape, or
  // elements that were read into registers.
  struct Postponed {
    vm::Arg value;
    Array<Dim> dims;
    std::vector<size_t> later;
    std::vector<vm::Arg> elements;
  };

  void know(const Dim& dim, vm::Arg size);
  void forget(size_t begin);
  bool is_bound(const Dim& dim) const;
  vm::Arg compute(const Dim& dim);
  // A match's patterns. Dimensions computed from symbols that the same match binds are ignored
  // there and returned in `later`.
  std::vector<vm::DimPattern> patterns(const Array<Dim>& dims, std::vector<size_t>* later);
  void match_tensor(vm::Arg value, DataType dtype, const Array<Dim>& dims,
                    std::vector<Postponed>* postponed);
  void match_dims(vm::Arg value, const Array<Dim>& dims, std::vector<Postponed>* postponed);
  void match_elements(vm::Arg source, const graph::TypeRef& type, const Array<Dim>& dims,
                      std::vector<Postponed>* postponed);
  void match_type(vm::Arg value, const graph::TypeRef& type, std::vector<Postponed>* postponed);
  void match_postponed(const std::vector<Postponed>& all);

  VirtualCode& code_;
  ConstantPool& constants_;
  std::unordered_map<Dim, vm::Arg, DimHash> known_;  // symbols and computed sizes
  std::vector<Dim> in_scope_;                        // the keys of known_, in insertion order
};

}  // namespace tenon::codegen
