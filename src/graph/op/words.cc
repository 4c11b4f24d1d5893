// Products of integers whose operands are read as words of four neighbours, which CPUs multiply and
// add in one instruction (BinaryOp::kByteDot). pack_integer_products makes them.
//
//   pack_words     w[b..., k..., d, n] -> y[b..., ceil(n / width), k..., ceil(d / 4), width]
//                  byte j of y[b..., p, k..., q, c] is w[b..., k..., 4 q + j, p * width + c]
//   matmul_words   a[..., d] and these words without k..., as matrices of `columns` columns
//   conv_words     channels-last x and these words, where k... are the kernel's places and d the
//                  channels of x
//   depthwise_words  channels-last x and these words in one panel, without its axis, where k... and
//                  d are the kernel's places and n the channels of x, each of which has its own
//
// Where d or n ends, words have zeros.
#include "graph/op/families.h"
#include "graph/op/integer_product.h"
#include "graph/op/spatial.h"
#include "loop/scalar_ops.h"

namespace tenon::graph {
namespace {

using loop::kBytesPerWord;

Dim words_of(const Dim& bytes) {
  return ceildiv(bytes, Dim(kBytesPerWord));
}

// The word `place` of an axis of `extent` bytes; `byte` loads one.
Scalar word(const Scalar& place, const Dim& extent,
            const std::function<Scalar(const Scalar& at)>& byte) {
  const bool whole = proves_equal(mod(extent, Dim(kBytesPerWord)), 0);
  Scalar all;
  for (int64_t j = 0; j < kBytesPerWord; ++j) {
    const Scalar at = place * index(kBytesPerWord) + index(j);
    Scalar part;
    if (whole || j == 0) {
      part = as(i32, as(u8, byte(at)));
    } else {
      const Scalar inside = lt(at, size(extent));
      const Scalar last = size(extent) - index(1);
      part = select(inside, as(i32, as(u8, byte(min_of(at, last)))), literal_int(i32, 0));
    }
    if (j > 0) part = binary(BinaryOp::kShl, part, literal_int(i32, 8 * j));
    all = all ? either(all, part) : part;
  }
  return all;
}

Scalar byte_dot(const Scalar& bytes, const Scalar& signed_bytes) {
  return binary(BinaryOp::kByteDot, bytes, signed_bytes);
}

// Column `n` of packed words, as an index of panels and one of columns.
struct Column {
  Scalar panel, place;
};
Column column_of(const Scalar& n, const Dim& columns, const BufferRef& words, const Dim& panels) {
  const Scalar width = size(words->shape.back());
  const Scalar within_panels = within(n, columns, panels * words->shape.back());
  return {floor_div(within_panels, width), modulo(within_panels, width)};
}

// The attribute `columns`; fails if the panels, axis `axis` of operand 1, have fewer.
Dim columns_of(InferContext& cx, size_t axis) {
  const TensorType& words = cx.tensor(1);
  Dim columns = cx.attr_dim("columns");
  cx.require_less_equal(0, columns, "the number of columns is not negative");
  cx.require_less_equal(columns, words.dims[axis] * words.dims.back(),
                        "'columns' and those of all panels");
  return columns;
}

// ---- pack_words ----

TypeRef infer_pack_words(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  const int64_t width = cx.attr_int("width");
  if (width < 1) cx.fail(cat("'width' is ", width, ", expected at least 1"));
  if (x.rank < 2) cx.fail(cat(cx.operand_text(0), " has rank ", x.rank, ", expected at least 2"));
  const int64_t batch = cx.attr_int("batch");
  if (batch < 0 || batch > x.rank - 2) {
    cx.fail(cat("'batch' is ", batch, ", expected 0 to ", x.rank - 2));
  }
  std::vector<Dim> dims = dims_of(x);
  const Dim panels = ceildiv(dims.back(), Dim(width));
  dims.pop_back();
  dims.back() = words_of(dims.back());
  dims.insert(dims.begin() + batch, panels);
  dims.push_back(Dim(width));
  return tensor_type(i32, dims);
}

loop::ComputeRef lower_pack_words(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &y = cx.output();
  const Dim &depth = x->shape[x->shape.size() - 2], &columns = x->shape.back();
  const int64_t batch = cx.info().attr_int("batch");
  return cx.compute({map_stage(y, [&](const Indices& i) {
    const auto panel = i.begin() + batch;
    const Scalar column = *panel * size(y->shape.back()) + i.back();
    Indices at(i.begin(), panel);
    at.insert(at.end(), panel + 1, i.end());
    at.back() = min_of(column, size(columns) - index(1));
    const size_t axis = at.size() - 2;
    const Scalar bytes = word(i[i.size() - 2], depth, [&](const Scalar& place) {
      at[axis] = place;
      return load(x, at);
    });
    return select(lt(column, size(columns)), bytes, literal_int(i32, 0));
  })});
}

Sample sample_pack_words(const Operator&, uint64_t seed) {
  Random random(seed);
  const std::vector<int64_t> shape = random.shape(2, 4);
  const int64_t batch = random.between(0, static_cast<int64_t>(shape.size()) - 2);
  return {{sample_tensor(i8, shape)},
          attrs({{"width", Any(random.between(1, 3))}, {"batch", Any(batch)}})};
}

// ---- matmul_words ----

TypeRef infer_matmul_words(InferContext& cx) {
  const TensorType &a = cx.tensor(0), &words = cx.tensor(1);
  if (words.rank < 3) {
    cx.fail(cat(cx.operand_text(1), " has rank ", words.rank, ", expected at least 3"));
  }
  // Rows of any rank are multiplied by one matrix; a batch of matrices by such a batch.
  const int64_t least = words.rank == 3 ? 1 : 2;
  if (a.rank < least) {
    cx.fail(cat(cx.operand_text(0), " has rank ", a.rank, ", expected at least ", least));
  }
  const auto batch = static_cast<size_t>(words.rank - 3);
  cx.require_equal(words_of(a.dims.back()), words.dims[batch + 1],
                   "words of the last axis of 'a' and the last axis but one of 'words'");
  std::vector<Dim> dims = dims_of(a);
  dims.back() = columns_of(cx, batch);
  if (batch == 0) return tensor_type(i32, dims);
  std::vector<Dim> all =
      cx.broadcast_shapes({std::vector<Dim>(a.dims.begin(), a.dims.end() - 2),
                           std::vector<Dim>(words.dims.begin(), words.dims.end() - 3)});
  all.insert(all.end(), dims.end() - 2, dims.end());
  return tensor_type(i32, all);
}

loop::ComputeRef lower_matmul_words(const LowerContext& cx) {
  const BufferRef &a = cx.input(0), &words = cx.input(1), &y = cx.output();
  const Dim& depth = a->shape.back();
  // The result's axes, less those of one matrix.
  const size_t batch = words->shape.size() > 3 ? y->shape.size() - 2 : 0;
  const std::vector<Dim> batches(y->shape.begin(),
                                 y->shape.begin() + static_cast<std::ptrdiff_t>(batch));
  const Dim& panels = words->shape[words->shape.size() - 3];
  // The indices into an operand: those of the batch, broadcast, and its own.
  auto at = [&](const BufferRef& b, const Indices& i, const Indices& own) {
    Indices place(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch));
    std::vector<Dim> space = batches;
    place.insert(place.end(), own.begin(), own.end());
    space.insert(space.end(), b->shape.end() - static_cast<std::ptrdiff_t>(own.size()),
                 b->shape.end());
    return loop::broadcast_indices(b, place, space);
  };
  return cx.compute({loop::reduce_stage(
      y, loop::Reduction::kSum, {words_of(depth)}, [&](const Indices& i, const Indices& k) {
        const Scalar left = word(k[0], depth, [&](const Scalar& place) {
          Indices row(i.begin() + static_cast<std::ptrdiff_t>(batch), i.end());
          row.back() = place;
          return load(a, at(a, i, row));
        });
        const Column column = column_of(i.back(), y->shape.back(), words, panels);
        const Scalar row = within(k[0], words_of(depth), words->shape[words->shape.size() - 2]);
        return byte_dot(left, load(words, at(words, i, {column.panel, row, column.place})));
      })});
}

Sample sample_matmul_words(const Operator&, uint64_t seed) {
  Random random(seed);
  const int64_t depth = random.between(1, 9), panels = random.between(1, 2),
                width = random.between(1, 4);
  std::vector<int64_t> a = random.shape(0, 2),
                       words = {panels, (depth + kBytesPerWord - 1) / kBytesPerWord, width};
  if (random.coin()) {  // a batch, of which each operand may have one
    words.insert(words.begin(), {random.between(1, 2), random.between(1, 2)});
    a = {words[0] == 1 ? random.between(1, 2) : 1, random.coin() ? words[1] : 1,
         random.between(1, 3)};
    if (random.coin()) a.erase(a.begin());
  }
  a.push_back(depth);
  return {{sample_tensor(u8, a), sample_tensor(i32, words)},
          attrs({{"columns", Any(Dim(random.between(0, panels * width)).ref())}})};
}

// ---- conv_words ----

Layout channels_last(const InferContext& cx) {
  return {static_cast<size_t>(cx.tensor(0).rank - 2), true};
}

std::vector<Dim> kernel_of(const std::vector<Dim>& words) {
  return std::vector<Dim>(words.begin() + 1, words.end() - 2);
}

// x and words of `words_rank` more axes than x has; padding of one element.
void require_image(InferContext& cx, int32_t words_rank) {
  const TensorType& x = cx.tensor(0);
  if (x.rank < 3 || x.rank > 5) {
    cx.fail(cat(cx.operand_text(0), " has rank ", x.rank,
                ", expected 3 to 5: batch, 1 to 3 spatial axes and channels"));
  }
  require_rank(cx, 1, x.rank + words_rank);
  if (cx.has(2)) require_one_element(cx, 2);
}

// The result for such a kernel and number of filters.
TypeRef sums_of_windows(InferContext& cx, const std::vector<Dim>& kernel, const Dim& filters) {
  const Layout layout = channels_last(cx);
  const std::vector<Window> windows = windows_of(cx, layout, kernel);
  require_windows_fit(cx, windows);
  std::vector<Dim> places;
  places.reserve(windows.size());
  for (const Window& window : windows) places.push_back(window.count(false));
  return tensor_type(i32, layout.join(cx.tensor(0).dims[0], filters, places));
}

// What is around x.
Scalar padding_of(const LowerContext& cx) {
  return cx.info().has(2) ? only_element(cx.input(2)) : number(u8, 0);
}

TypeRef infer_conv_words(InferContext& cx) {
  require_image(cx, 1);
  const TensorType &x = cx.tensor(0), &words = cx.tensor(1);
  cx.require_equal(words_of(x.dims.back()), words.dims[words.dims.size() - 2],
                   "words of the channels of 'x' and the last axis but one of 'words'");
  return sums_of_windows(cx, kernel_of(dims_of(words)), columns_of(cx, 0));
}

loop::ComputeRef lower_conv_words(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &words = cx.input(1), &y = cx.output();
  const Layout layout = channels_last(cx.info());
  const std::vector<Window> windows = windows_of(cx.info(), layout, kernel_of(dims_of(words)));
  std::vector<StageRef> stages;
  const BufferRef source = padded(x, layout, windows, false, padding_of(cx), &stages);
  const Dim& channels = x->shape.back();
  std::vector<Dim> extents = kernel_of(dims_of(words));
  extents.push_back(words_of(channels));
  stages.push_back(loop::reduce_stage(
      y, loop::Reduction::kSum, extents, [&](const Indices& i, const Indices& r) {
        Indices pixel = {i[0]};
        const Indices o = layout.places(i);
        for (size_t s = 0; s < o.size(); ++s) {
          pixel.push_back(padded_place(windows[s], false, o[s], r[s]));
        }
        const Scalar left = word(r.back(), channels, [&](const Scalar& channel) {
          Indices at = pixel;
          at.push_back(channel);
          return load(source, at);
        });
        const Column column = column_of(i.back(), y->shape.back(), words, words->shape.front());
        Indices place = {column.panel};
        place.insert(place.end(), r.begin(), r.end() - 1);
        place.push_back(
            within(r.back(), words_of(channels), words->shape[words->shape.size() - 2]));
        place.push_back(column.place);
        return byte_dot(left, load(words, place));
      }));
  return cx.compute(stages);
}

// Random operands; words of a kernel's places have no panels.
Sample sample_windows(uint64_t seed, bool depthwise) {
  Random random(seed);
  const auto spatial = static_cast<size_t>(random.between(1, 3));
  const int64_t channels = random.between(1, 6), panels = random.between(1, 2),
                width = random.between(1, 3);
  std::vector<int64_t> x = {random.between(1, 2)}, words, strides, dilations, pads(2 * spatial);
  if (!depthwise) words.push_back(panels);
  for (size_t i = 0; i < spatial; ++i) {
    const bool in_words = depthwise && i + 1 == spatial;
    words.push_back(random.between(1, in_words ? 2 : 3));
    strides.push_back(random.between(1, 2));
    dilations.push_back(random.between(1, 2));
    const int64_t kernel = words.back() * (in_words ? kBytesPerWord : 1);
    x.push_back((kernel - 1) * dilations[i] + 1 + random.between(0, 3));
    pads[i] = random.between(0, 2);
    pads[spatial + i] = random.between(0, 2);
  }
  x.push_back(channels);
  if (depthwise) {
    words.push_back(channels);
  } else {
    words.insert(words.end(), {(channels + kBytesPerWord - 1) / kBytesPerWord, width});
  }
  Attrs attributes = attrs({{"strides", attr_ints(strides)},
                            {"pads", attr_dims(to_dims(pads))},
                            {"dilations", attr_ints(dilations)}});
  if (!depthwise) attributes.set("columns", Any(Dim(random.between(0, panels * width)).ref()));
  return {{sample_tensor(u8, x), sample_tensor(i32, words),
           random.coin() ? sample_tensor(u8, {}) : unit_type()},
          attributes};
}

Sample sample_conv_words(const Operator&, uint64_t seed) {
  return sample_windows(seed, false);
}

// ---- depthwise_words ----

std::vector<Dim> depthwise_kernel(const std::vector<Dim>& words) {
  std::vector<Dim> kernel(words.begin(), words.end() - 1);
  kernel.back() = kernel.back() * kBytesPerWord;
  return kernel;
}

TypeRef infer_depthwise_words(InferContext& cx) {
  require_image(cx, -1);
  const TensorType &x = cx.tensor(0), &words = cx.tensor(1);
  cx.require_equal(x.dims.back(), words.dims.back(), "channels of 'x' and of 'words'");
  return sums_of_windows(cx, depthwise_kernel(dims_of(words)), x.dims.back());
}

loop::ComputeRef lower_depthwise_words(const LowerContext& cx) {
  const BufferRef &x = cx.input(0), &words = cx.input(1), &y = cx.output();
  const Layout layout = channels_last(cx.info());
  const std::vector<Dim> kernel = depthwise_kernel(dims_of(words));
  const std::vector<Window> windows = windows_of(cx.info(), layout, kernel);
  std::vector<StageRef> stages;
  const BufferRef source = padded(x, layout, windows, false, padding_of(cx), &stages);
  const std::vector<Dim> extents(words->shape.begin(), words->shape.end() - 1);
  stages.push_back(loop::reduce_stage(
      y, loop::Reduction::kSum, extents, [&](const Indices& i, const Indices& r) {
        Indices row = {i[0]};
        const Indices o = layout.places(i);
        for (size_t s = 0; s + 1 < o.size(); ++s) {
          row.push_back(padded_place(windows[s], false, o[s], r[s]));
        }
        const Scalar channel = within(i.back(), y->shape.back(), x->shape.back());
        const Scalar left = word(r.back(), kernel.back(), [&](const Scalar& place) {
          Indices at = row;
          at.push_back(padded_place(windows.back(), false, o.back(), place));
          at.push_back(channel);
          return load(source, at);
        });
        Indices place = r;
        place.push_back(within(i.back(), y->shape.back(), words->shape.back()));
        return byte_dot(left, load(words, place));
      }));
  return cx.compute(stages);
}

Sample sample_depthwise_words(const Operator&, uint64_t seed) {
  return sample_windows(seed, true);
}

}  // namespace

