// Operators that move elements: reshape, transpose, expand, concat, split, slice, tile.
#include "graph/op/families.h"
#include "graph/op/index.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

// The carried values of the only operand, for operators that keep the order of elements.
Values same_values(const InferContext& cx, const TensorType& result) {
  auto count = carried_count(result);
  auto values = values_of(cx, 0);
  if (!count || !values || static_cast<int64_t>(values->size()) != *count) return std::nullopt;
  return values;
}

TypeRef sample_any(Random& random, const std::vector<int64_t>& shape) {
  return sample_tensor(random.dtype(kAll), shape);
}

// ---- reshape ----

TypeRef infer_reshape(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  std::vector<Dim> shape = cx.attr_dims("shape");
  for (const Dim& d : shape) {
    if (d.is_const() && *d.as_const() < 0) {
      cx.fail(cat("'shape' holds the size ", d, "; no size is inferred: state it, as in n*m"));
    }
  }
  cx.require_equal(product(dims_of(x)), product(shape), "number of elements of 'x' and of 'shape'");
  return tensor_type(x.dtype, shape);
}

// Splits both shapes into groups of axes with equally many elements, so that an index needs
// divisions only within a group: [b, s, h*d] -> [b*s, h, d] is {b, s | h*d} and {b*s | h, d}.
loop::ComputeRef lower_reshape(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  std::vector<Dim> from = dims_of(x), to = dims_of(y);
  struct Group {
    size_t from_begin, from_end, to_begin, to_end;
  };
  std::vector<Group> groups;
  size_t f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    Group best = {f, from.size(), t, to.size()};
    for (size_t i = f + 1; i <= from.size(); ++i) {
      for (size_t j = t + 1; j <= to.size(); ++j) {
        bool shorter = i + j < best.from_end + best.to_end;
        if (shorter && product({from.begin() + static_cast<std::ptrdiff_t>(f),
                                from.begin() + static_cast<std::ptrdiff_t>(i)}) ==
                           product({to.begin() + static_cast<std::ptrdiff_t>(t),
                                    to.begin() + static_cast<std::ptrdiff_t>(j)})) {
          best = {f, i, t, j};
        }
      }
    }
    groups.push_back(best);
    f = best.from_end, t = best.to_end;
  }
  auto slice = [](const auto& list, size_t begin, size_t end) {
    return std::remove_cvref_t<decltype(list)>(list.begin() + static_cast<std::ptrdiff_t>(begin),
                                               list.begin() + static_cast<std::ptrdiff_t>(end));
  };
  return cx.compute({map_stage(y, [&](const Indices& i) {
    Indices source;
    for (const Group& g : groups) {
      std::vector<Dim> own = slice(from, g.from_begin, g.from_end);
      std::vector<Dim> space = slice(to, g.to_begin, g.to_end);
      Scalar offset = flatten(slice(i, g.to_begin, g.to_end), space);
      offset = within(offset, product(space), product(own));
      Indices part = unflatten(offset, own);
      source.insert(source.end(), part.begin(), part.end());
    }
    return load(x, source);
  })});
}

Sample sample_reshape(const Operator&, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(0, 4), to;
  int64_t run = 1;
  for (int64_t n : shape) {  // merges some neighbouring axes
    run *= n;
    if (random.coin()) to.push_back(run), run = 1;
  }
  if (run != 1) to.push_back(run);
  if (random.coin()) to.insert(to.begin() + random.between(0, static_cast<int64_t>(to.size())), 1);
  if (random.coin()) std::swap(shape, to);
  return {{sample_any(random, shape)}, attrs({{"shape", attr_dims(to_dims(to))}})};
}

// ---- transpose ----

std::vector<int64_t> permutation(const InferContext& cx, int64_t rank) {
  std::vector<int64_t> perm = cx.attr_ints("perm");
  for (int64_t& p : perm) p = cx.axis(p, rank);
  if (static_cast<int64_t>(normalized_axes(cx, perm, rank).size()) != rank) {
    cx.fail(cat("'perm' has ", perm.size(), " entries, but 'x' has rank ", rank));
  }
  return perm;
}

