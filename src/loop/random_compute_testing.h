// Random computes for tests: chains of stages of every kind, over symbolic and constant sizes, with
// sizes and inputs to run them.
#pragma once

#include <random>
#include <vector>

#include "loop/tensors_testing.h"

namespace tenon::loop {

class RandomCompute {
 public:
  explicit RandomCompute(unsigned seed) : rng_(seed) {
    static const int64_t kSizes[] = {1, 2, 3, 5, 8, 16, 17, 33, 40};
    for (const char* name : {"n", "m", "k"}) {
      int64_t size = pick(12) == 0 ? 0 : kSizes[static_cast<size_t>(pick(9))];
      dims_.push_back({Dim::symbol(name), size});
      symbols_[name] = size;
    }
    dims_.push_back({Dim(1), 1});
    dims_.push_back({Dim(12), 12});
    int inputs = 1 + pick(3);
    for (int i = 0; i < inputs; ++i) {
      std::vector<Size> shape;
      for (int r = pick(4); r >= 0; --r) shape.push_back(dims_[static_cast<size_t>(pick(5))]);
      if (pick(8) == 0) shape.clear();
      inputs_.push_back(make_buffer(cat("x", i), f32, shape));
    }
    int count = 1 + pick(4);
    for (int i = 0; i < count; ++i) stages_.push_back(make_stage(i, i + 1 == count));
    outputs_.push_back(stages_.back()->out);
    const size_t states = state_shapes_.size();
    for (size_t i = 0; i + states < inputs_.size(); ++i) {
      tensors_.push_back(random_tensor(f32, known_[i].shape, &rng_));
    }
    for (const auto& shape : state_shapes_) tensors_.push_back(random_tensor(f32, shape, &rng_));
    compute_ = compute_of(inputs_, stages_, outputs_);
  }

  const ComputeRef& compute() const { return compute_; }
  const std::vector<Tensor>& inputs() const { return tensors_; }
  const Symbols& symbols() const { return symbols_; }

 private:
  struct Size {
    Dim dim;
    int64_t size;
  };
  struct Known {
    Ref<const Buffer> buffer;
    std::vector<Size> dims;
    std::vector<int64_t> shape;
  };

  int pick(int below) { return static_cast<int>(rng_() % static_cast<unsigned>(below)); }

  Ref<const Buffer> make_buffer(const std::string& name, DataType t,
                                const std::vector<Size>& dims) {
    std::vector<Dim> shape;
    Known k;
    for (const Size& d : dims) {
      shape.push_back(d.dim);
      k.shape.push_back(d.size);
    }
    k.buffer = buffer(name, t, shape);
    k.dims = dims;
    known_.push_back(k);
    return k.buffer;
  }

  // An earlier buffer at indices in range: variables with its extents, constants, and sometimes a
  // guarded shifted variable.
  ExprRef random_load(const std::vector<ExprRef>& vars, const std::vector<Size>& extents,
                      size_t before) {
    const Known& k = known_[static_cast<size_t>(pick(static_cast<int>(before)))];
    Indices at_element;
    ExprRef guard = literal_int(boolean, 1);
    for (const Size& d : k.dims) {
      std::vector<size_t> fitting;
      for (size_t v = 0; v < vars.size(); ++v) {
        if (extents[v].dim == d.dim) fitting.push_back(v);
      }
      if (fitting.empty()) {
        if (d.size == 0) guard = literal_int(boolean, 0);
        // Symbolic sizes may be 0: the element is accessed only if it exists.
        guard = binary(BinaryOp::kAnd, guard, binary(BinaryOp::kLt, index(0), dim_value(d.dim)));
        at_element.push_back(index(0));
        continue;
      }
      ExprRef i = vars[fitting[static_cast<size_t>(pick(static_cast<int>(fitting.size())))]];
      if (pick(8) == 0) {
        i = binary(BinaryOp::kAdd, i, index(pick(3) - 1));
        guard = binary(BinaryOp::kAnd, guard, binary(BinaryOp::kLe, index(0), i));
        guard = binary(BinaryOp::kAnd, guard, binary(BinaryOp::kLt, i, dim_value(d.dim)));
      }
      at_element.push_back(i);
    }
    ExprRef value = load(k.buffer, Array<ExprRef>(at_element));
    if (value->dtype != f32) value = cast(f32, value);
    return select(guard, value, literal(f32, pick(2)));
  }

  ExprRef any_integer() {
    static const int64_t kAny[] = {INT64_MIN, INT64_MAX, int64_t{1} << 62, -8, -4, -3, -1, 1, 2, 3,
                                   5,         8};
    return index(kAny[pick(12)]);
  }
  // An integer made of variables, which may wrap, by operations with each other and with any
  // integer but 0.
  ExprRef random_position(const std::vector<ExprRef>& vars) {
    static const BinaryOp kOps[] = {BinaryOp::kAdd, BinaryOp::kSub,      BinaryOp::kMul,
                                    BinaryOp::kMod, BinaryOp::kFloorDiv, BinaryOp::kMin};
    const auto any_of = [&] {
      return vars[static_cast<size_t>(pick(static_cast<int>(vars.size())))];
    };
    ExprRef p = any_of();
    for (int i = pick(4); i > 0; --i) {
      switch (pick(6)) {
        case 0:
          p = binary(kOps[pick(3)], p, binary(BinaryOp::kMul, any_of(), any_integer()));
          break;
        case 1:
          p = cast(i64, cast(i32, p));
          break;
        default:
          p = binary(kOps[pick(6)], p, any_integer());
      }
    }
    return p;
  }

