// How the slow path's instructions read their operands, by the names that opcodes.def gives them
// and checking each before use. `what` is the value's purpose, for errors.
#pragma once

#include <span>

#include "object/shape.h"
#include "object/tensor.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/slow_path_errors.h"
#include "vm/isa/operand_index.h"

namespace tenon::vm {

// The values of one instruction; a name that its row doesn't have doesn't compile.
//
//   const Values<Opcode::GetField> in(op);
//   int64_t index = integer(in["index"], base, in.mnemonic);
template <Opcode opcode>
class Values {
 public:
  // The instruction's name, for errors.
  static constexpr const char* mnemonic = [] {
    switch (opcode) {
#define TENON_OPCODE(identifier, mnemonic, ...) \
  case Opcode::identifier:                      \
    return #mnemonic;
#include "vm/isa/opcodes.def"
      case Opcode::None:
        break;
    }
    return "";
  }();

  explicit Values(const Op& op) : args_(op.as<opcode>().args) {}

  struct Name {
    consteval Name(const char* name) : index(value_operand(opcode, name)) {}
    uint32_t index;
  };
  const ValueRef& operator[](Name name) const {
    return args_[name.index];
  }
  // The items of a list.
  std::span<const ValueRef> list(Name name) const {
    return args_.subspan(name.index);
  }

 private:
  std::span<const ValueRef> args_;
};

// Ends an instruction: clears the registers that it used for the last time, one of which may be the
// destination, then writes the result.
inline void finish(const Op& op, AnyView* base, Any result) {
  release_last_uses(*op.operands, base);
  put_result(base, op.a, std::move(result));
}
inline void finish(const Op& op, AnyView* base, RegisterWords owned) {
  release_last_uses(*op.operands, base);
  if (op.a >= 0) {
    put_words(at(base, op.a), owned);
  } else if (is_object(owned)) {
    release(object_of(owned));
  }
}
template <class T>
void finish(const Op& op, AnyView* base, Ref<T> result) {
  finish(op, base, words_of(std::move(result)));
}

inline int64_t integer(const ValueRef& ref, const AnyView* base, const char* what) {
  const AnyView& v = value_of(ref, base);
  if (!is_integer(v)) [[unlikely]]
    slow_path::fail_type("an integer", what, v);
  return v.v.i;
}

// A value that is written in the code.
inline int64_t literal(const ValueRef& ref) {
  return ref.constant->v.i;
}

inline const Tensor& tensor(const ValueRef& ref, const AnyView* base, const char* what) {
  const AnyView& v = value_of(ref, base);
  if (v.type_index != TypeIndex::Tensor) [[unlikely]]
    slow_path::fail_type("a tensor", what, v);
  return payload_as<Tensor>(v);
}

inline std::span<const int64_t> shape_value(const AnyView& v, const char* what) {
  if (v.type_index != TypeIndex::Shape) [[unlikely]]
    slow_path::fail_type("a shape", what, v);
  return payload_as<Shape>(v).dims();
}

// Writes integers as the dimensions of a tensor or shape.
inline void read_dims(std::span<const ValueRef> refs, const AnyView* base, const char* what,
                      int64_t* to) {
  for (size_t i = 0; i < refs.size(); ++i) {
    const int64_t dim = integer(refs[i], base, what);
    if (dim < 0) [[unlikely]]
      slow_path::fail_negative(what, i, dim);
    to[i] = dim;
  }
}

class Dims {
 public:
  Dims(std::span<const ValueRef> refs, const AnyView* base, const char* what)
      : count_(refs.size()) {
    // The table bounds these lists and the verifier enforces that; this check is for memory safety.
    TENON_ASSERT(count_ <= std::size(dims_), count_, " dimensions of ", what);
    read_dims(refs, base, what, dims_);
  }
  std::span<const int64_t> span() const { return {dims_, count_}; }

 private:
  int64_t dims_[tenon::kMaxRank];
  size_t count_;
};

}  // namespace tenon::vm
