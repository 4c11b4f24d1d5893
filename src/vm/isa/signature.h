// The types of a function's parameters and result, and the data types in them, as stored in a file:
// text in the notation of graph IR, and its parsed form for callers. The code matches tensors and
// shapes (match_tensor and similar instructions); the machine checks other arguments, and results,
// against them.
//
//   tensor[n, 3, 2*m; f32]   dimensions known, as integers or expressions over symbols
//   tensor[rank=4; f32]      only the rank known   tensor[*; f32]   nothing known
//   i64  bool  f32           a scalar              shape[n, 4]  shape[rank=2]  shape[*]
//   (T, U)   fn(T, U) -> R   array[T]   list[T] (algebraic data type)   string
//   opaque["key"]   any
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "object/dtype.h"

namespace tenon::vm {

struct SignatureDim {
  std::string text;    // "3", "n", "2*m + 1"
  int64_t value = -1;  // of a constant dimension, otherwise -1

  static SignatureDim constant(int64_t value);
  static SignatureDim symbolic(std::string text);
  bool is_constant() const { return value >= 0; }
  bool operator==(const SignatureDim&) const = default;
};

struct SignatureType {
  enum class Kind : uint8_t { Any, Tensor, Scalar, Shape, Tuple, Function, Array, Adt, Opaque };

  Kind kind = Kind::Any;
  DataType dtype;                    // Tensor, Scalar
  int64_t rank = -1;                 // Tensor, Shape; -1 if unknown
  bool dims_known = false;           // if so, dims.size() == rank
  std::vector<SignatureDim> dims;    // Tensor, Shape
  std::vector<SignatureType> parts;  // Tuple; Function: parameters, then the result; Array, Adt
  std::string name;                  // Adt; Opaque: the key, with escapes for quotes in it

  // As the type of a function's result, the types of its results: a tuple's parts, or this one.
  std::span<const SignatureType> results() const {
    return kind == Kind::Tuple ? std::span(parts) : std::span(this, 1);
  }

  static SignatureType tensor(DataType dtype, std::vector<SignatureDim> dims);
  static SignatureType scalar(DataType dtype);
  bool operator==(const SignatureType&) const = default;
};

// The type of strings: opaque, with a word of its own.
inline constexpr std::string_view kString = "string";

std::string to_text(const SignatureType& type);
// Parses such text (spaces are allowed anywhere); a Usage error states the column and what is
// wrong.
SignatureType parse_signature_type(std::string_view text);

// The definition of an algebraic data type, which tells hosts what its cells are:
//
//   tree[T] { Leaf, Node(tree[T], T, tree[T]) }
//
// In the fields' types, a type parameter is a data type of its name without arguments.
struct AdtSignature {
  struct Constructor {
    std::string name;
    std::vector<SignatureType> fields;
    bool operator==(const Constructor&) const = default;
  };

  std::string name;
  std::vector<std::string> type_params;
  std::vector<Constructor> constructors;  // a constructor's place is the tag of its cells

  bool operator==(const AdtSignature&) const = default;
};

// The types in a type, with itself: no more than kMostTypeParts if it comes from text.
inline constexpr size_t kMostTypeParts = size_t{1} << 16;
size_t parts_of(const SignatureType& type);

// The types of the constructor's fields in cells of `type`, which has arguments for the
// definition's type parameters. A data type may contain itself with larger arguments: throws
// Unsupported where that many fields' types would have more than kMostTypeParts parts.
std::vector<SignatureType> field_types(const AdtSignature& definition,
                                       const AdtSignature::Constructor& constructor,
                                       const SignatureType& type);

std::string to_text(const AdtSignature& type);
// As parse_signature_type.
AdtSignature parse_adt_signature(std::string_view text);

}  // namespace tenon::vm
