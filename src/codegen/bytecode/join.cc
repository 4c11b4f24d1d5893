#include "codegen/bytecode/join.h"

namespace tenon::codegen {

using graph::BlockRef;
using graph::TypeRef;
using graph::VarRef;
using vm::Arg;

FunctionLowering::Join::Join(FunctionLowering* function, const VarRef& var, bool tail)
    : function_(*function), code_(function->code_), tail_(tail) {
  if (tail) return;
  block_ = code_.make_block();
  used_ = function_.uses_.used.contains(var.get()) && !is_unit(var->type);
  if (!used_) return;
  const auto param = [&](const TypeRef& type) {
    return is_unit(type) ? Arg::none() : code_.add_param(block_, owns(type));
  };
  fields_ = function_.uses_.whole.contains(var.get()) ? nullptr : var->type.as<graph::TupleType>();
  if (!fields_) {
    function_.values_[var.get()] = param(var->type);
    return;
  }
  std::vector<Arg>& params = function_.fields_[var.get()];
  for (const TypeRef& field : fields_->fields) params.push_back(param(field));
}

void FunctionLowering::Join::arm(const BlockRef& block) {
  const SizeLowering::Scope scope(&function_.sizes_);
  function_.lower_block(block, tail_);
  if (code_.ended()) return;
  if (tail_) return code_.ret(function_.value(block->result));
  std::vector<Arg> given;
  if (fields_) {
    const std::vector<Arg> all = function_.fields(block->result);
    for (size_t i = 0; i < all.size(); ++i) {
      if (!is_unit(fields_->fields[i])) given.push_back(all[i]);
    }
  } else if (used_) {
    given.push_back(function_.value(block->result));
  }
  code_.jump(block_, std::move(given));
}

void FunctionLowering::Join::finish() {
  if (!tail_) code_.start(block_);
}

}  // namespace tenon::codegen
