// Scalar expressions in module text: what the printers of loop nests and computes share; the reader
// is parse_scalar.cc.
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

  // The object's name, made from `wanted` where it has none yet.
  std::string unique(const Object* o, std::string_view wanted);
  void forget(const Object* o);  // so that another may take its name
  std::string buffer_type(const loop::Buffer& b);
  std::string buffers(const Array<Ref<const loop::Buffer>>& list);
  static std::string integers(const Array<String>& names);  // ` integers(n, m)`, or nothing

  // What is printed next: parts that occur in it several times get names. Called once for each of
  // its expressions, with one `seen`.
  void count_uses(const loop::ExprRef& root, std::unordered_set<const loop::Expr*>* seen);
  // A part's name holds until its block ends: a variable of another loop may look the same.
  std::vector<const loop::Expr*> open_parts();
  void close_parts(std::vector<const loop::Expr*> outer);
  // The text, after lines that name the parts which are shared or nested deep.
  std::string expr(int indent, const loop::ExprRef& root);
  std::string exprs(int indent, const Array<loop::ExprRef>& list);  // with commas between

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
