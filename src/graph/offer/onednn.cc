#include "graph/offer/onednn.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/permutation.h"
#include "graph/ir/rewrite.h"
#include "graph/offer/onednn_attention.h"
#include "library/signatures/signatures.h"
#include "loop/tiling.h"

namespace tenon::graph {
namespace {

using library::Activation;

// A base call and the calls that follow it, up to the root, whose binding the library call
// replaces.
struct Match {
  Ref<const Call> base;
  Operand bias, residual;  // of the original function
  Activation activation = Activation::None;
  double alpha = 0, beta = 0;
  Span span;  // of all calls that are replaced
};

class Matcher {
 public:
  Matcher(const FunctionRef& function, const UseDef& use_def, const OfferOptions& options)
      : attention(find_attention(function, use_def)),
        use_def_(use_def),
        nan_may_vanish_(options.level >= 3),
        target_(options.target) {
    for (const auto& [root, match] : attention) {
      inner.insert(match.inner.begin(), match.inner.end());
    }
    find(function->body);
  }

  const std::unordered_map<const Var*, AttentionMatch> attention;
  std::unordered_map<const Var*, Match> roots;
  std::unordered_set<const Var*> inner;

 private:
  void find(const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      const bool is_loop = binding->value.is<Loop>();
      loops_ += is_loop;
      for_each_block(binding->value, [this](const BlockRef& nested) { find(nested); });
      loops_ -= is_loop;
    }
    for (const auto& binding : block->bindings) {
      const Var* var = binding->var.get();
      if (attention.contains(var) || inner.contains(var)) continue;
      auto* call = binding->value.as<Call>();
      if (call && (takes_convolution(*call, *var) || takes_product(*call))) {
        extend(Ref<const Call>(call), {binding.get(), block.get()});
      }
    }
  }

  bool takes_convolution(const Call& call, const Var& result) const {
    if (!is_op(call, op::conv) || !is_channels_last(call)) return false;
    auto *x = known_tensor(call.args[0], f32), *w = known_tensor(call.args[1], f32);
    if (!x || !w || !call.args[1].is<Constant>()) return false;
    if (call.args.size() > 2 && call.args[2] && !known_tensor(call.args[2], f32)) return false;
    for (const Dim& pad : call.attrs.at("pads").as<Array<Dim>>()) {
      if (!proves_nonnegative(pad)) return false;
    }
    for (const Dim& dim : w->dims) {
      if (dim.is_const(0)) return false;
    }
    const int64_t groups = call.attrs.at("groups").as<int64_t>();
    const Dim& inputs = w->dims[w->dims.size() - 2];
    if (groups != 1 && inputs.is_const(1)) return takes_depthwise(*w, groups);
    return groups != 1 || !is_faster_here(call, *w, *known_tensor(result.type));
  }

  // A convolution of each channel for itself. oneDNN runs its reference code where a channel has
  // several filters, and takes longer than tiles of windows, in which what follows is computed,
  // too: with AVX2, these take 0.6 to 1.15 of the time of oneDNN alone for 3 to 7 places and 64 to
  // 960 channels (Zen 3). Along one axis, whatever the number of places, Tenon's own take 0.06 to
  // 0.21 of it for 17 to 63 places and 17 to 256 channels (Sapphire Rapids, AVX-512).
  bool takes_depthwise(const TensorType& weights, int64_t groups) const {
    const Dim &places = weights.dims[weights.dims.size() - 3], &filters = weights.dims.back();
    const bool is_along_one_axis = weights.rank == 3;
    return filters.is_const(groups) && !is_along_one_axis &&
           loop::places_of_windows(f32, groups, places.as_const().value_or(1), target_) == 0;
  }