void register_words(OperatorTable& table) {
  const AttrSpec columns = {"columns", AttrKind::kDim, nullptr,
                            "the size of the result's last axis"};
  const std::vector<OperandSpec> windows = {
      {"x", only(u8)}, {"words", only(i32)}, {"padding", only(u8), OperandSpec::kOptional}};
  table.add({.name = "pack_words",
             .kind = OpKind::kMovement,
             .operands = {{"w", only(i8)}},
             .attrs = {{"width", AttrKind::kInt, nullptr, "columns of a panel"},
                       {"batch", AttrKind::kInt, "0", "axes at the start that stay there"}},
             .summary = "four neighbours along the last axis but one as the bytes of a word, the "
                        "last axis in panels: [b..., k..., d, n] to [b..., ceil(n/width), k..., "
                        "ceil(d/4), width], filled with zeros",
             .infer = infer_pack_words,
             .lower = lower_pack_words,
             .sample = sample_pack_words});
  table.add({.name = "matmul_words",
             .kind = OpKind::kContraction,
             .operands = {{"a", only(u8)}, {"words", only(i32)}},
             .attrs = {columns},
             .summary =
                 "the product of a and the matrix that `pack_words` packed, or a batch of them, in "
                 "i32",
             .infer = infer_matmul_words,
             .lower = lower_matmul_words,
             .sample = sample_matmul_words});
  table.add({.name = "conv_words",
             .kind = OpKind::kContraction,
             .operands = windows,
             .attrs = {columns, strides_attr(), pads_attr(), dilations_attr()},
             .summary = "the convolution of x, channels last, and the weights that `pack_words` "
                        "packed, in i32; around x is `padding`, or 0",
             .infer = infer_conv_words,
             .lower = lower_conv_words,
             .sample = sample_conv_words});
  table.add({.name = "depthwise_words",
             .kind = OpKind::kContraction,
             .operands = windows,
             .attrs = {strides_attr(), pads_attr(), dilations_attr()},
             .summary = "the convolution of each channel of x, channels last, with weights of its "
                        "own, in i32: a kernel's places along the last spatial axis are the bytes "
                        "of words[k..., q, c]; around x is `padding`, or 0",
             .infer = infer_depthwise_words,
             .lower = lower_depthwise_words,
             .sample = sample_depthwise_words});
}

}  // namespace tenon::graph
