// RNN, GRU and LSTM, as loops over time.
//
// The products with the input are computed for all steps at once: x W^T + biases, [seq, batch,
// gates*H]. A step adds h R^T and applies the gates. Sequences that end early keep their state and
// yield 0.

#include <algorithm>

#include "import/onnx/activation.h"
#include "import/onnx/loop_builder.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// Operands of RNN, GRU and LSTM.
enum : size_t {
  kX,
  kW,  // weights of the input
  kR,  // weights of the hidden state
  kBias,
  kLengths,
  kInitial,        // the hidden state
  kInitialCell,    // of LSTM
  kPeepholes,      // of LSTM
  kFirstParameter  // of DynamicQuantizeLSTM: scale and zero point of W, then of R
};

struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
};

Operand apply(NodeContext& cx, const Activation& f, const Operand& x) {
  auto number = [&](double v) { return cx.scalar_like(x, v); };
  const std::string& n = f.name;
  if (n == "sigmoid" || n == "tanh" || n == "relu") return cx.op(n, {x});
  if (n == "affine") return cx.add(cx.mul(x, number(f.alpha)), number(f.beta));
  if (n == "leakyrelu") return activation::leaky_relu(cx, x, f.alpha);
  // Keeps x = alpha, unlike the operator of this name, which makes it 0.
  if (n == "thresholdedrelu") {
    return cx.op("where", {cx.op("less", {x, number(f.alpha)}), number(0), x});
  }
  if (n == "scaledtanh") return cx.mul(cx.op("tanh", {cx.mul(x, number(f.beta))}), number(f.alpha));
  if (n == "hardsigmoid") return activation::hard_sigmoid(cx, x, f.alpha, f.beta);
  if (n == "elu") return activation::elu(cx, x, f.alpha);
  if (n == "softsign") return activation::softsign(cx, x);
  if (n == "softplus") return activation::softplus(cx, x);
  cx.unsupported(cat("activation ", n, " not implemented"));
}

class Recurrence {
 public:
  // `functions`: the default activations of one direction.
  Recurrence(NodeContext& cx, std::vector<std::string> functions, bool quantized = false)
      : cx_(cx), quantized_(quantized) {
    x_ = cx.in(kX);
    if (cx.rank(x_) != 3) cx.invalid(cat("X of rank ", cx.rank(x_)), "3");
    batch_first_ = cx.attr_bool("layout", false);
    if (batch_first_) x_ = cx.transpose(x_, {1, 0, 2});
    seq_ = cx.dims(x_)[0];
    batch_ = cx.dims(x_)[1];
    Dims r = cx.dims(kR);
    if (r.size() != 3 || cx.rank(kW) != 3)
      cx.invalid(cat("W and R of rank ", cx.rank(kW), " and ", r.size()), "3");
    hidden_ = r[quantized ? 1 : 2];
    if (cx.has_attr("hidden_size")) {
      cx.b.check(graph::CheckKind::kEqual, hidden_, cx.attr_int("hidden_size"),
                 "hidden_size and R");
    }
    std::string direction = cx.attr_string("direction", "forward");
    if (direction == "forward") backwards_ = {false};
    if (direction == "reverse") backwards_ = {true};
    if (direction == "bidirectional") backwards_ = {false, true};
    if (backwards_.empty())
      cx.invalid(cat("direction=", direction), "forward, reverse or bidirectional");
    cx.b.check(graph::CheckKind::kEqual, r[0], static_cast<int64_t>(backwards_.size()),
               "directions of R");
    clip_ = cx.attr_float("clip", 0);
    read_activations(std::move(functions));
    if (cx.has(kLengths)) lengths_ = cx.cast(cx.in(kLengths), i64);
  }

  NodeContext& cx() { return cx_; }
  bool has_bias() const { return cx_.has(kBias); }

  Operand activate(size_t direction, size_t which, const Operand& x) {
    Operand v = x;
    if (clip_ > 0) v = cx_.op("clip", {v, cx_.scalar_like(v, -clip_), cx_.scalar_like(v, clip_)});
    return apply(cx_, activations_[direction * per_direction_ + which], v);
  }

  // `count` parts from part `index` on, along the last axis; each is H wide.
  Operand part(const Operand& x, int64_t index, int64_t count = 1) {
    return cx_.slice(x, cx_.rank(x) - 1, hidden_ * index, hidden_ * count);
  }