  ExprRef random_body(const std::vector<ExprRef>& vars, const std::vector<Size>& extents,
                      size_t before) {
    ExprRef e = random_load(vars, extents, before);
    for (int i = pick(4); i > 0; --i) {
      switch (pick(vars.empty() ? 5 : 8)) {
        case 0:
          e = unary(UnaryOp::kTanh, e);
          break;
        case 1:
          e = e + random_load(vars, extents, before);
          break;
        case 2:
          e = unary(UnaryOp::kTanh, e) * random_load(vars, extents, before);
          break;
        case 3:
          e = binary(BinaryOp::kMax, e, literal(f32, 0));
          break;
        case 4:
          e = e - e * literal(f32, 0.25);
          break;
        case 5:
          e = e + cast(f32, vars[static_cast<size_t>(pick(static_cast<int>(vars.size())))]);
          break;
        case 6:
          e = e + cast(f32, binary(BinaryOp::kMod, random_position(vars), index(7)));
          break;
        default: {
          ExprRef a = random_position(vars);
          ExprRef b = pick(2) ? any_integer() : random_position(vars);
          if (pick(2)) std::swap(a, b);
          e = select(binary(BinaryOp::kLe, a, b), e, literal(f32, 0));
        }
      }
    }
    return e;
  }

  // An input that one stage reads, at the element that it writes: its result may overwrite it.
  Ref<const Buffer> make_state(int number, const std::vector<Size>& sizes) {
    std::vector<Dim> shape;
    std::vector<int64_t>& known = state_shapes_.emplace_back();
    for (const Size& s : sizes) {
      shape.push_back(s.dim);
      known.push_back(s.size);
    }
    inputs_.push_back(buffer(cat("h", number), f32, shape));
    return inputs_.back();
  }

  Ref<const Stage> make_stage(int number, bool last) {
    size_t before = known_.size();
    std::vector<Size> shape =
        known_[before - 1].dims;  // likely to be fused with the previous stage
    if (pick(3) == 0) {
      shape.clear();
      for (int r = pick(4); r > 0; --r) shape.push_back(dims_[static_cast<size_t>(pick(5))]);
    }
    if (!last && pick(3) == 0) outputs_.push_back(nullptr);
    bool is_output = !outputs_.empty() && !outputs_.back();
    int kind = pick(6);
    std::vector<Size> over;
    if (kind >= 3) {
      for (int r = pick(2); r >= 0; --r) over.push_back(dims_[static_cast<size_t>(pick(5))]);
      if (shape.size() > 1 && pick(2) == 0) {  // drop an axis
        over = {shape.back()};
        shape.pop_back();
      }
    }
    auto points = [&] {
      int64_t all = 1;
      for (const Size& d : shape) all *= d.size;
      for (const Size& d : over) all *= d.size;
      return all;
    };
    while (points() > 8000) (shape.empty() ? over : shape).pop_back();  // the evaluator is slow
    Reduction reduction = kind == 3   ? Reduction::kSum
                          : kind == 4 ? Reduction::kMax
                                      : Reduction::kArgMaxFirst;
    if (kind == 5 && over.size() != 1) reduction = Reduction::kSum;
    DataType t = is_arg_reduction(reduction) && kind >= 3 ? i64 : f32;
    auto out = make_buffer(cat("s", number), t, shape);
    if (is_output) outputs_.back() = out;
    std::vector<Size> all = shape;
    all.insert(all.end(), over.begin(), over.end());
    if (kind < 3) {
      const bool updates_state = pick(2) == 0;
      return map_stage(out, [&](const Indices& i) {
        const ExprRef e = random_body(i, all, before);
        return updates_state ? e + load(make_state(number, shape), Array<ExprRef>(i)) : e;
      });
    }
    std::vector<Dim> extents;
    extents.reserve(over.size());
    for (const Size& s : over) extents.push_back(s.dim);
    bool product = reduction == Reduction::kSum && pick(2) == 0;
    return reduce_stage(out, reduction, extents, [&](const Indices& i, const Indices& k) {
      Indices vars = i;
      vars.insert(vars.end(), k.begin(), k.end());
      ExprRef e = random_body(vars, all, before);
      return product ? random_load(vars, all, before) * random_load(vars, all, before) : e;
    });
  }

  std::mt19937 rng_;
  std::vector<Size> dims_;
  Symbols symbols_;
  std::vector<Known> known_;
  std::vector<Ref<const Buffer>> inputs_, outputs_;
  std::vector<std::vector<int64_t>> state_shapes_;  // of the last inputs
  std::vector<Ref<const Stage>> stages_;
  ComputeRef compute_;
  std::vector<Tensor> tensors_;
};

}  // namespace tenon::loop
