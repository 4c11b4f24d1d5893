// Symbolic integers: the sizes in tensor types, kernels and memory plans.
//
// A Dim is an integer expression over named symbols in canonical form: a sum of products with
// integer coefficients, whose factors are symbols or the atoms floordiv, mod, min, max and bcast.
// Dims with the same canonical form are structurally equal, so `a == b` is a proof of equality (but
// `a != b` proves nothing: use `proves_differ`).
//
// A symbol stands for an integer >= 0 and is identified by its name within one function. Symbols
// are bound by the shapes of parameters or by `match_shape`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "object/array.h"
#include "object/object.h"
#include "object/string.h"
#include "support/error.h"

namespace tenon {

class Dim;
class SymbolSet;  // loop/symbol_set.h

// The Usage error of a size that can't be expressed: it overflows 64 bits, divides by zero or has
// too many terms. Whoever can do without the size catches this type, so that errors which stop the
// work as a whole, such as a deadline, pass.
class SizeError : public Error {
 public:
  explicit SizeError(const Error& error) : Error(error) {}
};

enum class DimKind : uint8_t {
  kConst,     // value
  kSymbol,    // name
  kAdd,       // args: terms, >= 2, in canonical order
  kMul,       // args: factors, >= 2; a constant coefficient comes first
  kFloorDiv,  // args: dividend, divisor; rounds towards minus infinity
  kMod,       // args: dividend, divisor; the sign of the divisor
  kMin,
  kMax,
  // The broadcast of two sizes that are equal, or of which one is 1: the other one if one is 1,
  // otherwise their common value. Evaluation with incompatible sizes is an error.
  kBcast,
};

struct DimNode : Object {
  DimKind kind = DimKind::kConst;
  int64_t value = 0;
  String name;
  Array<Ref<const DimNode>> args;

  // Derived from the fields above, so not reflected. 0 means not computed.
  uint64_t hash = 0;
  uint32_t depth = 1;

  TENON_TYPE(TypeIndex::LoopDimNode);
};

// A symbol's value; nullopt if unknown.
using DimEnv = std::function<std::optional<int64_t>(std::string_view symbol)>;
using DimSubstitution = std::function<std::optional<Dim>(std::string_view symbol)>;

// A handle, cheap to copy; never null.
class Dim : public Handle {
 public:
  Dim(int64_t value = 0);  // NOLINT: a number is a Dim
  explicit Dim(Ref<const DimNode> node)
      : Handle(Ref<Object>::adopt(const_cast<DimNode*>(node.leak()))) {}
  static Dim symbol(std::string_view name);

  const DimNode& node() const { return *static_cast<const DimNode*>(object()); }
  DimKind kind() const { return node().kind; }

  bool is_const() const { return kind() == DimKind::kConst; }
  bool is_const(int64_t value) const { return is_const() && node().value == value; }
  std::optional<int64_t> as_const() const;

  bool operator==(const Dim& other) const;

  static bool accepts(const AnyView& a) { return a.type_index == DimNode::kTypeIndex; }
  static std::string type_text() { return "size"; }
};

// Equal Dims have equal hashes.
uint64_t hash(const Dim& d);

// Construction canonicalises. A Usage error if constant arithmetic overflows int64 or an expression
// exceeds 4096 terms or 200 levels. floordiv and mod may cancel common factors (n*m / n is m) as if
// no divisor were 0.
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floordiv(const Dim& a, const Dim& b);  // division by the constant 0 is a Usage error
Dim mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim bcast(const Dim& a,
          const Dim& b);  // equal -> that; a constant 1 -> the other; const c > 1 -> c
Dim ceildiv(const Dim& a, const Dim& b);
Dim product(const std::vector<Dim>& dims);

// The functions of sizes: their names in text, and how to apply them.
struct DimFunction {
  DimKind kind;
  const char* name;
  Dim (*apply)(const Dim& a, const Dim& b);
};
std::span<const DimFunction> dim_functions();
const DimFunction* find_dim_function(DimKind kind);           // null for other kinds
const DimFunction* find_dim_function(std::string_view name);  // null if there is none

// Proofs. `true` is certain; `false` only means that no proof was found.
bool proves_equal(const Dim& a, const Dim& b);
bool proves_differ(const Dim& a, const Dim& b);
bool proves_nonnegative(const Dim& d);
bool proves_less_equal(const Dim& a, const Dim& b);
// False for a negative constant, which can't be the size of a dimension. Other sizes are checked
// when their symbols are bound.
bool may_be_size(const Dim& d);
std::optional<int64_t> lower_bound(const Dim& d);  // of every value, for symbols >= 0
std::optional<int64_t> upper_bound(const Dim& d);

std::optional<int64_t> evaluate(const Dim& d,
                                const DimEnv& env);  // nullopt if unknown or on overflow
Dim substitute(const Dim& d, const DimSubstitution& map);
void collect_symbols(const Dim& d, SymbolSet* symbols);  // in the order of their first use

// Whether `d` is constant, or has coefficients of at most 2^31. What a program computes with others
// may wrap, which a size can't.
bool has_small_coefficients(const Dim& d);

// Text as in graph IR: `n`, `2*n + 1`, `floordiv(n, 2)`, `bcast(n, m)`.
std::string to_text(const Dim& d);

}  // namespace tenon