  // Direction d of an operand [directions, ...].
  Operand of_direction(const Operand& x, size_t d) {
    return cx_.squeeze(cx_.slice(x, 0, static_cast<int64_t>(d), 1), {0});
  }
  Operand transposed(const Operand& m) { return cx_.transpose(m, {1, 0}); }

  // x times W^T or R^T, for the operands kW and kR.
  using Product = std::function<Operand(const Operand& x)>;
  Product product_with(size_t operand, size_t d) {
    const Operand given = of_direction(cx_.in(operand), d);
    if (quantized_) return quantized_product(given, operand, d);
    const Operand weights = transposed(given);
    return [this, weights](const Operand& x) { return cx_.op("matmul", {x, weights}); };
  }

  Operand initial(size_t operand, size_t d) {
    if (!cx_.has(operand)) return cx_.full(cx_.dtype(x_), 0, {batch_, hidden_});
    Operand all = cx_.in(operand);
    if (batch_first_) all = cx_.transpose(all, {1, 0, 2});
    Operand start = of_direction(all, d);
    // The batch of an initial state may have a symbol of its own.
    const Dims shape = {batch_, hidden_};
    return cx_.dims(start) == shape ? start : cx_.b.match_shape(start, shape);
  }

  // A cell maps x W^T + bias of one step, [batch, gates*H], and the states to the next states, and
  // yields the first of them.
  using Cell = std::function<Operands(const Operand& x, const Operands& states)>;
  using MakeCell = std::function<Cell(size_t direction)>;

  // Returns [Y, Y_h, Y_c...]: the yields, then the last states. `input_bias` is added for all steps
  // at once.
  Operands run(size_t states, const std::function<Operand(size_t d)>& input_bias,
               const MakeCell& make_cell) {
    Operands all_yields;
    std::vector<Operands> finals(states);
    for (size_t d = 0; d < backwards_.size(); ++d) {
      Operand x = backwards_[d] ? reversed(x_) : x_;
      Operand gates = product_with(kW, d)(x);
      if (Operand bias = input_bias(d)) gates = cx_.add(gates, bias);
      LoopSpec spec;
      spec.count = seq_;
      spec.limit = cx_.reshape(cx_.op("shape_of", {x_}, attrs({{"start", 0}, {"end", 1}})), {});
      for (size_t k = 0; k < states; ++k) spec.init.push_back(initial(kInitial + k, d));
      spec.yields.resize(1);
      Cell cell = make_cell(d);
      spec.step = [&](const Operand& index, const Operands& now) -> std::optional<LoopStep> {
        Operand row = cx_.op("gather", {gates, index}, attrs({{"axis", 0}})), running;
        if (lengths_) running = cx_.unsqueeze(cx_.op("less", {index, lengths_}), {1});
        auto unless_ended = [&](const Operand& x, const Operand& otherwise) {
          return cx_.op("where", {running, x, otherwise});
        };
        Operands given = now;
        if (lengths_ && quantized_) given[0] = without_ended(index, now[0]);
        Operands next = cell(row, given);
        Operand yield = next[0];
        if (lengths_) {
          yield = unless_ended(yield, cx_.scalar_like(yield, 0));
          for (size_t k = 0; k < next.size(); ++k) next[k] = unless_ended(next[k], now[k]);
        }
        return LoopStep{{}, next, {yield}};
      };
      LoopResult r = build_loop(cx_, spec);
      Operand y = backwards_[d] ? reversed(r.yields[0]) : r.yields[0];
      all_yields.push_back(cx_.unsqueeze(y, {1}));  // [seq, 1, batch, H]
      for (size_t k = 0; k < states; ++k) finals[k].push_back(cx_.unsqueeze(r.states[k], {0}));
    }
    Operands out = {cx_.concat(all_yields, 1)};
    for (const Operands& f : finals) out.push_back(cx_.concat(f, 0));
    if (batch_first_) {
      out[0] = cx_.transpose(out[0], {2, 0, 1, 3});
      for (size_t k = 1; k < out.size(); ++k) out[k] = cx_.transpose(out[k], {1, 0, 2});
    }
    return out;
  }