TypeRef infer_transpose(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  std::vector<Dim> dims;
  for (int64_t p : permutation(cx, x.rank)) dims.push_back(x.dims[static_cast<size_t>(p)]);
  return tensor_type(x.dtype, dims);
}

loop::ComputeRef lower_transpose(const LowerContext& cx) {
  std::vector<int64_t> perm = permutation(cx.info(), cx.info().tensor(0).rank);
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    Indices source(i.size());
    for (size_t k = 0; k < i.size(); ++k) source[static_cast<size_t>(perm[k])] = i[k];
    return load(cx.input(0), source);
  })});
}

Sample sample_transpose(const Operator&, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(0, 5), perm;
  for (size_t i = 0; i < shape.size(); ++i) {
    perm.insert(perm.begin() + random.between(0, static_cast<int64_t>(i)), static_cast<int64_t>(i));
  }
  return {{sample_any(random, shape)}, attrs({{"perm", attr_ints(perm)}})};
}

// ---- expand ----

TypeRef infer_expand(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  return tensor_type(x.dtype, cx.broadcast_shapes({dims_of(x), cx.attr_dims("shape")}));
}

loop::ComputeRef lower_expand(const LowerContext& cx) {
  const BufferRef& y = cx.output();
  return cx.compute(
      {map_stage(y, [&](const Indices& i) { return load_broadcast(cx.input(0), i, dims_of(y)); })});
}

Values expanded_values(const InferContext& cx, const TensorType& result) {
  auto count = carried_count(result);
  auto values = values_of(cx, 0);
  if (!count || !values) return std::nullopt;
  if (values->size() == 1) values->resize(static_cast<size_t>(*count), values->front());
  if (static_cast<int64_t>(values->size()) != *count) return std::nullopt;
  return values;
}

Sample sample_expand(const Operator&, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(0, 4), own = shape;
  for (int64_t& n : own) {
    if (random.coin()) n = 1;
  }
  own.erase(own.begin(), own.begin() + random.between(0, static_cast<int64_t>(own.size())));
  return {{sample_any(random, own)}, attrs({{"shape", attr_dims(to_dims(shape))}})};
}

// ---- concat ----

TypeRef infer_concat(InferContext& cx) {
  const TensorType& first = cx.tensor(0);
  std::vector<Dim> dims = dims_of(first);
  size_t axis = static_cast<size_t>(cx.axis(cx.attr_int("axis"), first.rank));
  for (size_t i = 1; i < cx.arg_count(); ++i) {
    require_same_dtype(cx, i, 0);
    require_rank(cx, i, first.rank);
    const TensorType& x = cx.tensor(i);
    for (size_t k = 0; k < dims.size(); ++k) {
      if (k == axis) {
        dims[k] = dims[k] + x.dims[k];
      } else {
        cx.require_equal(
            first.dims[k], x.dims[k],
            cat("axis ", k, " of ", cx.operand_text(0), " and of ", cx.operand_text(i)));
      }
    }
  }
  return tensor_type(first.dtype, dims);
}

loop::ComputeRef lower_concat(const LowerContext& cx) {
  const BufferRef& y = cx.output();
  size_t axis =
      static_cast<size_t>(cx.info().axis(cx.info().attr_int("axis"), cx.info().tensor(0).rank));
  size_t count = cx.info().arg_count();
  return cx.compute({map_stage(y, [&](const Indices& i) {
    std::vector<Dim> starts = {Dim(0)};
    for (size_t k = 0; k < count; ++k) starts.push_back(starts.back() + cx.input(k)->shape[axis]);
    Scalar value;
    for (size_t k = count; k-- > 0;) {
      std::vector<Dim> space = dims_of(y);
      space[axis] = cx.input(k)->shape[axis];
      Indices at = i;
      if (k > 0) at[axis] = i[axis] - size(starts[k]);
      Scalar element = load_within(cx.input(k), at, space);
      value = value ? select(lt(i[axis], size(starts[k + 1])), element, value) : element;
    }
    return value;
  })});
}

