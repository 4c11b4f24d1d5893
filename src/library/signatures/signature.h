// The signature of a library function, shared by the compiler that calls it and the library that
// implements it. signatures.h lists all of them.
//
// A packed function gets its arguments by position:
//
//     operands..., [results...,] attributes...
//
// An absent operand is None. Results are passed only if the function writes them into tensors from
// the caller; otherwise it returns its single result, or an array of several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "object/effect.h"

namespace tenon::library {

enum class ValueKind : uint8_t {
  Tensor,
  Int,
  Float,
  Bool,   // passed as 0 or 1
  Shape,  // a list of at most kMaxRank integers, none negative
  Array,
  Any,
  Choice,  // one of a list of names, passed as its index
  String,
  Dtype,  // an element type
};

struct Choices {
  const std::string_view* names = nullptr;
  size_t count = 0;
};

struct Parameter {
  std::string_view name;
  ValueKind kind = ValueKind::Tensor;
  bool optional = false;  // an operand that may be absent
  Choices choices = {};   // of a Choice
};

// Parameters by value, so that a Signature is a single constant.
struct Parameters {
  static constexpr size_t kMost = 8;

  constexpr Parameters() = default;
  constexpr Parameters(std::initializer_list<Parameter> list) : count(list.size()) {
    size_t i = 0;
    for (const Parameter& parameter : list) items[i++] = parameter;
  }
  constexpr const Parameter* begin() const { return items; }
  constexpr const Parameter* end() const { return items + count; }
  constexpr size_t size() const { return count; }
  constexpr const Parameter& operator[](size_t i) const { return items[i]; }

  Parameter items[kMost] = {};
  size_t count = 0;
};

struct Signature {
  std::string_view name;
  // The shared library that has it, by its name in files; empty for the runtime.
  std::string_view library = {};
  Parameters operands = {};
  Parameters results = {};
  bool writes_results = false;  // into tensors of known dimensions from the caller
  Parameters attributes = {};
  Effect effect = Effect::Pure;
  // It retains an argument after it returns, or its result shares an argument's memory, so planned
  // memory can't be passed to it.
  bool keeps_arguments = false;
  // Untrusted files may call it: it checks every argument, allocates through the machine, and polls
  // while it works.
  bool for_files = false;
  // It keeps something for later calls, and makes only that during preparation
  // (device/preparation.h).
  bool prepares = false;
  std::string_view summary = {};

  // The number of arguments that it is called with.
  constexpr size_t arity() const {
    return operands.size() + (writes_results ? results.size() : 0) + attributes.size();
  }
  // The position of the argument with that name, or arity().
  constexpr size_t position(std::string_view argument) const {
    size_t at = 0;
    for (const Parameter& p : operands) {
      if (p.name == argument) return at;
      ++at;
    }
    if (writes_results) {
      for (const Parameter& p : results) {
        if (p.name == argument) return at;
        ++at;
      }
    }
    for (const Parameter& p : attributes) {
      if (p.name == argument) return at;
      ++at;
    }
    return at;
  }
};

}  // namespace tenon::library
