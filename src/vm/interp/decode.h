// The pre-decoder: verified code to the form that the dispatch loop runs.
#pragma once

#include "vm/interp/program.h"

namespace tenon::vm {

struct Fusion;

// Fills the program's ops from its unit, which must have been verified.
class Decoder {
 public:
  explicit Decoder(Program& program) : p_(program) {}
  void run();

 private:
  void function(FunctionCode& code, const FunctionUnit& unit);
  void instruction(Op& op, const Instruction& in, uint32_t index);
  void binary(Op& op, const Instruction& in);
  void branch(Op& op, const Instruction& in, uint32_t index);
  void link(Op& op);
  void fuse(uint32_t first, uint32_t count);
  void fuse_branch(Op* op, const Fusion& f);
  void fuse_step(Op* op, const Fusion& f);

  OpExtra& extra(Op& op);
  ValueRef value(Arg arg, bool is_int = false);
  const AnyView* pooled(Any value);
  int32_t distance(Arg label, uint32_t index) const;
  bool is(const Op& op, Handler handler) const;
  void set(Op& op, Handler handler) const;
  void plain(Op& op, const Instruction& in);

  Program& p_;
  const void* const* handlers_ = nullptr;
  std::vector<int32_t> op_of_word_;
  std::vector<size_t> one_argument_calls_;  // indices of their Ops
};

}  // namespace tenon::vm
