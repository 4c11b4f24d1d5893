#include "graph/pass/convert_conv_transpose.h"

#include <algorithm>
#include <optional>

#include "graph/ir/permutation.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

// Neighbouring phases, each with `taps` taps.
struct PhaseClass {
  int64_t first, count, taps;
};

// One spatial axis. Place t of a convolution's result is made of elements up to t + skipped of x.
struct SpatialAxis {
  Dim extent, size;  // of x, of the result
  int64_t kernel, stride, dilation;
  std::vector<PhaseClass> classes;
  int64_t skipped = 0;  // places at the begin that nothing reads
  int64_t after = 0;    // padding at the end
  int64_t start = 0;    // of the result in the spread places

  Dim places() const { return extent + (after - skipped); }
  // Padding that a class needs at the begin.
  int64_t before(const PhaseClass& own) const { return (own.taps - 1) * dilation - skipped; }
};

// The transposed convolution along one axis as classes of phases; `begin` and `end` are its pads,
// `extra` its output_padding.
SpatialAxis planned(SpatialAxis axis, int64_t begin, int64_t end, int64_t extra) {
  if (axis.kernel == 1) axis.dilation = 1;
  // Of one element, any stride makes the same; with this one, no product is one of padding.
  if (axis.extent.is_const(1) && axis.dilation == 1) axis.stride = axis.kernel;
  const int64_t s = axis.stride, taps = (axis.kernel - 1) / s + 1;
  const int64_t phases = axis.kernel - (taps - 1) * s;  // with that many
  axis.classes = {{0, phases, taps}};
  if (phases < s) axis.classes.push_back({phases, s - phases, taps - 1});
  const int64_t least = std::max<int64_t>(axis.classes.back().taps, 1);
  axis.skipped = std::min(begin / s, (least - 1) * axis.dilation);
  axis.start = begin - axis.skipped * s;
  const int64_t reach = (axis.kernel - 1) * axis.dilation + extra - end;
  axis.after = reach < 0 ? 0 : reach / s;
  return axis;
}

// Whether far more places would be computed along an axis than its result keeps, as of a large
// stride whose places the pads crop again.
bool is_wasteful(const SpatialAxis& axis, int64_t begin, int64_t end) {
  constexpr int64_t kLarge = 4096;
  const auto size = axis.size.as_const(), places = axis.places().as_const();
  if (size && places) return *places > 0 && axis.stride > (*size / *places) * 2 + kLarge / *places;
  const int64_t reach = (axis.kernel - 1) * axis.dilation + axis.stride;
  return axis.stride > kLarge || std::max(begin, end) > reach;
}