  // Whether Tenon's own kernels are faster for a convolution by single pixels: of a few pixels, as
  // in squeeze-and-excitation, whose unknown numbers, such as of images, count as one; with steps
  // between pixels, which oneDNN copies; or with few channels. They also compute what follows,
  // which oneDNN leaves to a kernel of its own. On a Zen 5, in the networks of bench/models, at one
  // and two threads, they take 0.1 to 0.9 of oneDNN's time for one pixel, 0.7 to 1.0 with steps,
  // and otherwise 0.65 to 1.1.
  static bool is_faster_here(const Call& call, const TensorType& weights,
                             const TensorType& result) {
    constexpr double kMostWork = 6e7;  // multiplications
    constexpr int64_t kFewPixels = 8, kFewChannels = 256;
    const auto is_one = [](const Dim& dim) { return dim.is_const(1); };
    if (!std::all_of(weights.dims.begin(), weights.dims.end() - 2, is_one)) return false;
    const Array<int64_t> strides = call.attrs.at("strides").as<Array<int64_t>>();
    if (std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s > 1; })) return true;
    double pixels = 1;
    bool is_known = true;
    for (size_t i = 0; i + 1 < result.dims.size(); ++i) {
      const auto size = result.dims[i].as_const();
      pixels *= static_cast<double>(size.value_or(1));
      is_known &= size.has_value();
    }
    if (pixels <= kFewPixels) return true;
    const int64_t channels = *weights.dims[weights.dims.size() - 2].as_const();
    const int64_t filters = *weights.dims.back().as_const();
    return is_known && channels <= kFewChannels &&
           pixels * static_cast<double>(channels * filters) <= kMostWork;
  }

  bool takes_product(const Call& call) const {
    if (!is_op(call, op::matmul)) return false;
    const auto definition_of = [this](const Operand& x) { return use_def_.value_of(x); };
    // Tenon's own kernels read it as it is stored.
    if (is_dequantised_constant(definition_of(call.args[1]), definition_of)) return false;
    auto *a = known_tensor(call.args[0], f32), *b = known_tensor(call.args[1], f32);
    if (!a || !b || a->rank < 2 || b->rank < 2 || a->rank > 6 || b->rank > 6) return false;
    auto inner = a->dims.back().as_const();
    if (inner && *inner == 0) return false;
    return b->rank > 2 || !is_faster_here(*a, call.args[1]);
  }

  // Whether Tenon's own kernels are faster for the product with the matrix `right`: for a few rows,
  // which do little more than stream the matrix. A constant one in panels (pack_constants), or as
  // wide as one, is read once and in order: own kernels take 0.4 to 1.0 of oneDNN's time for 1 to 8
  // rows and 300 x 256 to 4096 x 4096 (Zen 3), and 0.6 to 1.1 for one panel of 2048 x 48 to
  // 4096 x 64 (Zen 5). Any other is read in long steps, and takes up to 1.9 of it (8192 x 40), so
  // it must fit the caches: own kernels take 0.2 to 9 us for 1 to 8 rows and 64 x 64 to 256 x 256,
  // oneDNN 1.2 to 11 (Zen 4).
  bool is_faster_here(const TensorType& left, const Operand& right) const {
    constexpr int64_t kFewRows = 8, kSmallMatrix = 1 << 16;
    const auto rows = product({left.dims.begin(), left.dims.end() - 1}).as_const();
    const TensorType* matrix = known_tensor(right, f32);
    const auto depth = matrix->dims[0].as_const(), columns = matrix->dims[1].as_const();
    if (!depth || !columns) return false;
    // Any number of rows in a loop is often one, and fuse_loops makes one kernel of a loop that
    // calls no library.
    if (rows ? *rows > kFewRows : loops_ == 0 || !right.is<Constant>()) return false;
    if (*depth <= kSmallMatrix / std::max<int64_t>(*columns, 1)) return true;
    return right.is<Constant>() && loop::is_read_in_order(f32, *columns, target_);
  }

  // Follows single uses from the base: a bias, a residual and an activation, each at most once.
  void extend(Ref<const Call> base, UseDef::Place place) {
    const bool product = is_op(*base, op::matmul);
    Match match{.base = base,
                .bias = product || base->args.size() < 3 ? Operand() : base->args[2],
                .residual = {},
                .span = place.binding->span};
    const bool open_inner =
        product && !type_of(base->args[0]).as<TensorType>()->dims.back().is_const();
    const Binding* root = place.binding;
    while (!open_inner && match.activation == Activation::None) {
      const UseDef::Place next = use_def_.only_use(root->var);
      if (!next || next.block != place.block) break;
      // The chain of the other operand may already contain that call.
      const Var* taken = next.binding->var.get();
      if (roots.contains(taken) || inner.contains(taken)) break;
      if (!join(*next.binding, *root, product, &match)) break;
      inner.insert(root->var.get());
      root = next.binding;
      match.span = Span::merge(match.span, root->span);
    }
    roots[root->var.get()] = match;
  }

  bool join(const Binding& next, const Binding& root, bool product, Match* match) const {
    auto* call = next.value.as<Call>();
    if (!call) return false;
    if (!same_dims(next.var->type, root.var->type)) return false;
    if (is_op(*call, op::add)) {
      const Operand& other = call->args[0].get() == root.var.get() ? call->args[1] : call->args[0];
      auto* other_type = known_tensor(other, f32);
      if (!other_type || other.get() == root.var.get()) return false;
      if (product && !match->bias && !match->residual && other_type->rank == 1 &&
          proves_equal(other_type->dims[0], known_tensor(root.var->type)->dims.back())) {
        match->bias = other;
        return true;
      }
      if (match->residual || !same_dims(type_of(other), root.var->type)) return false;
      match->residual = other;
      return true;
    }
    // oneDNN's relu and clip turn NaN into the lower bound.
    if (nan_may_vanish_ && is_op(*call, op::relu)) {
      match->activation = Activation::Relu;
    } else if (nan_may_vanish_ && is_op(*call, op::clip) && call->args.size() == 3 &&
               single_number(call->args[1]) && single_number(call->args[2])) {
      match->activation = Activation::Clip;
      match->alpha = *single_number(call->args[1]);
      match->beta = *single_number(call->args[2]);
    } else if (is_op(*call, op::tanh)) {
      match->activation = Activation::Tanh;
    } else if (is_op(*call, op::sigmoid)) {
      match->activation = Activation::Sigmoid;
    } else {
      return false;
    }
    return true;
  }

  const UseDef& use_def_;
  const bool nan_may_vanish_;
  const loop::TargetFacts target_;
  int loops_ = 0;  // around the block
};

