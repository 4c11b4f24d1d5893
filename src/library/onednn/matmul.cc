#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string_view>

#include "library/onednn/constant_product.h"
#include "library/onednn/functions.h"
#include "library/onednn/primitive_cache.h"
#include "library/onednn/team.h"
#include "library/onednn/workspace.h"
#include "object/shape.h"
#include "support/poll.h"

namespace tenon::onednn {
namespace {

using dnnl::memory;
using Dims = memory::dims;

constexpr const library::Signature& kSignature = library::signature("onednn.matmul");
constexpr Position at{kSignature};
constexpr Failure fail{kSignature};

// `tensor` with its axes permuted, and leading axes of size 1 up to `rank`.
memory::desc permuted(const Tensor& tensor, const Shape& perm, size_t rank, const char* name) {
  const size_t own = static_cast<size_t>(tensor.rank());
  require_permutation(kSignature, perm, own, name);
  Dims dims(rank, 1), strides(rank, 1);
  for (size_t i = 0; i < own; ++i) {
    dims[rank - own + i] = tensor.dim(static_cast<int32_t>(perm[i]));
    strides[rank - own + i] = tensor.strides()[static_cast<size_t>(perm[i])];
  }
  // A leading axis gets the stride that it would have in a compact tensor.
  for (size_t i = rank - own; i-- > 0;) {
    strides[i] = tensor.count() == 0 ? 1 : strides[i + 1] * dims[i + 1];
  }
  return {dims, memory::data_type::f32, strides};
}

struct Product {
  const Tensor &a, &b, &bias, &residual, &out;
  const Shape &a_perm, &b_perm;
  library::Activation activation = library::Activation::None;
  float alpha = 0, beta = 0;
};

Product read(const AnyView* args, int32_t count) {
  require_arity(kSignature, count);
  return {in_place<Tensor>(args[at("a")]),     in_place<Tensor>(args[at("b")]),
          optional_tensor(args[at("bias")]),   optional_tensor(args[at("residual")]),
          in_place<Tensor>(args[at("out")]),   in_place<Shape>(args[at("a_perm")]),
          in_place<Shape>(args[at("b_perm")]), args[at("activation")].as<library::Activation>(),
          args[at("alpha")].as<float>(),       args[at("beta")].as<float>()};
}

size_t rank_of(const Product& p) {
  return static_cast<size_t>(std::max(p.a.rank(), p.b.rank()));
}

void check_tensors(const Product& p) {
  require_f32(kSignature, p.a, "a");
  require_f32(kSignature, p.b, "b");
  if (p.bias) require_f32(kSignature, p.bias, "bias", 1);
  const size_t rank = rank_of(p);
  if (p.a.rank() < 2 || p.b.rank() < 2 || rank > 6) fail("operands have rank 2 to 6");
  require_f32(kSignature, p.out, "out", static_cast<int64_t>(rank));
  if (p.residual) require_f32(kSignature, p.residual, "residual", static_cast<int64_t>(rank));
  require_output(kSignature, p.out);
}

void check_sizes(const Product& p) {
  const size_t rank = rank_of(p);
  const Dims a = permuted(p.a, p.a_perm, rank, "a").dims();
  const Dims b = permuted(p.b, p.b_perm, rank, "b").dims();
  if (a[rank - 1] != b[rank - 2]) fail("the inner sizes of a and b differ");
  for (size_t i = 0; i < rank; ++i) {
    const int64_t expected = i + 2 == rank ? a[i] : i + 1 == rank ? b[i] : a[i] == 1 ? b[i] : a[i];
    if (i + 2 < rank && a[i] != b[i] && a[i] != 1 && b[i] != 1) fail("batches do not broadcast");
    if (p.out.dim(static_cast<int32_t>(i)) != expected) fail("out has another shape");
  }
  if (p.bias && p.bias.dim(0) != b[rank - 1]) fail("bias has another size than the last axis");
  if (p.residual && !std::equal(p.residual.shape().begin(), p.residual.shape().end(),
                                p.out.shape().begin(), p.out.shape().end())) {
    fail("residual has another shape than out");
  }
}

// Merges the batches of `a` into one taller matrix, for a single matrix `b`; oneDNN is fastest so.
memory::desc flattened(const memory::desc& desc) {
  const Dims dims = desc.dims();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
  return {{rows, dims.back()}, memory::data_type::f32, memory::format_tag::ab};
}

bool is_identity(const Shape& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// The operands of the primitive for a product, or for a part of one.
struct Layouts {
  memory::desc source, weights, out;
};

Layouts layouts(const Product& p) {
  check_sizes(p);
  const size_t rank = rank_of(p);
  Dims natural(rank);
  std::iota(natural.begin(), natural.end(), 0);
  Layouts made{permuted(p.a, p.a_perm, rank, "a"), permuted(p.b, p.b_perm, rank, "b"),
               permuted(p.out, Shape(natural), rank, "out")};
  const Dims b = made.weights.dims();
  bool one_matrix = is_identity(p.a_perm) && static_cast<size_t>(p.a.rank()) == rank;
  for (size_t i = 0; i + 2 < rank; ++i) one_matrix = one_matrix && b[i] == 1;
  if (one_matrix && rank > 2) {
    const auto& strides = made.weights.data.format_desc.blocking.strides;
    made.source = flattened(made.source);
    made.out = flattened(made.out);
    made.weights = {
        {b[rank - 2], b[rank - 1]}, memory::data_type::f32, {strides[rank - 2], strides[rank - 1]}};
  }
  return made;
}

double multiplications(const memory::desc& source, const memory::desc& out) {
  double count = static_cast<double>(source.dims().back());
  for (int64_t size : out.dims()) count *= static_cast<double>(size);
  return count;
}

// Whether the sums of a product depend on how many threads compute it: the general product, which
// oneDNN has for processors without AVX-512, divides the summed axis among threads that have no
// columns of their own, and takes another way for a single row.
bool depends_on_threads(const dnnl::matmul::primitive_desc& chosen, const Plan& plan) {
  constexpr int64_t kColumnsOfAThread = 64;
  if (!std::string_view(chosen.impl_info_str()).starts_with("gemm")) return false;
  const Dims out = plan.out.dims();
  return out[out.size() - 2] == 1 || out.back() < kColumnsOfAThread * plan.threads;
}

dnnl::matmul::primitive_desc choose(const Product& p, const Plan& plan) {
  const TeamScope team(plan.threads);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(post_operations(plan, bool(p.residual), p.activation, p.alpha, p.beta));
  memory::desc weights = plan.given_weights;
  if (p.b.constant()) {
    weights = {weights.dims(), memory::data_type::f32, memory::format_tag::any};
  }
  const dnnl::matmul::desc description =
      p.bias ? dnnl::matmul::desc(plan.source, weights, plan.bias, plan.out)
             : dnnl::matmul::desc(plan.source, weights, plan.out);
  return {description, attributes, cpu_engine()};
}

Plan make(const Product& p, const Layouts& layouts) {
  Plan plan;
  plan.source = layouts.source;
  plan.given_weights = layouts.weights;
  plan.out = layouts.out;
  plan.threads =
      threads_worth(multiplications(plan.source, plan.out), plan.given_weights.get_size());
  if (p.bias) {
    Dims dims(plan.source.dims().size(), 1);
    dims.back() = plan.out.dims().back();
    Dims strides(dims.size() - 1, dims.back());
    strides.push_back(1);
    plan.bias = {dims, memory::data_type::f32, strides};
  }
  dnnl::matmul::primitive_desc chosen = choose(p, plan);
  if (plan.threads > 1 && depends_on_threads(chosen, plan)) {
    plan.threads = 1;
    chosen = choose(p, plan);
  }
  const TeamScope team(plan.threads);
  plan.primitive = dnnl::matmul(chosen);
  plan.weights = chosen.weights_desc();
  plan.scratchpad_bytes = chosen.scratchpad_desc().get_size();
  return plan;
}

Key key_of(const Product& p) {
  Key key(kSignature);
  for (const Tensor* t : {&p.a, &p.b, &p.bias, &p.residual, &p.out}) key.add(*t);
  for (const Shape* s : {&p.a_perm, &p.b_perm}) key.add(s->dims());
  key.add(static_cast<int64_t>(p.activation));
  key.add(double{p.alpha});
  key.add(double{p.beta});
  key.add(int64_t{p.b.constant()});  // only constants are packed
  return key;
}

Operands operands_of(const Product& p) {
  return {data_of(p.a), data_of(p.bias), data_of(p.residual), data_of(p.out), p.b};
}

// A part of a product: of each axis of the result, `count[i]` items from `first[i]` on.
struct Part {
  Dims first, count;
};

// What a part needs of an operand, and the offset of the first element in bytes. It needs all of
// axis `inner`; an axis of size 1 is broadcast.
std::pair<memory::desc, int64_t> part_of(const memory::desc& whole, const Part& part,
                                         size_t inner) {
  Dims dims = whole.dims(), strides(dims.size());
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    strides[i] = whole.data.format_desc.blocking.strides[i];
    if (i == inner || dims[i] == 1) continue;
    offset += part.first[i] * strides[i];
    dims[i] = part.count[i];
  }
  return {{dims, memory::data_type::f32, strides}, offset * static_cast<int64_t>(sizeof(float))};
}

void run_part(const Product& p, const Layouts& whole, const Part& part) {
  const size_t rank = part.count.size();
  const auto [source, source_offset] = part_of(whole.source, part, rank - 1);
  const auto [weights, weights_offset] = part_of(whole.weights, part, rank - 2);
  const auto [out, out_offset] = part_of(whole.out, part, rank);
  const Layouts layouts{source, weights, out};
  Key key = key_of(p);
  key.add(std::span<const int64_t>(part.count));
  Operands operands = operands_of(p);
  const auto move = [](void*& data, int64_t bytes) {
    if (data) data = static_cast<char*>(data) + bytes;
  };
  move(operands.source, source_offset);
  move(operands.bias, part.first.back() * static_cast<int64_t>(sizeof(float)));
  move(operands.out, out_offset);
  move(operands.residual, out_offset);
  operands.weights_offset = weights_offset;
  run_planned(
      key, [&] { return make(p, layouts); }, operands);
}

// The sizes of the parts of a product: as many batches as fit, or else a block of a matrix that is
// as square as possible, so that parts read little of what others read.
Dims part_sizes(const Layouts& whole) {
  Dims sizes = whole.out.dims();
  double work = multiplications(whole.source, whole.out);
  const size_t batches = sizes.size() - 2;
  for (size_t i = 0; i < batches; ++i) {
    work /= static_cast<double>(sizes[i]);
    sizes[i] = at_most(kMostBetweenPolls / work, sizes[i]);
    work *= static_cast<double>(sizes[i]);
  }
  if (work <= kMostBetweenPolls) return sizes;
  int64_t& rows = sizes[batches];
  int64_t& columns = sizes[batches + 1];
  const double area = kMostBetweenPolls / static_cast<double>(whole.source.dims().back());
  const double square = std::sqrt(area);
  const auto side = [&](int64_t other) {
    return std::max(square, area / static_cast<double>(other));
  };
  const int64_t some_rows = at_most(side(columns), rows);
  columns = at_most(side(rows), columns);
  rows = some_rows;
  return sizes;
}

void run_in_parts(const Product& p) {
  const Layouts whole = layouts(p);
  const Dims out = whole.out.dims(), sizes = part_sizes(whole);
  Part part{Dims(out.size(), 0), Dims(out.size())};
  for (size_t axis = 1; axis > 0;) {
    for (size_t i = 0; i < out.size(); ++i)
      part.count[i] = std::min(sizes[i], out[i] - part.first[i]);
    poll();
    run_part(p, whole, part);
    axis = out.size();
    while (axis > 0 && (part.first[axis - 1] += sizes[axis - 1]) >= out[axis - 1])
      part.first[--axis] = 0;
  }
}

// Whether the rows of `a`, as they are in memory, are multiplied with one constant matrix; then
// computes that in our own loops, unless oneDNN's are better.
bool run_with_constant(const Product& p) {
  if (!p.b.constant() || p.b.rank() != 2 || p.b_perm.size() != 2 || !is_identity(p.a_perm)) {
    return false;
  }
  const bool transposed = p.b_perm[0] == 1;
  if (p.b_perm[0] != int64_t{transposed} || p.b_perm[1] != int64_t{!transposed}) return false;
  const int32_t last = p.a.rank() - 1;
  const int64_t columns = p.out.dim(last);
  const ConstantProduct product{.rows = p.out.count() / columns,
                                .depth = p.a.dim(last),
                                .columns = columns,
                                .left = floats_of(p.a),
                                .constant = p.b,
                                .transposed = transposed,
                                .bias = floats_of(p.bias),
                                .residual = floats_of(p.residual),
                                .activation = p.activation,
                                .alpha = p.alpha,
                                .beta = p.beta,
                                .out = floats_of(p.out)};
  if (!is_fast_constant_product(product)) return false;
  check_sizes(p);
  run_constant_product(product);
  return true;
}

void run(const Product& p) {
  if (run_with_constant(p)) return;
  const int64_t axis = p.a_perm.size() > 0 ? p.a_perm[p.a_perm.size() - 1] : -1;
  if (axis >= 0 && axis < p.a.rank()) {  // or `layouts` fails
    const auto inner = static_cast<double>(p.a.dim(static_cast<int32_t>(axis)));
    if (static_cast<double>(p.out.count()) * inner > kMostBetweenPolls) return run_in_parts(p);
  }
  run_planned(
      key_of(p), [&] { return make(p, layouts(p)); }, operands_of(p));
}

// Zeros with the shape of `tensor`, except that the size of `axis` is 1 instead of 0.
Tensor zeros_like(const Tensor& tensor, int64_t axis) {
  std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  shape[static_cast<size_t>(axis)] = 1;
  Tensor zeros = Tensor::empty(shape, tensor.dtype());
  std::memset(zeros.data(), 0, static_cast<size_t>(zeros.bytes()));
  return zeros;
}

// A product with inner size 0 is 0, but oneDNN doesn't compute it; a product of zeros gives the
// same.
void run_without_inner(const Product& p) {
  check_sizes(p);
  const Tensor a = zeros_like(p.a, p.a_perm[p.a_perm.size() - 1]);
  const Tensor b = zeros_like(p.b, p.b_perm[p.b_perm.size() - 2]);
  const Counted counted(static_cast<size_t>(a.bytes() + b.bytes()));
  run({a, b, p.bias, p.residual, p.out, p.a_perm, p.b_perm, p.activation, p.alpha, p.beta});
}

}  // namespace

void matmul(const AnyView* args, int32_t count, Any*) {
  const Product p = read(args, count);
  check_tensors(p);
  if (p.out.count() == 0) return check_sizes(p);
  try {
    p.a.count() == 0 ? run_without_inner(p) : run(p);
  } catch (const dnnl::error& error) {
    fail(error.what());
  }
}

}  // namespace tenon::onednn
