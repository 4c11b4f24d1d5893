// What is known of a kernel's expressions before they are emitted: signs, strides between lanes,
// and whether they can fail. Emits nothing. One Facts serves a kernel's body and its tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "loop/kernel.h"

namespace tenon::codegen {

// The lanes that a loop would have: a vector loop whose extent is a power of two up to 64.
std::optional<unsigned> vector_width(const loop::For& loop);

struct VectorLoop {
  const loop::Var* var = nullptr;
  unsigned width = 1;
  int64_t begin_multiple = 1;  // divides the value of `var` in lane 0
};

class Facts {
 public:
  explicit Facts(const loop::Kernel& kernel);

  // Whether it has vector or unrolled loops: its schedule then left LLVM no loops to vectorise.
  bool is_scheduled() const { return is_scheduled_; }
  // How many values scratch holds per element, next to each other: one per lane when it is
  // allocated in a vector loop. 1 for all other buffers.
  unsigned lanes_of(const loop::Buffer& buffer) const;

  // Called before anything is asked about an expression in scope of the variable.
  void define(const loop::Let& let) { define(*let.var, {let.value.get(), true}); }
  void define(const loop::For& loop) { define(*loop.var, {loop.begin.get(), false}); }

  // Whether it loads or may stop the kernel, and so may be evaluated only where the program does.
  bool can_fail(const loop::Expr& e);
  // Whether it is an integer that is surely at least 0. Of sums and products this is known only in
  // kernels that are in bounds, whose index arithmetic doesn't overflow; elsewhere they may wrap.
  bool nonnegative(const loop::Expr& e);
  // A divisor of the value, in a vector loop of its value in lane 0.
  int64_t first_lane_multiple(const loop::Expr& e) { return first_lane_multiple(e, 8); }

  // Between these two, the three below are about this vector loop.
  void enter(const VectorLoop& loop);
  void leave();
  // Whether the lanes may have different values; false outside vector loops.
  bool varies(const loop::Expr& e);
  // The difference from lane to lane where that is a known constant: 0 if it doesn't vary.
  std::optional<int64_t> lane_stride(const loop::Expr& e);
  // Whether the loop may run all its lanes at once: lanes don't meet in one element, and control
  // differs between them only by masks.
  bool can_vectorise(const loop::Stmt& body) { return can_vectorise(body, false); }

 private:
  // What a variable is bound to: the value of a Let, or the first value of a loop's variable.
  struct Definition {
    const loop::Expr* value = nullptr;
    bool is_let = false;
    bool operator==(const Definition&) const = default;
  };
  void define(const loop::Var& var, Definition definition);
  const loop::Expr* let_value(const loop::Var& var) const;  // null for a loop's variable
  bool find_nonnegative(const loop::Expr& e);
  std::optional<int64_t> find_lane_stride(const loop::Expr& e);
  int64_t first_lane_multiple(const loop::Expr& e, int levels);
  bool can_vectorise(const loop::Stmt& s, bool masked);

  const bool in_bounds_;
  bool is_scheduled_ = false;
  std::unordered_map<const loop::Buffer*, unsigned> lanes_of_;
  std::unordered_map<const loop::Var*, Definition> definitions_;
  std::unordered_map<const loop::Expr*, bool> can_fail_, nonnegative_;

  VectorLoop vector_;
  std::unordered_map<const loop::Expr*, bool> varies_;
  std::unordered_map<const loop::Expr*, std::optional<int64_t>> lane_strides_;
};

}  // namespace tenon::codegen