class Partitioner : public Rewriter {
 public:
  explicit Partitioner(const OfferOptions& options) : options_(options) {}

 protected:
  void enter(const FunctionRef& function) override {
    use_def_.emplace(function);
    matcher_.emplace(function, *use_def_, options_);
  }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (auto it = matcher_->attention.find(var.get()); it != matcher_->attention.end()) {
      return attention(var, it->second);
    }
    if (auto it = matcher_->roots.find(var.get()); it != matcher_->roots.end()) {
      return is_op(*it->second.base, op::conv) ? convolution(var, it->second)
                                               : product(var, it->second);
    }
    if (matcher_->inner.contains(var.get())) return var;  // part of a later root's match
    return keep(var, value);
  }

 private:
  Operand convolution(const VarRef& var, const Match& match) {
    const Attrs& a = match.base->attrs;
    auto* w = type_of(match.base->args[1]).as<TensorType>();
    const size_t spatial = w->dims.size() - 2;
    auto ones = [&](const char* name) {
      const Array<int64_t> list = a.at(name).as<Array<int64_t>>();
      return list.empty() ? attr_ints(std::vector<int64_t>(spatial, 1)) : Any(list);
    };
    Array<Dim> pads = a.at("pads").as<Array<Dim>>();
    if (pads.empty()) pads = Array<Dim>(std::vector<Dim>(2 * spatial, Dim(0)));
    return call(var, library::signature("onednn.convolution"), match,
                {mapped(match.base->args[0]), mapped(match.base->args[1]), mapped(match.bias),
                 mapped(match.residual)},
                {{"strides", ones("strides")},
                 {"dilations", ones("dilations")},
                 {"pads", attr_dims(pads.to_vector())},
                 {"groups", a.at("groups")},
                 {"winograd", a.at("winograd")}});
  }

  Operand product(const VarRef& var, const Match& match) {
    auto [a, a_perm] = shuffles_rows(*match.base) ? unpermuted(mapped(match.base->args[0]))
                                                  : through_transpose(match.base->args[0]);
    auto [b, b_perm] = through_transpose(match.base->args[1]);
    return call(var, library::signature("onednn.matmul"), match,
                {a, b, mapped(match.bias), mapped(match.residual)},
                {{"a_perm", attr_ints(a_perm)}, {"b_perm", attr_ints(b_perm)}});
  }

  // Whether the left operand is a transpose that only reorders rows, which one matrix multiplies:
  // where they lie one after the other, that is one product, otherwise many small ones.
  bool shuffles_rows(const Call& matmul) {
    const auto transposed = as_transposed(builder(), mapped(matmul.args[0]));
    if (!transposed || type_of(matmul.args[1]).as<TensorType>()->dims.size() != 2) return false;
    const std::vector<int64_t>& perm = transposed->perm;
    return perm.back() + 1 == static_cast<int64_t>(perm.size());
  }

  Operand attention(const VarRef& var, const AttentionMatch& match) {
    const auto [q, q_perm] = through_transpose(match.q);
    const auto [k, k_perm] = through_transpose(match.k);
    const auto [v, v_perm] = through_transpose(match.v);
    builder().at(match.span);
    const Attrs attributes = attrs({{"q_perm", attr_ints(q_perm)},
                                    {"k_perm", attr_ints(k_perm)},
                                    {"v_perm", attr_ints(v_perm)},
                                    {"out_perm", attr_ints(match.out_perm)},
                                    {"scale", Any(match.scale)}});
    return builder().bind_typed(
        make_call(CalleeKind::kPacked, library::signature("onednn.attention").name,
                  {q, k, v, mapped(match.mask)}, attributes, var->type),
        var->type, var->name);
  }

  // Looks through a transpose; returns an operand of the new function and the permutation.
  std::pair<Operand, std::vector<int64_t>> through_transpose(const Operand& old) {
    const Operand now = mapped(old);
    if (auto transposed = as_transposed(builder(), now)) {
      return {transposed->source, transposed->perm};
    }
    return unpermuted(now);
  }
  std::pair<Operand, std::vector<int64_t>> unpermuted(const Operand& now) {
    return {now, identity_permutation(type_of(now).as<TensorType>()->dims.size())};
  }

  Operand call(const VarRef& var, const library::Signature& function, const Match& match,
               const std::vector<Operand>& args,
               std::initializer_list<std::pair<const char*, Any>> own) {
    Attrs attributes = attrs(own);
    attributes.set("activation",
                   Any(String(library::kActivations.names[static_cast<size_t>(match.activation)])));
    attributes.set("alpha", Any(match.alpha));
    attributes.set("beta", Any(match.beta));
    builder().at(match.span);
    return builder().bind_typed(
        make_call(CalleeKind::kPacked, function.name, args, attributes, var->type), var->type,
        var->name);
  }

  const OfferOptions options_;
  std::optional<UseDef> use_def_;
  std::optional<Matcher> matcher_;
};

}  // namespace

Module OneDnnOffer::partition(const Module& module, const OfferOptions& options) {
  return Partitioner(options).run(module);
}

}  // namespace tenon::graph
