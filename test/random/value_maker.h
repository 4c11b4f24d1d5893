// Makes the values of a program, each as the bindings of a block. value_program.cc makes the
// program around them: its types and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/op/rule.h"
#include "value_type.h"

namespace tenon::random_programs {

struct Variable {
  std::string name;
  Type type;
};

// A function of the module, or its parameters where it is a value.
struct Callee {
  std::string name;
  std::vector<Type> params;  // whose tensors bind the symbols
  Type result;
  std::vector<std::string> symbols = {};
};

// A pattern with the type of what it matches; `text` is empty for one that fits everything.
struct Pattern {
  Type type;
  std::string text;  // of a constant, or a constructor's name
  bool is_tuple = false;
  std::vector<Pattern> fields = {};
  bool is_rest = false;  // fits what constants before it leave

  bool is_open() const { return text.empty() && !is_tuple; }
};

// The texts of a tuple and of arguments.
std::string list_of(const std::vector<std::string>& items);
std::string call_of(const std::vector<std::string>& args);

class ValueMaker {
 public:
  explicit ValueMaker(uint64_t seed) : r_(seed) {}

 protected:
  // ---- types ----
  Type scalar();
  // Often one that a function takes or gives, so that values fit each other.
  Type any_type(int depth, bool functions);
  bool has_functions(const Definition& type) const;
  // The constructors of a type with their fields' types; none for one that isn't made of them.
  std::vector<Constructor> constructors(const Type& type) const;

  // ---- text ----
  void line(const std::string& text);
  std::string fresh();
  std::string bind(const std::string& value, const Type* stated = nullptr);
  // A name for the value of the last lines, which begin with `head`.
  void begin(const std::string& head);
  void end(const std::string& result, const std::string& tail = "}");
  std::string known(const std::string& name, const Type& type);

  // ---- values ----
  std::optional<std::string> variable(const Type& type);
  std::string literal(DataType dtype);
  // A value that needs nothing.
  std::string least(const Type& type);
  std::vector<std::string> operands(const std::vector<Type>& types, int depth);
  std::string constructed(const Type& type, const Constructor& c, int depth);
  // fn(%a: T) -> U { ... }; with `takes_any_sizes`, its type says only the rank of tensors it
  // takes.
  std::string function(const Type& type, int depth, bool takes_any_sizes = false);
  // An operand of the type; makes bindings for it.
  std::string value(const Type& type, int depth);
  std::string branch(const Type& type, int depth);
  std::string looped(const Type& type, int depth);
  // A call of a function of the module, or of a closure in scope.
  std::string called(const Type& type, int depth);
  // A part of another value.
  std::string taken(const Type& type, int depth);
  std::string folded(const Type& type, int depth);

  // ---- tensors ----
  // A dimension of a tensor of the function.
  std::string size();
  DataType tensor_element();
  Type tensor_type(DataType dtype, size_t rank);
  std::string tensor_literal(const Type& type);
  // Tensors by operators of tensors.
  std::string tensor(const Type& type, int depth);
  std::string elementwise(const Type& type, int depth);
  std::string moved(const Type& type, int depth);
  // Scalars that tensors determine; empty if none of that type does.
  std::string from_tensor(DataType dtype, int depth);

  // ---- operations ----
  // By an operation of the type itself.
  std::string made(const Type& type, int depth);
  std::string array(const Type& type, int depth);
  std::string computed(DataType dtype, int depth);

  // ---- match ----
  std::string matched(const Type& type, int depth);
  // Replaces one open pattern of a row by all patterns of its type.
  void split(std::vector<Pattern>* rows);
  static std::vector<Pattern> open_fields(const std::vector<Type>& types);
  std::string pattern_text(const Pattern& pattern, std::vector<Variable>* added);

  graph::Random r_;
  std::string out_;
  std::vector<Definition> types_;
  std::vector<Callee> functions_;
  std::set<std::string> without_sizes_;  // functions that forget the sizes of a tensor
  std::vector<std::string> symbols_;     // of the function
  std::vector<Variable> scope_;
  std::vector<Type> used_;     // by functions, which are among them as values
  std::vector<size_t> marks_;  // of scope_, where blocks began
  size_t levels_ = 0, names_ = 0;
  int nested_ = 0;  // least values in each other
  int budget_ = 0;  // of values that the function may still make of others
};

}  // namespace tenon::random_programs
