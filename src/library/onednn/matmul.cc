#include "library/onednn/functions.h"
#include "library/onednn/primitive_cache.h"
#include "object/shape.h"
#include "support/error.h"

namespace tenon::onednn {
namespace {

using dnnl::memory;
using Dims = memory::dims;

constexpr const char* kName = "onednn.matmul";

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::Runtime, cat(kName, ": ", what));
}

// `tensor` seen through a permutation of its axes, with 1s in front up to `rank`.
memory::desc permuted(const Tensor& tensor, const Shape& perm, size_t rank) {
  const size_t own = static_cast<size_t>(tensor.rank());
  if (perm.size() != own) fail("a permutation does not fit its operand");
  Dims dims(rank, 1), strides(rank, 1);
  std::vector<bool> seen(own, false);
  for (size_t i = 0; i < own; ++i) {
    const int64_t axis = perm[i];
    if (axis < 0 || axis >= static_cast<int64_t>(own) || seen[static_cast<size_t>(axis)]) {
      fail("a permutation names an axis twice or none");
    }
    seen[static_cast<size_t>(axis)] = true;
    dims[rank - own + i] = tensor.dim(static_cast<int32_t>(axis));
    strides[rank - own + i] = tensor.strides()[static_cast<size_t>(axis)];
  }
  // A leading 1 gets the stride that a compact tensor would have there.
  for (size_t i = rank - own; i-- > 0;) {
    strides[i] = tensor.count() == 0 ? 1 : strides[i + 1] * dims[i + 1];
  }
  return {dims, memory::data_type::f32, strides};
}

struct Product {
  Tensor a, b, bias, residual, out;
  Shape a_perm, b_perm;
  OneDnnActivation activation = OneDnnActivation::kNone;
  float alpha = 0, beta = 0;
};

Product read(const AnyView* args, int32_t count) {
  if (count != 10) fail(cat("takes 10 arguments, got ", count));
  Product p;
  p.a = args[0].as<Tensor>();
  p.b = args[1].as<Tensor>();
  if (!args[2].is_none()) p.bias = args[2].as<Tensor>();
  if (!args[3].is_none()) p.residual = args[3].as<Tensor>();
  p.out = args[4].as<Tensor>();
  p.a_perm = args[5].as<Shape>();
  p.b_perm = args[6].as<Shape>();
  p.activation = static_cast<OneDnnActivation>(args[7].as<int64_t>());
  p.alpha = args[8].as<float>();
  p.beta = args[9].as<float>();
  return p;
}

void check(const Product& p, const Dims& a, const Dims& b) {
  const size_t rank = a.size();
  if (p.out->layout & LayoutWord::kReadOnly) fail("'out' is read-only");
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

Primitive make(const Product& p, const memory::desc& a, const memory::desc& b,
               const memory::desc& bias, const memory::desc& out, bool pack) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(
      post_operations(p.residual ? &out : nullptr, p.activation, p.alpha, p.beta));
  const memory::desc weights =
      pack ? memory::desc(b.dims(), memory::data_type::f32, memory::format_tag::any) : b;
  const dnnl::matmul::desc description =
      p.bias ? dnnl::matmul::desc(a, weights, bias, out) : dnnl::matmul::desc(a, weights, out);
  dnnl::matmul::primitive_desc chosen(description, attributes, cpu_engine());
  return {dnnl::matmul(chosen), chosen.weights_desc(), chosen.scratchpad_desc().get_size()};
}

// Batches of `a` over one matrix `b` are one taller matrix: the form that oneDNN is fastest at.
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

void run(const Product& p) {
  require_f32(p.a, kName, "a");
  require_f32(p.b, kName, "b");
  if (p.bias) require_f32(p.bias, kName, "bias", 1);
  const auto rank = static_cast<size_t>(std::max(p.a.rank(), p.b.rank()));
  if (p.a.rank() < 2 || p.b.rank() < 2 || rank > 6) fail("operands have rank 2 to 6");
  require_f32(p.out, kName, "out", static_cast<int64_t>(rank));
  if (p.residual) require_f32(p.residual, kName, "residual", static_cast<int64_t>(rank));
  memory::desc a = permuted(p.a, p.a_perm, rank), b = permuted(p.b, p.b_perm, rank);
  check(p, a.dims(), b.dims());
  if (p.out.count() == 0) return;
  const int64_t inner = a.dims()[rank - 1];
  if (inner == 0) fail("the inner size is 0");
  std::vector<int64_t> natural(rank);
  for (size_t i = 0; i < rank; ++i) natural[i] = static_cast<int64_t>(i);
  memory::desc out = permuted(p.out, Shape(natural), rank);
  bool one_matrix = is_identity(p.a_perm) && static_cast<size_t>(p.a.rank()) == rank;
  for (size_t i = 0; i + 2 < rank; ++i) one_matrix = one_matrix && b.dims()[i] == 1;
  if (one_matrix && rank > 2) {
    const Dims dims = b.dims(), strides(b.data.format_desc.blocking.strides,
                                        b.data.format_desc.blocking.strides + rank);
    a = flattened(a);
    out = flattened(out);
    b = memory::desc({dims[rank - 2], dims[rank - 1]}, memory::data_type::f32,
                     {strides[rank - 2], strides[rank - 1]});
  }
  memory::desc bias;
  if (p.bias) {
    Dims dims(a.dims().size(), 1);
    dims.back() = p.bias.dim(0);
    Dims strides(dims.size() - 1, dims.back());
    strides.push_back(1);
    bias = memory::desc(dims, memory::data_type::f32, strides);
  }
  const bool pack = p.b.constant();
  Key key;
  key.add(int64_t{2});
  key.add(p.a.shape());
  key.add(p.b.shape());
  key.add(p.a_perm.dims());
  key.add(p.b_perm.dims());
  key.add(static_cast<int64_t>(p.activation));
  key.add(static_cast<double>(p.alpha));
  key.add(static_cast<double>(p.beta));
  key.add(int64_t{(p.bias ? 1 : 0) + (p.residual ? 2 : 0) + (pack ? 4 : 0)});
  auto primitive =
      cached_primitive(key, static_cast<double>(p.out.count()) * static_cast<double>(inner),
                       [&] { return make(p, a, b, bias, out, pack); });
  std::shared_ptr<void> holder;
  void* weights = packed_weights(p.b, b, primitive->weights, &holder);
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, memory(a, cpu_engine(), p.a.data())},
      {DNNL_ARG_WEIGHTS, memory(primitive->weights, cpu_engine(), weights)},
      {DNNL_ARG_DST, memory(out, cpu_engine(), p.out.data())},
  };
  if (p.bias) arguments.emplace(DNNL_ARG_BIAS, memory(bias, cpu_engine(), p.bias.data()));
  if (p.residual) {
    arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                      memory(out, cpu_engine(), p.residual.data()));
  }
  execute(*primitive, std::move(arguments));
}

}  // namespace

void matmul(const AnyView* args, int32_t count, Any*) {
  const Product p = read(args, count);
  try {
    run(p);
  } catch (const dnnl::error& error) {
    fail(error.what());
  }
}

}  // namespace tenon::onednn
