// Parses scalar expressions of kernels, for parse_kernel.cc and parse_compute.cc.
//
// Shared parts of expressions are named (`$3 = ...`) before their first use, so that a DAG of nodes
// reads back as a DAG and not as a tree.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/ir/parser.h"
#include "loop/kernel.h"

namespace tenon::graph {

class ScalarParser {
 protected:
  explicit ScalarParser(Parser* parser) : p_(*parser) {}

  // `%name: tensor[n; f32]`, declared.
  Ref<const loop::Buffer> buffer();
  // `(%x: tensor[n; f32], ...)`
  Array<Ref<const loop::Buffer>> buffers(const char* what);
  // `integers(n, m)`, if present.
  Array<String> integers();

  struct Named {  // one of the two is set
    Ref<const loop::Buffer> buffer;
    Ref<const loop::Var> var;
  };
  void declare(const Token& name, Named value);
  Ref<const loop::Var> new_var(const Token& name, DataType dtype);
  void forget(std::string_view name) { names_.erase(name); }
  const Named& find(const Token& name);

  // `$3 = ...`; the name is visible until the end of the innermost block.
  void part();
  // A block of parts: call `open_parts` before it and `close_parts` with the result after it.
  std::vector<std::string_view> open_parts();
  void close_parts(std::vector<std::string_view> outer);

  // `[...]` after the buffer `name`.
  Array<loop::ExprRef> indices(const Token& name, const loop::Buffer& b);
  loop::ExprRef expr_of(DataType dtype, const char* what);
  // An operand, or two with an infix operator between them.
  loop::ExprRef expr();

  Parser& p_;

 private:
  loop::ExprRef binary(const Token& at, uint8_t index, loop::ExprRef a, loop::ExprRef b);
  int64_t literal_bits(DataType dtype);
  loop::ExprRef term();
  loop::ExprRef word(const Token& t);
  loop::ExprRef function(const Token& t);
  void comma() { p_.expect(",", "between operands"); }

  std::unordered_map<std::string_view, Named> names_;
  std::unordered_map<std::string_view, loop::ExprRef> temps_;
  std::vector<std::string_view> temps_here_;  // parts named in the block
};

}  // namespace tenon::graph