 private:
  // The product of 8-bit weights, which are transposed already, and of x, which is quantised by its
  // own range.
  Product quantized_product(const Operand& weights, size_t operand, size_t d) {
    const size_t scale = kFirstParameter + 2 * (operand - kW), zero = scale + 1;
    const Operand zeros = of_direction(cx_.in(zero), d), scales = of_direction(cx_.in(scale), d);
    return [this, weights, zeros, scales](const Operand& x) {
      const Operands q = cx_.b.ops("dynamic_quantize_linear", {x});
      const Operand product = cx_.op("matmul_integer", {q[0], weights, q[2], zeros});
      return cx_.mul(cx_.cast(product, f32), cx_.mul(q[1], scales));
    };
  }

  // The hidden state by whose range it is quantised: what sequences keep that ended before the last
  // step isn't part of it.
  Operand without_ended(const Operand& index, const Operand& hidden) {
    const Operand ran = cx_.unsqueeze(cx_.op("less_equal", {index, lengths_}), {1});
    return cx_.op("where", {ran, hidden, cx_.scalar_like(hidden, 0)});
  }

  // Reverses the steps, of each sequence by its own length.
  Operand reversed(const Operand& x) {
    if (lengths_ && !seq_.is_const(1)) {
      return cx_.op("reverse_sequence", {x, lengths_},
                    attrs({{"batch_axis", 1}, {"time_axis", 0}}));
    }
    return cx_.reversed(x, 0);
  }

  void read_activations(std::vector<std::string> functions) {
    per_direction_ = functions.size();
    std::vector<std::string> names = cx_.attr_strings("activations");
    if (names.empty()) {
      for (size_t d = 0; d < backwards_.size(); ++d) {
        names.insert(names.end(), functions.begin(), functions.end());
      }
    }
    if (names.size() != per_direction_ * backwards_.size()) {
      cx_.invalid(cat(names.size(), " activations"), cat(per_direction_ * backwards_.size()));
    }
    // Each function with a parameter takes the next one of the list.
    std::vector<double> alphas = cx_.attr_floats("activation_alpha"),
                        betas = cx_.attr_floats("activation_beta");
    size_t next_alpha = 0, next_beta = 0;
    auto take = [](const std::vector<double>& list, size_t* next, double otherwise) {
      return *next < list.size() ? list[(*next)++] : otherwise;
    };
    for (std::string& name : names) {
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      Activation f{name, 0, 0};
      if (name == "affine" || name == "thresholdedrelu" || name == "scaledtanh" || name == "elu") {
        f.alpha = take(alphas, &next_alpha, 1);
      }
      if (name == "leakyrelu") f.alpha = take(alphas, &next_alpha, 0.01);
      if (name == "hardsigmoid") {
        f.alpha = take(alphas, &next_alpha, 0.2);
        f.beta = take(betas, &next_beta, 0.5);
      }
      if (name == "affine") f.beta = take(betas, &next_beta, 0);
      if (name == "scaledtanh") f.beta = take(betas, &next_beta, 1);
      activations_.push_back(std::move(f));
    }
  }

  NodeContext& cx_;
  bool quantized_;
  Operand x_, lengths_;
  Dim seq_, batch_, hidden_;
  bool batch_first_ = false;
  double clip_ = 0;
  std::vector<bool> backwards_;  // by direction
  size_t per_direction_ = 0;
  std::vector<Activation> activations_;
};

Operands rnn(NodeContext& cx) {
  Recurrence r(cx, {"tanh"});
  auto bias = [&](size_t d) -> Operand {
    if (!r.has_bias()) return {};
    Operand both = r.of_direction(cx.in(kBias), d);
    return cx.add(r.part(both, 0), r.part(both, 1));
  };
  auto cell = [&](size_t d) -> Recurrence::Cell {
    Operand rt = r.transposed(r.of_direction(cx.in(kR), d));
    return [&cx, &r, d, rt](const Operand& x, const Operands& s) -> Operands {
      return {r.activate(d, 0, cx.add(x, cx.op("matmul", {s[0], rt})))};
    };
  };
  return r.run(1, bias, cell);
}

