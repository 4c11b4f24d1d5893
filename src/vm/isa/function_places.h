// Where values of a program's types hold functions: in tuples, arrays and cells, at any depth.
// Where such a value comes in from the host, its functions are made to check their results
// (host_function.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "object/any.h"
#include "vm/isa/signature.h"

namespace tenon::vm {

class FunctionPlaces : public std::enable_shared_from_this<FunctionPlaces> {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The definitions of the data types, in text (Unit::types). Cells of other types, and of types
  // whose text is damaged, count as holding no functions.
  static std::shared_ptr<FunctionPlaces> of(const std::vector<std::string>& definitions = {});

  // The type's number here; kNone if its values hold no functions.
  uint32_t add(const SignatureType& type);
  // Makes the functions in a value of the type of that number check their results. The value is
  // copied where it holds functions of the host; what doesn't fit the type stays.
  void check_results(uint32_t type, Any* value) const;

 private:
  // All types may have so many parts together: a data type may contain itself with larger
  // arguments. What is beyond counts as holding no functions.
  static constexpr size_t kMostParts = size_t{1} << 13;

  struct Node {
    SignatureType type;
    // The types of the parts: one list of a tuple's fields, or with an array's element or a
    // function's result; a list for each constructor of a data type.
    std::vector<std::vector<uint32_t>> parts;
    bool holds_functions = false;
  };
  class Walk;

  uint32_t number_of(const SignatureType& type);
  void find_parts(uint32_t node);

  std::map<std::string, AdtSignature, std::less<>> definitions_;
  std::map<std::string, uint32_t, std::less<>> numbers_;  // by the type's text
  std::vector<Node> nodes_;
  size_t parts_ = 0;
};

}  // namespace tenon::vm