Values concat_values(const InferContext& cx, const TensorType& result) {
  if (!carried_count(result)) return std::nullopt;
  std::vector<Dim> out;
  for (size_t i = 0; i < cx.arg_count(); ++i) {
    auto values = values_of(cx, i);
    if (!values) return std::nullopt;
    out.insert(out.end(), values->begin(), values->end());
  }
  return out;
}

Sample sample_concat(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  int64_t rank = static_cast<int64_t>(shape.size()), axis = random.between(-rank, rank - 1);
  DataType dtype = random.dtype(op.operands[0].dtypes);
  Sample s{{}, attrs({{"axis", axis}})};
  for (int64_t i = random.between(1, 4); i > 0; --i) {
    shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = random.between(0, 4);
    s.operands.push_back(sample_tensor(dtype, shape));
  }
  return s;
}

// ---- split ----

TypeRef infer_split(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  size_t axis = static_cast<size_t>(cx.axis(cx.attr_int("axis"), x.rank));
  auto values = values_of(cx, 0);
  Dim total = 0;
  std::vector<TypeRef> parts;
  for (const Dim& n : cx.attr_dims("sizes")) {
    cx.require_less_equal(0, n, "a part's size is not negative");
    std::vector<Dim> dims = dims_of(x);
    dims[axis] = n;
    Ref<const TensorType> part = tensor_type(x.dtype, dims);
    if (values && total.is_const() && n.is_const()) {
      size_t begin = static_cast<size_t>(*total.as_const());
      size_t end = begin + static_cast<size_t>(std::max<int64_t>(0, *n.as_const()));
      if (end <= values->size()) {
        part = with_values(part, {values->begin() + static_cast<std::ptrdiff_t>(begin),
                                  values->begin() + static_cast<std::ptrdiff_t>(end)});
      }
    }
    parts.push_back(part);
    total = total + n;
  }
  cx.require_equal(total, x.dims[axis], "sum of 'sizes' and the axis of 'x'");
  return tuple_type(parts);
}

loop::ComputeRef lower_split(const LowerContext& cx) {
  const BufferRef& x = cx.input(0);
  size_t axis =
      static_cast<size_t>(cx.info().axis(cx.info().attr_int("axis"), cx.info().tensor(0).rank));
  Dim start = 0;
  std::vector<StageRef> stages;
  std::vector<Dim> sizes = cx.info().attr_dims("sizes");
  for (size_t part = 0; part < sizes.size(); ++part) {
    Scalar first = window(start, sizes[part], x->shape[axis]);
    stages.push_back(map_stage(cx.output(part), [&](const Indices& i) {
      Indices at = i;
      at[axis] = i[axis] + first;
      return load(x, at);
    }));
    start = start + sizes[part];
  }
  return cx.compute(stages);
}

Sample sample_split(const Operator&, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4), sizes;
  int64_t rank = static_cast<int64_t>(shape.size()), axis = random.between(0, rank - 1), sum = 0;
  for (int64_t i = random.between(1, 4); i > 0; --i) {
    sizes.push_back(random.between(0, 3));
    sum += sizes.back();
  }
  shape[static_cast<size_t>(axis)] = sum;
  return {
      {sample_any(random, shape)},
      attrs({{"axis", random.coin() ? axis : axis - rank}, {"sizes", attr_dims(to_dims(sizes))}})};
}

// ---- slice ----

struct SliceOf {
  std::vector<Dim> starts, sizes;
  std::vector<int64_t> steps;
};

