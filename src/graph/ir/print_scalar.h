// Prints scalar expressions in module text, for the printers of loop nests and computes;
// parse_scalar.cc reads them.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "loop/kernel.h"

namespace tenon::graph {

class ScalarPrinter {
 protected:
  explicit ScalarPrinter(std::string* out) : out_(*out) {}

  void pad(int indent) { out_.append(static_cast<size_t>(indent) * 2, ' '); }
  void line(int indent, std::string_view text);

  // The object's name; a new object gets a unique name made from `wanted`.
  std::string unique(const Object* o, std::string_view wanted);
  void forget(const Object* o);  // makes its name available again
  std::string buffer_type(const loop::Buffer& b);
  std::string buffers(const Array<Ref<const loop::Buffer>>& list);
  static std::string integers(const Array<String>& names);  // ` integers(n, m)`, or ""

  // Gives names to parts that occur several times in what is printed next. Call it for each of its
  // expressions with the same `seen`.
  void count_uses(const loop::ExprRef& root, std::unordered_set<const loop::Expr*>* seen);
  // A part's name is visible until its block ends, since variables of other loops may have the same
  // name.
  std::vector<const loop::Expr*> open_parts();
  void close_parts(std::vector<const loop::Expr*> outer);
  // The text of an expression. Prints lines that name shared and deeply nested parts first.
  std::string expr(int indent, const loop::ExprRef& root);
  std::string exprs(int indent, const Array<loop::ExprRef>& list);  // separated by commas

  std::string& out_;
  std::unordered_map<const loop::Expr*, int> uses_;

 private:
  struct Part {
    std::string text;
    bool atom = true;  // needs no parentheses
    int depth = 0;
  };
  Part part(const loop::Expr& e, const std::unordered_map<const loop::Expr*, Part>& parts);

  struct Name {
    std::string plain, text;  // text: as printed, `%"odd name"`
  };
  std::unordered_map<const Object*, Name> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int64_t> next_;
  std::unordered_map<const loop::Expr*, std::string> temps_;
  std::vector<const loop::Expr*> named_here_;
  int64_t next_temp_ = 0;
};

}  // namespace tenon::graph
