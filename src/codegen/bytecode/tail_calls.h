// Which calls in tail position reuse the frame, and what their callers may rely on. Such a call
// can't check the sizes of what it gets: if the host's function is called, the result of the
// function that ends in the call may have other sizes than its type states, so its callers check.
#pragma once

#include <set>

#include "graph/ir/infer.h"

namespace tenon::codegen {

// Whether the type tells sizes that a value which the program doesn't make may not have.
bool has_sizes(const graph::TypeRef& type);

class TailCalls {
 public:
  TailCalls(const graph::Module& module, const graph::Signatures& signatures);

  // Whether calls in tail position of the function reuse its frame, unchecked: it may be part of a
  // recursion, since a function of the module calls it or makes a closure of it.
  bool stay_unchecked(const String& function) const { return referred_.contains(function); }
  // Whether a closure may be a function of the host, so that its results are checked.
  bool may_leave_program() const { return has_host_functions_; }
  // Whether the function's result may have other sizes than its type states.
  bool is_unchecked(const String& function) const { return unchecked_.contains(function); }

 private:
  std::set<String> referred_, unchecked_;
  bool has_host_functions_ = false;
};

}  // namespace tenon::codegen
