// Which loops of a nest would iterate without effect.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "loop/kernel.h"

namespace tenon::loop {

// A loop over a large axis may iterate for hours although the loops in it are over axes without
// elements. This tells from sizes alone, before a loop begins, whether it does anything.
class Emptiness {
 public:
  // `in_bounds` as in KernelInterface: otherwise loads may fail, too.
  explicit Emptiness(bool in_bounds) : in_bounds_(in_bounds) {}

  // A condition on the kernel's sizes that can be computed wherever the statement stands: if it is
  // false, the statement stores nothing but in its own scratch, and can't fail. The literal true
  // where nothing simple is known.
  const ExprRef& may_act(const Stmt& s) { return known(s).any; }

 private:
  // Where it stores in a buffer, or, of null, where it may fail.
  struct Effect {
    const Buffer* buffer;
    ExprRef condition;
  };
  using Effects = std::vector<Effect>;
  struct Known {
    Effects effects;
    ExprRef any;
  };

  const Known& known(const Stmt& s);
  Effects effects_of(const Stmt& s);
  // Those of the body where `condition` holds.
  Effects effects_where(const ExprRef& condition, const Stmt& body);
  bool may_fail(const ExprRef& e) const;

  const bool in_bounds_;
  std::unordered_map<const Stmt*, Known> known_;
};

bool is_always_true(const ExprRef& condition);

}  // namespace tenon::loop