SliceOf slice_of(const InferContext& cx, int64_t rank) {
  SliceOf s{cx.attr_dims("starts"), cx.attr_dims("sizes"), per_axis(cx, "steps", rank, 1)};
  for (const auto& [name, count] :
       {std::pair("starts", s.starts.size()), std::pair("sizes", s.sizes.size())}) {
    if (static_cast<int64_t>(count) != rank) {
      cx.fail(cat("'", name, "' has ", count, " entries, but 'x' has rank ", rank));
    }
  }
  for (int64_t step : s.steps) {
    if (step == INT64_MIN)
      cx.fail(cat("a step of ", step, ", expected one of at least ", step + 1));
  }
  return s;
}

TypeRef infer_slice(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  SliceOf s = slice_of(cx, x.rank);
  for (size_t i = 0; i < s.sizes.size(); ++i) {
    const Dim &start = s.starts[i], &count = s.sizes[i], &extent = x.dims[i];
    if (s.steps[i] == 0) cx.fail(cat("the step of axis ", i, " is 0"));
    std::string where = cat("axis ", i, ": ");
    cx.require_less_equal(0, count, where + "the size is not negative");
    Dim last = start + (count - 1) * s.steps[i];
    if (s.steps[i] > 0) {
      cx.require_less_equal(0, start, where + "the start is not negative");
      cx.require_less_equal(last + 1, extent, where + "the end lies within 'x'");
    } else {
      cx.require_less_equal(0, last, where + "the last element lies within 'x'");
      cx.require_less_equal(start + min(count, 1), extent, where + "the start lies within 'x'");
    }
  }
  return tensor_type(x.dtype, s.sizes);
}

loop::ComputeRef lower_slice(const LowerContext& cx) {
  const BufferRef& x = cx.input(0);
  SliceOf s = slice_of(cx.info(), cx.info().tensor(0).rank);
  return cx.compute({map_stage(cx.output(), [&](const Indices& i) {
    Indices at;
    for (size_t k = 0; k < i.size(); ++k) {
      int64_t step = s.steps[k];
      Dim reach = (s.sizes[k] - 1) * (step > 0 ? step : -step);
      Dim lowest = step > 0 ? s.starts[k] : s.starts[k] - reach;
      Scalar first = window(lowest, reach + 1, x->shape[k]);
      at.push_back(step > 0 ? first + i[k] * index(step)
                            : first + (size(s.sizes[k] - 1) - i[k]) * index(-step));
    }
    return load(x, at);
  })});
}

Values slice_values(const InferContext& cx, const TensorType& result) {
  auto values = values_of(cx, 0);
  auto count = carried_count(result);
  if (!values || !count || cx.tensor(0).rank != 1) return std::nullopt;
  auto start = cx.attr_dims("starts")[0].as_const();
  if (!start) return std::nullopt;
  int64_t step = per_axis(cx, "steps", 1, 1)[0];
  std::vector<Dim> out;
  for (int64_t i = 0; i < *count; ++i) {
    int64_t at = *start + i * step;
    if (at < 0 || at >= static_cast<int64_t>(values->size())) return std::nullopt;
    out.push_back((*values)[static_cast<size_t>(at)]);
  }
  return out;
}

Sample sample_slice(const Operator&, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(0, 4), starts, sizes, steps;
  for (int64_t n : shape) {
    steps.push_back(random.pick<int64_t>({1, 1, 2, 3, -1, -2}));
    starts.push_back(n == 0 ? 0 : random.between(0, n - 1));
    int64_t room = n == 0             ? 0
                   : steps.back() > 0 ? (n - 1 - starts.back()) / steps.back() + 1
                                      : starts.back() / -steps.back() + 1;
    sizes.push_back(random.between(0, room));
  }
  return {{sample_any(random, shape)},
          attrs({{"starts", attr_dims(to_dims(starts))},
                 {"sizes", attr_dims(to_dims(sizes))},
                 {"steps", attr_ints(steps)}})};
}

// ---- tile ----

TypeRef infer_tile(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  std::vector<Dim> repeats = cx.attr_dims("repeats"), dims = dims_of(x);
  if (repeats.size() != dims.size()) {
    cx.fail(cat("'repeats' has ", repeats.size(), " entries, but 'x' has rank ", x.rank));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    cx.require_less_equal(0, repeats[i], cat("repeats of axis ", i, " is not negative"));
    dims[i] = dims[i] * repeats[i];
  }
  return tensor_type(x.dtype, dims);
}

