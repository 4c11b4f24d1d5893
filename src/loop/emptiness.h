// Which loops of a nest would iterate without effect.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "loop/kernel.h"

namespace tenon::loop {

// A loop over a large axis may iterate for hours although the loops in it are over axes without
// elements. This tells from sizes alone, before a loop begins, whether it does anything.
class Emptiness {
 public:
  // `in_bounds` as in KernelInterface: otherwise loads may fail, too.
  explicit Emptiness(bool in_bounds) : in_bounds_(in_bounds) {}

  // A condition on the kernel's sizes that can be computed wherever the statement stands: if it is
  // false, the statement stores nothing and can't fail. The literal true where nothing simple is
  // known.
  const ExprRef& may_act(const Stmt& s);

 private:
  ExprRef condition_of(const Stmt& s);
  bool may_fail(const ExprRef& e) const;

  const bool in_bounds_;
  std::unordered_map<const Stmt*, ExprRef> known_;
};

bool is_always_true(const ExprRef& condition);

}  // namespace tenon::loop
