// Values of a program's data types as text, by the names of their constructors:
//
//   Node(Leaf, 1, Leaf)   [1, 2, 3] a list or array   (1, 2.5) a tuple   Some(true)
//   "text"   tensor[2; f32]{1, 2}   @x.npy a tensor's file
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "object/any.h"
#include "object/cell.h"
#include "vm/isa/signature.h"

namespace tenon::tool {

// The definitions that a program's file has, with the types of fields looked up once.
class DataTypes {
 public:
  using Constructor = vm::AdtSignature::Constructor;

  DataTypes() = default;
  // Throws Damaged for a text that isn't the definition of a data type (vm/isa/signature.h).
  explicit DataTypes(const std::vector<std::string>& definitions);

  struct Instance {
    const vm::AdtSignature* definition;
    std::vector<std::vector<vm::SignatureType>> fields;  // by constructor
    bool is_list;  // of the prelude: Nil, or Cons of an element and a list
  };
  // Null unless `type` is one of the program's data types. Throws Unsupported, as field_types does
  // for one field, if the types of all fields take too much memory.
  const Instance* find(const vm::SignatureType& type) const;
  // Null also for a value that no constructor of the type can have made.
  const Instance* find(const vm::SignatureType& type, const CellObj& cell) const;

  // The definitions of the data types in the types, and of those in their fields, without the
  // prelude's.
  std::vector<std::string> definitions_in(std::vector<const vm::SignatureType*> types) const;

 private:
  std::map<std::string, vm::AdtSignature, std::less<>> definitions_;
  mutable std::map<std::string, Instance> instances_;  // by the type's text
  mutable size_t parts_ = 0;                           // of the types of their fields
};
inline constexpr int64_t kNil = 0, kCons = 1;  // tags of lists

// The definitions but for those of `list` and `option`, which every program has.
std::vector<std::string> without_prelude(std::vector<std::string> definitions);

// Whether inputs of the type are written as such text, not as a number or the name of a file.
bool is_data(const vm::SignatureType& type);
bool is_string(const vm::SignatureType& type);
// Throws Usage, with the place in the text, unless it is a value of the type.
Any parse_data(std::string_view text, const vm::SignatureType& type, const DataTypes& types);

}  // namespace tenon::tool
