// Patterns of `match`, and the decision tree that tells which arm a value takes.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/infer.h"

namespace tenon::graph {

// The variables of a pattern, in the order of the text. Throws Usage for one that is damaged or too
// large.
std::vector<VarRef> variables_of(const Pattern& pattern);

// The types of the fields of a value of `type` that the constructor made, or of a tuple's. Throw
// Usage if `type` has no such constructor, or is not a tuple.
Array<TypeRef> constructor_parts(std::string_view constructor, const TypeRef& type,
                                 const Signatures& signatures);
Array<TypeRef> tuple_parts(const TypeRef& type);
// Throws Usage unless the constant pattern can equal a value of `type`.
void require_constant(const Pattern& pattern, const TypeRef& type);

// What is wrong with one arm of a match.
struct ArmError : Error {
  ArmError(size_t index, std::string_view message) : Error(ErrorKind::Usage, message), arm(index) {}
  size_t arm;  // its index
};

// The type of the arms before arm `index`, null for the first, joined with that arm's. Throws
// ArmError if they have no common supertype.
TypeRef join_arm(const TypeRef& before, const TypeRef& arm, size_t index,
                 const Variances& variances);

// A part of the matched value: the value itself, or a field of another part.
struct MatchedPart {
  uint32_t parent = 0, field = 0;  // both 0 for the value itself, which is part 0
  uint32_t siblings = 0;           // the number of its parent's fields
  TypeRef type;
};

// A step of the decision: a test of a part, or an arm.
struct Decision {
  enum class Kind : uint8_t { kArm, kConstructor, kNumber };
  struct Case {
    int64_t value;  // a constructor's place in its type, an integer, or 0 or 1 for a boolean
    uint32_t next;  // the decision for it
  };

  Kind kind = Kind::kArm;
  uint32_t arm = 0;   // kArm
  uint32_t part = 0;  // else: what is tested
  std::vector<Case> cases;
  // For other values; kNone if the cases are all that there are.
  uint32_t otherwise = kNone;
  static constexpr uint32_t kNone = ~uint32_t{0};
};

// Every path from `root` tests a part at most once and ends in an arm. Parts are tested before
// their fields. Several decisions may lead to one arm.
struct DecisionTree {
  std::vector<MatchedPart> parts;
  std::vector<Decision> decisions;
  uint32_t root = 0;
  // For each arm, the part that each of its pattern's variables_of is bound to.
  std::vector<std::vector<uint32_t>> bound;
};

// How an arm is chosen: the first whose pattern fits. The algorithm is Maranget's ("Compiling
// Pattern Matching to Good Decision Trees", 2008), testing the leftmost part that the first arm
// needs. Throws Usage if a pattern doesn't fit the value's type or what it binds, or if no arm
// covers some value, which the error shows; ArmError if an arm is never reached; Unsupported beyond
// kMaxDecisions.
DecisionTree decide(const Match& match, const Signatures& signatures);
inline constexpr size_t kMaxDecisions = 100'000;
inline constexpr size_t kMaxPatternSize = 100'000;  // of all patterns of a match, with their fields

}  // namespace tenon::graph