// Gates z, r, h. The bias of the hidden product of h is inside the reset when linear_before_reset.
Operands gru(NodeContext& cx) {
  Recurrence r(cx, {"sigmoid", "tanh"});
  bool linear = cx.attr_bool("linear_before_reset", false);
  auto bias = [&](size_t d) -> Operand {
    if (!r.has_bias()) return {};
    Operand both = r.of_direction(cx.in(kBias), d);
    if (!linear) return cx.add(r.part(both, 0, 3), r.part(both, 3, 3));
    Operand zr = cx.add(r.part(both, 0, 2), r.part(both, 3, 2));
    return cx.concat({zr, r.part(both, 2)}, 0);
  };
  auto cell = [&](size_t d) -> Recurrence::Cell {
    Operand rt = r.transposed(r.of_direction(cx.in(kR), d));  // [H, 3H]
    Operand r_zr = r.part(rt, 0, 2), r_h = r.part(rt, 2), b_h;
    if (linear && r.has_bias()) b_h = r.part(r.of_direction(cx.in(kBias), d), 5);
    return [&cx, &r, d, linear, r_zr, r_h, b_h](const Operand& x, const Operands& s) -> Operands {
      const Operand& h = s[0];
      Operand zr = cx.add(r.part(x, 0, 2), cx.op("matmul", {h, r_zr}));
      Operand z = r.activate(d, 0, r.part(zr, 0)), reset = r.activate(d, 0, r.part(zr, 1));
      Operand inner;
      if (linear) {
        Operand product = cx.op("matmul", {h, r_h});
        if (b_h) product = cx.add(product, b_h);
        inner = cx.mul(reset, product);
      } else {
        inner = cx.op("matmul", {cx.mul(reset, h), r_h});
      }
      Operand candidate = r.activate(d, 1, cx.add(r.part(x, 2), inner));
      Operand keep = cx.sub(cx.scalar_like(z, 1), z);
      return {cx.add(cx.mul(keep, candidate), cx.mul(z, h))};
    };
  };
  return r.run(1, bias, cell);
}

// Gates i, o, f, c; P holds peepholes of i, o, f.
Operands lstm_with(NodeContext& cx, Recurrence r) {
  bool coupled = cx.attr_bool("input_forget", false);
  auto bias = [&](size_t d) -> Operand {
    if (!r.has_bias()) return {};
    Operand both = r.of_direction(cx.in(kBias), d);
    return cx.add(r.part(both, 0, 4), r.part(both, 4, 4));
  };
  auto cell = [&](size_t d) -> Recurrence::Cell {
    const Recurrence::Product of_hidden = r.product_with(kR, d);
    Operand p;
    if (cx.has(kPeepholes)) p = r.of_direction(cx.in(kPeepholes), d);
    return [&cx, &r, d, coupled, of_hidden, p](const Operand& x, const Operands& s) -> Operands {
      const Operand &h = s[0], &c = s[1];
      Operand gates = cx.add(x, of_hidden(h));
      auto gate = [&](int64_t i, const Operand& cell_state) {
        Operand g = r.part(gates, i);
        return p && cell_state ? cx.add(g, cx.mul(r.part(p, i), cell_state)) : g;
      };
      Operand in = r.activate(d, 0, gate(0, c));
      Operand forget = coupled ? cx.sub(cx.scalar_like(in, 1), in) : r.activate(d, 0, gate(2, c));
      Operand candidate = r.activate(d, 1, gate(3, {}));
      Operand next = cx.add(cx.mul(forget, c), cx.mul(in, candidate));
      Operand out = r.activate(d, 0, gate(1, next));
      return {cx.mul(out, r.activate(d, 2, next)), next};
    };
  };
  return r.run(2, bias, cell);
}

Operands lstm(NodeContext& cx) {
  return lstm_with(cx, Recurrence(cx, {"sigmoid", "tanh", "tanh"}));
}

// com.microsoft: W and R are transposed, and quantised by operands after LSTM's.
Operands dynamic_quantize_lstm(NodeContext& cx) {
  return lstm_with(cx, Recurrence(cx, {"sigmoid", "tanh", "tanh"}, true));
}

}  // namespace

void register_recurrent(OpTable& t) {
  t.add("RNN", 7, rnn);
  t.add("GRU", 7, gru);
  t.add("LSTM", 7, lstm);
  t.add("DynamicQuantizeLSTM", 1, dynamic_quantize_lstm, kMicrosoft);
}

}  // namespace tenon::onnx
