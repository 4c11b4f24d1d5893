// Which calls in tail position reuse the frame, and whose results their callers therefore check.
// What a function knows as a type variable may come from a cell of any size, and a function of the
// host may return any sizes: the call where the type states sizes checks them. A call in tail
// position that reuses the frame can't, so that the result of the function that ends in it may have
// other sizes than its type states, too.
#pragma once

#include <set>

#include "graph/ir/infer.h"
#include "graph/ir/module.h"

namespace tenon::graph {

// Whether the type tells sizes that a value which the program doesn't make may not have.
bool has_sizes(const TypeRef& type);

class TailCalls {
 public:
  TailCalls(const Module& module, const Signatures& signatures);

  // Whether calls in tail position of the function reuse its frame, unchecked: it may be part of a
  // recursion, since a function of the module calls it or makes a closure of it.
  bool stay_unchecked(const String& function) const { return referred_.contains(function); }
  // Whether what the function, or any closure, gives may have other sizes than the call's type
  // states.
  bool is_unchecked(const String& function) const { return unchecked_.contains(function); }
  bool closures_are_unchecked() const { return unchecked_.contains(String()); }

 private:
  std::set<String> referred_;
  std::set<String> unchecked_;  // functions, and "" if closures are
};

}  // namespace tenon::graph
