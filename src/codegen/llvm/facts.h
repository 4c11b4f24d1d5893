// Facts about a kernel's expressions before they are emitted: signs, strides between lanes, and
// whether they can fail. Emits nothing. One Facts serves a kernel's body and its tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "loop/kernel.h"

namespace tenon::codegen {

// The number of lanes for a vector loop; nullopt unless its extent is a power of two up to 64.
std::optional<unsigned> vector_width(const loop::For& loop);

// What is known of an integer: it is `remainder` plus a multiple of `modulus`; of modulus 0, it is
// `remainder`. 0 <= remainder < modulus unless the modulus is 0.
struct Congruence {
  int64_t modulus = 1, remainder = 0;
};

struct VectorLoop {
  const loop::Var* var = nullptr;
  unsigned width = 1;
  Congruence begin;  // of `var` in lane 0
};

// How far an integer in each lane is from that in lane 0.
using LaneOffsets = std::vector<int64_t>;
// The difference between adjacent lanes, if that is the same for all.
std::optional<int64_t> stride_of(const LaneOffsets& offsets);

class Facts {
 public:
  explicit Facts(const loop::Kernel& kernel);

  // Whether it has vector or unrolled loops: then its schedule left no loops for LLVM to vectorise.
  bool is_scheduled() const { return is_scheduled_; }
  // The number of values that scratch holds per element, contiguously: one per lane if it is
  // allocated in a vector loop. 1 for all other buffers.
  unsigned lanes_of(const loop::Buffer& buffer) const;

  // Must be called before any query about an expression in the variable's scope.
  void define(const loop::Let& let) { define(*let.var, {let.value.get(), true}); }
  void define(const loop::For& loop) { define(*loop.var, {loop.begin.get(), false}); }

  // Whether it loads or may stop the kernel, so that it may only be evaluated where the program
  // does.
  bool can_fail(const loop::Expr& e);
  // Whether it is certainly an integer >= 0. For sums and products this is known only in kernels
  // that are in bounds, whose index arithmetic doesn't overflow; elsewhere they may wrap.
  bool nonnegative(const loop::Expr& e);
  // Of the value; in a vector loop, of its value in lane 0.
  Congruence first_lane(const loop::Expr& e) { return first_lane(e, 8); }

  // Between these two calls, the queries below refer to this vector loop.
  void enter(const VectorLoop& loop);
  void leave();
  // Whether the value may differ between lanes; false outside vector loops.
  bool varies(const loop::Expr& e);
  // Null if they aren't known constants.
  const LaneOffsets* lane_offsets(const loop::Expr& e);
  // The difference between adjacent lanes if it is a known constant; 0 if the value doesn't vary.
  std::optional<int64_t> lane_stride(const loop::Expr& e);
  // Whether the loop may run all lanes at once: no two lanes store in the same place, and control
  // flow differs between lanes only by masks. That no lane reads what another stores is the promise
  // of the kernel's author.
  bool can_vectorise(const loop::Stmt& body) { return can_vectorise(body, false); }

 private:
  // What a variable is bound to: a Let's value, or the first value of a loop variable.
  struct Definition {
    const loop::Expr* value = nullptr;
    bool is_let = false;
    bool operator==(const Definition&) const = default;
  };
  void define(const loop::Var& var, Definition definition);
  const loop::Expr* let_value(const loop::Var& var) const;  // null for a loop variable
  bool is_size(const loop::Expr& e);                        // consists only of literals and sizes
  bool find_nonnegative(const loop::Expr& e);
  std::optional<LaneOffsets> find_lane_offsets(const loop::Expr& e);
  Congruence first_lane(const loop::Expr& e, int levels);
  bool can_vectorise(const loop::Stmt& s, bool masked);

  const bool in_bounds_;
  bool is_scheduled_ = false;
  std::unordered_map<const loop::Buffer*, unsigned> lanes_of_;
  std::unordered_map<const loop::Var*, Definition> definitions_;
  std::unordered_map<const loop::Expr*, bool> can_fail_, is_size_, nonnegative_;

  VectorLoop vector_;
  std::unordered_map<const loop::Expr*, bool> varies_;
  LaneOffsets no_offsets_;  // of what doesn't vary
  std::unordered_map<const loop::Expr*, std::optional<LaneOffsets>> lane_offsets_;
};

}  // namespace tenon::codegen
