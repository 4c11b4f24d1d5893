// Where the arms of an `if` or a `match` meet.
#pragma once

#include <vector>

#include "codegen/bytecode/lower_function.h"

namespace tenon::codegen {

class FunctionLowering::Join {
 public:
  // Defines `var` as what the arms give.
  Join(FunctionLowering* function, const graph::VarRef& var, bool tail);

  // Lowers an arm into the current block, and leads from its end to the join.
  void arm(const graph::BlockRef& block);
  // After the last arm: code that follows is the join's.
  void finish();

 private:
  FunctionLowering& function_;
  VirtualCode& code_;
  const bool tail_;
  const graph::TupleType* fields_ = nullptr;  // if the tuple itself isn't needed
  bool used_ = false;
  BlockId block_ = 0;
};

}  // namespace tenon::codegen
