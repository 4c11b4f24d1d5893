// Padding. Negative pads crop; cropping happens before padding.
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

struct Pads {
  std::vector<Dim> before, after;
  std::string mode;
};

Pads pads_of(const InferContext& cx, int64_t rank) {
  Pads p{cx.attr_dims("before"), cx.attr_dims("after"),
         std::string(std::string_view(cx.attr_string("mode")))};
  for (const auto& [name, count] :
       {std::pair("before", p.before.size()), std::pair("after", p.after.size())}) {
    if (static_cast<int64_t>(count) != rank) {
      cx.fail(cat("'", name, "' has ", count, " entries, but 'x' has rank ", rank));
    }
  }
  if (p.mode != "constant" && p.mode != "reflect" && p.mode != "edge" && p.mode != "wrap") {
    cx.fail(cat("'mode' is \"", p.mode, "\", expected constant, reflect, edge or wrap"));
  }
  return p;
}

// How many elements a pad removes.
Dim cropped(const Dim& pad) {
  return max(Dim(0) - pad, 0);
}

TypeRef infer_pad(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  Pads p = pads_of(cx, x.rank);
  if (cx.has(1)) {
    require_same_dtype(cx, 1, 0);
    require_one_element(cx, 1);
  } else if (x.dtype == string_elements && p.mode == "constant") {
    cx.fail("'value' is absent; only numbers are padded with 0 by default");
  }
  std::vector<Dim> dims = dims_of(x);
  for (size_t i = 0; i < dims.size(); ++i) {
    Dim left = dims[i] - cropped(p.before[i]) - cropped(p.after[i]);
    bool pads = !p.before[i].is_const(0) || !p.after[i].is_const(0);
    cx.require_less_equal(p.mode != "constant" && pads ? 1 : 0, left,
                          cat("axis ", i, ": size after cropping"));
    dims[i] = dims[i] + p.before[i] + p.after[i];
  }
  return tensor_type(x.dtype, dims);
}

// Whether neither side needs more elements than `most`.
bool at_most(const Dim& before, const Dim& after, const Dim& most) {
  return proves_less_equal(before, most) && proves_less_equal(after, most);
}

// The place among m elements, or what stands before or after them. Kernels compute each of these
// parts of an axis on its own.
Scalar around(const Scalar& place, const Dim& before, const Dim& after, const Dim& m,
              const Scalar& left, const Scalar& right) {
  const Scalar from_m =
      proves_less_equal(after, 0) ? place : select(lt(place, size(m)), place, right);
  return proves_less_equal(before, 0) ? from_m : select(lt(place, index(0)), left, from_m);
}

// The place in x for place `i` of the result, for modes that copy elements of x: the m elements
// from `low` on are mirrored, repeated or extended.
Scalar source(const std::string& mode, const Scalar& i, const Dim& before, const Dim& after,
              const Dim& extent) {
  if (before.is_const(0) && after.is_const(0)) return i;
  Dim low = cropped(before), m = extent - low - cropped(after);
  Scalar place = i - size(max(before, 0));
  if (mode == "edge") {
    place = clamp(place, m);
  } else if (mode == "wrap") {
    place = at_most(before, after, m)
                ? around(place, before, after, m, place + size(m), place - size(m))
                : modulo(place, size(m));
  } else {
    Dim period = (m - 1) * 2;
    if (at_most(before, after, m - 1)) {
      place = around(place, before, after, m, index(0) - place, size(period) - place);
    } else {
      Scalar turn = modulo(place, size(max(period, 1)));
      place = select(lt(turn, size(m)), turn, size(period) - turn);
    }
  }
  // If there is nothing to copy, no place is in range.
  return place + window(low, 1, low + m);
}

loop::ComputeRef lower_pad(const LowerContext& cx) {
  const BufferRef& x = cx.input(0);
  Pads p = pads_of(cx.info(), cx.info().tensor(0).rank);
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    Indices at = i;
    Scalar inside;
    auto guard = [&](const Scalar& condition) {
      inside = inside ? both(inside, condition) : condition;
    };
    for (size_t k = 0; k < at.size(); ++k) {
      if (p.mode != "constant") {
        at[k] = source(p.mode, i[k], p.before[k], p.after[k], x->shape[k]);
        continue;
      }
      at[k] = p.before[k].is_const(0) ? i[k] : i[k] - size(p.before[k]);
      if (!proves_less_equal(p.before[k], 0)) guard(le(index(0), at[k]));
      if (!proves_less_equal(p.after[k], 0)) guard(lt(at[k], size(x->shape[k])));
    }
    Scalar element = load(x, at);
    if (!inside) return element;
    const BufferRef* fill = cx.info().has(1) ? &cx.input(1) : nullptr;
    return select(
        inside, element,
        fill ? load(*fill, Indices((*fill)->shape.size(), index(0))) : loop::zero(x->dtype));
  })});
}

Sample sample_pad(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(0, 4), before, after;
  for (int64_t& n : shape) {
    n = std::max<int64_t>(n, 1);
    before.push_back(random.between(0, 4) == 0 ? -random.between(0, n - 1) : random.between(0, 5));
    int64_t left = n + std::min<int64_t>(before.back(), 0);
    after.push_back(random.between(0, 4) == 0 ? -random.between(0, left - 1)
                                              : random.between(0, 5));
  }
  DataType dtype = random.dtype(op.operands[0].dtypes);
  return {{sample_tensor(dtype, shape), random.coin() ? sample_tensor(dtype, {}) : unit_type()},
          attrs({{"before", attr_dims(to_dims(before))},
                 {"after", attr_dims(to_dims(after))},
                 {"mode", random.pick<String>({"constant", "reflect", "edge", "wrap"})}})};
}

}  // namespace

void register_pad(OperatorTable& table) {
  table.add(
      {.name = "pad",
       .kind = OpKind::kMovement,
       .operands = {{"x", kData}, {"value", kData, OperandSpec::kOptional}},
       .attrs = {{"before", AttrKind::kDims, nullptr, "elements added at the start of each axis"},
                 {"after", AttrKind::kDims, nullptr, "at its end; negative ones crop"},
                 {"mode", AttrKind::kString, "\"constant\"",
                  "constant (value, or 0), reflect, edge or wrap"}},
       .summary = "x with elements added around it",
       .infer = infer_pad,
       .lower = lower_pad,
       .sample = sample_pad,
       .layout = LayoutRule::kNamedAxes});
}

}  // namespace tenon::graph
