// How the order of types passes through data types: what must hold of two type arguments for one
// instance of a data type to be a subtype of another.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/ir/module.h"

namespace tenon::graph {

// What must hold of the arguments x and y for D[x] to be a subtype of D[y]; a set of bits. A
// parameter that no field mentions has none.
enum Relation : uint8_t {
  kFits = 1,        // x is a subtype of y: the parameter is what a value gives
  kFitsBack = 2,    // y is a subtype of x: a part of what a function in it takes
  kPasses = 4,      // may_pass(x, y)
  kPassesBack = 8,  // may_pass(y, x): what a function in it takes, whose sizes that function checks
};
using Relations = uint8_t;
// What holds of x and y where these hold of y and x.
Relations reversed(Relations relations);

class Variances {
 public:
  static const Variances& of_prelude();
  // Of the prelude's types and these; they may refer to each other. Takes time in proportion to
  // their text.
  explicit Variances(const Map<String, Ref<const AdtDefinition>>& types);

  // Of a data type's parameter. Types that aren't known are invariant.
  Relations of(std::string_view type, size_t parameter) const;

 private:
  std::unordered_map<std::string, std::vector<Relations>> by_type_;
};

}  // namespace tenon::graph