class Converter : public Rewriter {
 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const Call* call = as_op(value, op::conv_transpose);
    const TensorType* type = call ? known_tensor(var->type) : nullptr;
    if (!type || !read(*call, *type)) return keep(var, value);
    return convolved();
  }

 private:
  // ---- what the call says ----

  bool read(const Call& call, const TensorType& result) {
    const TensorType *x = known_tensor(call.args[0]), *w = known_tensor(call.args[1]);
    if (!x || !w || !x->dtype.is_float() || x->rank < 3 || x->rank > 5) return false;
    x_ = call.args[0];
    w_ = call.args[1];
    bias_ = call.args.size() > 2 ? call.args[2] : Operand();
    dtype_ = x->dtype;
    batch_ = x->dims[0];
    last_ = is_channels_last(call);
    groups_ = call.attrs.at("groups").as<int64_t>();
    const auto n = static_cast<size_t>(x->rank - 2);
    channels_ = w->dims[last_ ? n : 0];
    filters_ = w->dims[last_ ? n + 1 : 1];
    if (groups_ > 1 && !(channels_.is_const() && filters_.is_const())) return false;
    const std::vector<int64_t> strides = ints(call, "strides", n, 1),
                               dilations = ints(call, "dilations", n, 1),
                               extra = ints(call, "output_padding", n, 0);
    auto pads = call.attrs.at("pads").as<Array<Dim>>().to_vector();
    if (pads.empty()) pads.assign(2 * n, Dim(0));
    axes_.clear();
    for (size_t i = 0; i < n; ++i) {
      const auto kernel = w->dims[last_ ? i : 2 + i].as_const();
      const auto begin = pads[i].as_const(), end = pads[n + i].as_const();
      if (!kernel || !begin || !end || *begin < 0 || *end < 0) return false;
      if (*kernel > 1 && dilations[i] > 1 && strides[i] > 1) return false;
      const size_t at = (last_ ? 1 : 2) + i;
      axes_.push_back(planned({.extent = x->dims[at],
                               .size = result.dims[at],
                               .kernel = *kernel,
                               .stride = strides[i],
                               .dilation = dilations[i],
                               .classes = {}},
                              *begin, *end, extra[i]));
      if (is_wasteful(axes_.back(), *begin, *end)) return false;
    }
    return true;
  }

  static std::vector<int64_t> ints(const Call& call, const char* name, size_t n, int64_t missing) {
    auto all = call.attrs.at(name).as<Array<int64_t>>().to_vector();
    return all.empty() ? std::vector<int64_t>(n, missing) : all;
  }

  // ---- the result ----

  Operand convolved() {
    const size_t n = axes_.size();
    Operand x = x_;
    std::vector<int64_t> to_last = {0};
    for (size_t i = 0; i < n; ++i) to_last.push_back(static_cast<int64_t>(2 + i));
    to_last.push_back(1);
    if (!last_) x = transposed(x, to_last);
    // A convolution requires a place, which an axis of any size may not have.
    is_product_ = groups_ == 1 && std::ranges::all_of(axes_, [](const SpatialAxis& axis) {
                    return axis.classes[0].taps == 1 && axis.after == 0 && axis.skipped == 0;
                  });
    for (SpatialAxis& axis : axes_) {
      if (!is_product_ && !proves_less_equal(1, axis.places())) {
        axis.after = std::max(axis.after, axis.skipped + 1 - axis.extent.as_const().value_or(0));
      }
    }
    if (is_depthwise()) separate();
    const Operand w = spread_weights();
    std::vector<PhaseClass> chosen;
    const Operand y = cropped(spread(joined(x, w, &chosen)));
    return last_ ? y : transposed(y, inverse_permutation(to_last));
  }

  bool is_depthwise() const {
    return groups_ > 1 && channels_.is_const(groups_) && filters_.is_const(1);
  }
  // Makes each phase a class. A convolution of each channel for itself is several times as fast
  // with one filter, but there shouldn't be very many.
  void separate() {
    constexpr int64_t kMostPhases = 16;
    int64_t phases = 1;
    for (const SpatialAxis& axis : axes_) {
      if (axis.stride > kMostPhases) return;
      phases *= axis.stride;
    }
    if (phases > kMostPhases) return;
    for (SpatialAxis& axis : axes_) {
      std::vector<PhaseClass> all;
      for (const PhaseClass& several : axis.classes) {
        for (int64_t i = 0; i < several.count; ++i) {
          all.push_back({several.first + i, 1, several.taps});
        }
      }
      axis.classes = all;
    }
  }

  // [n, t..., group, r..., filter] as [n, (t, r)..., (group, filter)].
  Operand spread(const Operand& phases) {
    const size_t n = axes_.size();
    std::vector<int64_t> perm = {0};
    std::vector<Dim> shape = {batch_};
    for (size_t i = 0; i < n; ++i) {
      const auto t = static_cast<int64_t>(1 + i), r = t + static_cast<int64_t>(n + 1);
      perm.insert(perm.end(), {t, r});
      shape.push_back(axes_[i].places() * axes_[i].stride);
    }
    perm.insert(perm.end(), {static_cast<int64_t>(n + 1), static_cast<int64_t>(2 * n + 2)});
    shape.push_back(filters_ * groups_);
    const bool moves = std::ranges::any_of(axes_, [](const auto& axis) { return axis.stride > 1; });
    return reshaped(builder(), moves ? transposed(phases, perm) : phases, shape);
  }

  // The places of the result.
  Operand cropped(const Operand& y) {
    const auto& dims = known_tensor(y)->dims;
    std::vector<Dim> starts = {0}, sizes = {batch_};
    for (const SpatialAxis& axis : axes_) {
      starts.emplace_back(axis.start);
      sizes.push_back(axis.size);
    }
    starts.emplace_back(0);
    sizes.push_back(filters_ * groups_);
    if (std::ranges::equal(dims, sizes, proves_equal)) return y;
    return make(op::slice, {y}, {{"starts", attr_dims(starts)}, {"sizes", attr_dims(sizes)}});
  }

  // All phases of the axes that aren't chosen yet, of the chosen classes of the others.
  Operand joined(const Operand& x, const Operand& w, std::vector<PhaseClass>* chosen) {
    const size_t axis = chosen->size(), n = axes_.size();
    if (axis == n) return phases_of(x, w, *chosen);
    std::vector<Operand> parts;
    for (const PhaseClass& one : axes_[axis].classes) {
      chosen->push_back(one);
      parts.push_back(joined(x, w, chosen));
      chosen->pop_back();
    }
    if (parts.size() == 1) return parts[0];
    return builder().op(op::concat, parts,
                        attrs({{"axis", Any(static_cast<int64_t>(n + 2 + axis))}}));
  }

  // One class of phases along each axis.
  Operand phases_of(const Operand& x, const Operand& w, const std::vector<PhaseClass>& chosen) {
    std::vector<Dim> shape = {batch_};
    for (const SpatialAxis& axis : axes_) shape.push_back(axis.places());
    shape.emplace_back(groups_);
    Operand bias = bias_;
    if (bias) {
      std::vector<Dim> alone = {groups_}, repeated = {groups_};
      for (const PhaseClass& one : chosen) {
        alone.emplace_back(1);
        repeated.emplace_back(one.count);
      }
      alone.push_back(filters_);
      repeated.push_back(filters_);
      bias = expanded(reshaped(builder(), bias, alone), repeated);
    }
    Dim phases = 1;
    for (const PhaseClass& one : chosen) {
      shape.emplace_back(one.count);
      phases = phases * one.count;
    }
    shape.push_back(filters_);
    if (std::ranges::any_of(chosen, [](const PhaseClass& one) { return one.taps == 0; })) {
      return expanded(bias ? bias : number_constant(dtype_, 0), shape);
    }
    const Dim all = phases * filters_ * groups_;
    if (bias) bias = reshaped(builder(), bias, {all});
    return reshaped(builder(), product_of(x, weights_of(w, chosen), bias, chosen), shape);
  }

  Operand product_of(const Operand& x, const Operand& w, const Operand& bias,
                     const std::vector<PhaseClass>& chosen) {
    if (is_product_) {
      const auto& dims = known_tensor(w)->dims;
      const Operand y =
          make(op::matmul, {x, reshaped(builder(), w, {dims[dims.size() - 2], dims.back()})});
      return bias ? make(op::add, {y, bias}) : y;
    }
    std::vector<Dim> before, after;
    std::vector<int64_t> dilations;
    for (size_t i = 0; i < axes_.size(); ++i) {
      before.emplace_back(axes_[i].before(chosen[i]));
      after.emplace_back(axes_[i].after);
      dilations.push_back(axes_[i].dilation);
    }
    before.insert(before.end(), after.begin(), after.end());
    return make(op::conv, {x, w, bias},
                {{"pads", attr_dims(before)},
                 {"dilations", attr_ints(dilations)},
                 {"groups", Any(groups_)},
                 {"layout", Any(String(kChannelsLast))}});
  }

  // ---- weights ----

  // As [channel, filter, q, r, ...], the entries filled up with zeros, which no class has.
  Operand spread_weights() {
    const size_t n = axes_.size();
    Operand w = w_;
    if (last_) {
      std::vector<int64_t> perm = {static_cast<int64_t>(n), static_cast<int64_t>(n + 1)};
      for (size_t i = 0; i < n; ++i) perm.push_back(static_cast<int64_t>(i));
      w = transposed(w, perm);
    }
    std::vector<Dim> after = {0, 0}, shape = {channels_, filters_};
    for (const SpatialAxis& axis : axes_) {
      const int64_t taps = axis.classes[0].taps;
      after.emplace_back(taps * axis.stride - axis.kernel);
      shape.insert(shape.end(), {Dim(taps), Dim(axis.stride)});
    }
    if (!std::ranges::all_of(after, [](const Dim& d) { return d.is_const(0); })) {
      w = make(
          op::pad, {w},
          {{"before", attr_dims(std::vector<Dim>(n + 2, Dim(0)))}, {"after", attr_dims(after)}});
    }
    return reshaped(builder(), w, shape);
  }

  // Of the classes, flipped: [q..., channel of a group, group x r... x filter].
  Operand weights_of(const Operand& spread, const std::vector<PhaseClass>& chosen) {
    const auto n = static_cast<int64_t>(chosen.size());
    std::vector<Dim> starts = {0, 0}, sizes = {channels_, filters_};
    std::vector<int64_t> steps = {1, 1};
    const Dim own = groups_ == 1 ? channels_ : Dim(*channels_.as_const() / groups_);
    std::vector<Dim> grouped = {groups_, own, filters_}, shape;
    std::vector<int64_t> perm;
    Dim phases = 1;
    for (const PhaseClass& one : chosen) {
      starts.insert(starts.end(), {Dim(one.taps - 1), Dim(one.first)});
      sizes.insert(sizes.end(), {Dim(one.taps), Dim(one.count)});
      steps.insert(steps.end(), {-1, 1});
      grouped.insert(grouped.end(), {Dim(one.taps), Dim(one.count)});
      perm.push_back(3 + 2 * static_cast<int64_t>(perm.size()));
      shape.emplace_back(one.taps);
      phases = phases * one.count;
    }
    perm.insert(perm.end(), {1, 0});
    for (int64_t i = 0; i < n; ++i) perm.push_back(4 + 2 * i);
    perm.push_back(2);
    shape.insert(shape.end(), {own, phases * filters_ * groups_});
    const Operand part = make(
        op::slice, {spread},
        {{"starts", attr_dims(starts)}, {"sizes", attr_dims(sizes)}, {"steps", attr_ints(steps)}});
    return reshaped(builder(), transposed(reshaped(builder(), part, grouped), perm), shape);
  }

  // ---- calls ----

  Operand transposed(const Operand& x, const std::vector<int64_t>& perm) {
    return make(op::transpose, {x}, {{"perm", attr_ints(perm)}});
  }
  Operand expanded(const Operand& x, const std::vector<Dim>& shape) {
    return make(op::expand, {x}, {{"shape", attr_dims(shape)}});
  }
  Operand make(std::string_view name, const std::vector<Operand>& args,
               std::initializer_list<std::pair<const char*, Any>> how = {}) {
    return builder().op(name, args, attrs(how));
  }

  // Of the call that is rewritten.
  Operand x_, w_, bias_;  // bias may be absent
  DataType dtype_;
  Dim batch_, channels_, filters_;  // of x; filters of one group
  int64_t groups_ = 1;
  bool last_ = false;        // whether its channels are
  bool is_product_ = false;  // of pixels and weights
  std::vector<SpatialAxis> axes_;
};

}  // namespace

Module convert_conv_transpose(const Module& module, PassContext&) {
  return Converter().run(module);
}

}  // namespace tenon::graph
