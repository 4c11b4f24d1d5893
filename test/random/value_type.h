// The types of the values that value_program.cc makes, and their text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "object/dtype.h"

namespace tenon::random_programs {

struct Type {
  enum class Kind { Scalar, String, Tensor, Tuple, Option, List, Array, Data, Function, Parameter };
  Kind kind = Kind::Scalar;
  DataType dtype = {};                 // of a scalar or a tensor's elements
  std::string name = {};               // of a data type or a type parameter
  std::vector<Type> parts = {};        // a function's parameters, then its result
  std::vector<std::string> dims = {};  // of a tensor: numbers, symbols and multiples of them, "n*2"

  static Type scalar(DataType dtype) { return {Kind::Scalar, dtype}; }
  static Type of(Kind kind, std::vector<Type> parts) { return {kind, {}, "", std::move(parts)}; }
  static Type tensor(DataType dtype, std::vector<std::string> dims) {
    return {Kind::Tensor, dtype, "", {}, std::move(dims)};
  }
  static Type data(std::string name, std::vector<Type> args) {
    return {Kind::Data, {}, std::move(name), std::move(args)};
  }
  bool operator==(const Type& other) const = default;
  bool has_symbols() const;
};

// Sizes for symbols.
using Sizes = std::map<std::string, std::string>;
Type with_sizes(const Type& type, const Sizes& sizes);
// Finds sizes for the symbols in `type`, besides those in `sizes`, that make it `wanted`.
bool find_sizes(const Type& type, const Type& wanted, Sizes* sizes);

struct Constructor {
  std::string name;
  std::vector<Type> fields;
};

struct Definition {
  std::string name;
  size_t parameters = 0;  // of type
  std::vector<Constructor> constructors;

  static Type parameter(size_t i) { return {Type::Kind::Parameter, {}, i == 0 ? "T" : "U"}; }
  Type of_own_parameters() const;
  // The constructors with type arguments in place of the parameters.
  std::vector<Constructor> instance(const std::vector<Type>& args) const;
};

std::string text_of(const Type& type);
// Of a tensor: [n, 2], and its type without sizes, tensor[rank=2; f32].
std::string shape_text(const Type& tensor);
std::string unsized_text(const Type& tensor);
std::string text_of(const Definition& type);

}  // namespace tenon::random_programs