loop::ComputeRef lower_tile(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  return cx.compute({map_stage(y, [&](const Indices& i) {
    Indices at = i;
    for (size_t k = 0; k < at.size(); ++k) {
      if (x->shape[k].is_const(1)) {
        at[k] = index(0);
      } else if (!proves_less_equal(y->shape[k], x->shape[k])) {
        at[k] = modulo(i[k], size(x->shape[k]));
      }
    }
    return load(x, at);
  })});
}

Values tile_values(const InferContext& cx, const TensorType& result) {
  auto values = values_of(cx, 0);
  auto count = carried_count(result);
  if (!values || !count || (values->empty() && *count > 0)) return std::nullopt;
  std::vector<Dim> out;
  for (size_t i = 0; i < static_cast<size_t>(*count); ++i) {
    out.push_back((*values)[i % values->size()]);
  }
  return out;
}

Sample sample_tile(const Operator&, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(0, 4), repeats;
  for (size_t i = 0; i < shape.size(); ++i) repeats.push_back(random.between(0, 3));
  return {{sample_any(random, shape)}, attrs({{"repeats", attr_dims(to_dims(repeats))}})};
}

Operator movement(const char* name, std::vector<AttrSpec> attributes, const char* summary,
                  InferFn infer, LowerFn lower, ValueFn value, SampleFn sample) {
  return {.name = name,
          .kind = OpKind::kMovement,
          .operands = {{"x", kData}},
          .attrs = std::move(attributes),
          .summary = summary,
          .infer = infer,
          .lower = lower,
          .value = value,
          .sample = sample};
}

}  // namespace

void register_movement(OperatorTable& table) {
  Operator reshape = movement(
      "reshape", {{"shape", AttrKind::kDims, nullptr, "of the result, no 0 or -1 to resolve"}},
      "the elements in order, in another shape", infer_reshape, lower_reshape, same_values,
      sample_reshape);
  reshape.view = true;
  table.add(std::move(reshape));
  table.add(
      movement("transpose",
               {{"perm", AttrKind::kInts, nullptr, "axis k of the result is axis perm[k] of x"}},
               "the axes in another order", infer_transpose, lower_transpose, same_values,
               sample_transpose));
  table.add(movement("expand", {{"shape", AttrKind::kDims, nullptr, "broadcast with x's"}},
                     "x broadcast to a shape", infer_expand, lower_expand, expanded_values,
                     sample_expand));
  Operator concat = movement("concat", {{"axis", AttrKind::kInt, nullptr, "along which to join"}},
                             "the operands one after the other", infer_concat, lower_concat,
                             concat_values, sample_concat);
  concat.operands = {{"x", kData, OperandSpec::kVariadic}};
  concat.layout = LayoutRule::kNamedAxes;
  table.add(std::move(concat));
  table.add(movement("split",
                     {{"axis", AttrKind::kInt, nullptr, "along which to cut"},
                      {"sizes", AttrKind::kDims, nullptr, "of the parts"}},
                     "x cut into a tuple of parts", infer_split, lower_split, nullptr,
                     sample_split));
  table.add(movement("slice",
                     {{"starts", AttrKind::kDims, nullptr, "first element taken, per axis"},
                      {"sizes", AttrKind::kDims, nullptr, "of the result"},
                      {"steps", AttrKind::kInts, "[]", "between elements taken; empty: 1"}},
                     "elements start + i * step of each axis; all must lie in x", infer_slice,
                     lower_slice, slice_values, sample_slice));
  table.add(movement("tile", {{"repeats", AttrKind::kDims, nullptr, "per axis"}},
                     "x repeated along its axes", infer_tile, lower_tile, tile_values,
                     sample_tile));
}

}  // namespace tenon::graph
