#include "graph_program.h"

#include <cmath>
#include <map>

#include "body_maker.h"
#include "loop/scalar.h"
#include "object/tensor.h"

namespace tenon::random_programs {
namespace {

using namespace graph;  // NOLINT: this file uses only graph IR

FunctionRef make_helper(Random& random, const Helper& helper, const std::vector<Helper>& before,
                        const Signatures& signatures) {
  Builder b(signatures);
  b.at(Span::node(helper.name));
  BodyMaker maker(random, b, before);
  if (!helper.counts) {
    const Operand x = b.param("x", helper.type);
    maker.add(x, true, 5);
    for (int64_t n = random.between(1, 3); n > 0; --n) maker.step(1);
    return b.finish_as(helper.name, maker.changed(x), helper.type);
  }
  // A recursive function, in tail position or not.
  const Operand n = b.param("n", scalar_type(i64)), x = b.param("x", helper.type);
  const bool tail = random.coin();
  const Operand result = b.if_(
      b.op("less", {constant_int(0), n}),
      [&] {
        const Operand less = b.op("sub", {n, constant_int(1)});
        if (tail) return b.call_global(helper.name, {less, maker.changed(x)});
        return b.op("tanh", {b.call_global(helper.name, {less, x})});
      },
      [&] { return x; });
  return b.finish_as(helper.name, result, helper.type);
}

TypeRef signature_of(const Helper& helper) {
  auto type = make<FunctionType>();
  if (helper.counts) type->params.push_back(scalar_type(i64));
  type->params.push_back(helper.type);
  type->result = helper.type;
  return type;
}

graph::Module make_program(Random& random, bool symbolic) {
  std::vector<Dim> sizes;
  for (const char* name : {"n", "m", "k"}) {
    sizes.push_back(symbolic ? Dim::symbol(name)
                             : Dim(random.between(0, 20) == 0 ? 0 : random.between(1, 4)));
  }
  auto shape = [&] {
    std::vector<Dim> dims;
    for (int64_t rank = random.between(1, 3); rank > 0; --rank) {
      dims.push_back(random.between(0, 3) == 0 ? Dim(random.between(1, 3)) : random.pick(sizes));
    }
    return dims;
  };
  std::vector<TypeRef> inputs;
  for (int64_t count = random.between(1, 3); count > 0; --count) {
    inputs.push_back(tensor_type(f32, shape()));
  }
  std::vector<Helper> helpers;
  Signatures signatures;
  Map<String, FunctionRef> functions;
  for (int64_t count = random.between(0, 2); count > 0; --count) {
    const Helper helper{cat("helper_", helpers.size()), random.pick(inputs), random.coin()};
    signatures.functions.set(helper.name, signature_of(helper));
    functions.set(helper.name, make_helper(random, helper, helpers, signatures));
    helpers.push_back(helper);
  }
  Builder b(signatures);
  b.at(Span::node("main"));
  BodyMaker maker(random, b, helpers);
  for (size_t i = 0; i < inputs.size(); ++i) maker.add(b.param(cat("x", i), inputs[i]), true, 3);
  maker.add(b.param("i", scalar_type(i64)), true, 3);
  for (int64_t count = random.between(5, 20); count > 0; --count) maker.step(0);
  functions.set("main", b.finish("main", maker.result()));
  return make_module(functions);
}

}  // namespace

graph::Module graph_program(uint64_t seed, bool symbolic) {
  Random random(seed * 2 + (symbolic ? 1 : 0));
  for (;;) {
    try {
      return make_program(random, symbolic);
    } catch (const Error& error) {
      // Some operators refuse sizes that are 0 or smaller than a window; tries again.
      if (error.kind() != ErrorKind::Usage) throw;
    }
  }
}

std::vector<Any> random_inputs(const graph::FunctionExpr& function, uint64_t seed, bool special) {
  Random random(seed * 7 + 5);
  std::map<std::string, int64_t> sizes;
  std::vector<Any> inputs;
  for (const VarRef& param : function.params) {
    if (const auto* scalar = type_as<ScalarType>(param->type)) {
      if (scalar->dtype.is_float())
        inputs.emplace_back(static_cast<double>(random.between(-12, 12)) / 4);
      if (scalar->dtype.is_bool()) inputs.emplace_back(random.coin());
      if (scalar->dtype.is_int())
        inputs.emplace_back(wrap_to(scalar->dtype, random.between(-3, 3)));
      continue;
    }
    const auto* type = type_as<TensorType>(param->type);
    TENON_ASSERT(type && type->dims_known, "no random value of type ", to_text(param->type));
    std::vector<int64_t> shape;
    for (const Dim& d : type->dims) {
      if (d.is_const()) {
        shape.push_back(*d.as_const());
        continue;
      }
      auto [it, fresh] = sizes.try_emplace(to_text(d));
      if (fresh) it->second = random.between(0, 20) == 0 ? 0 : random.between(1, 4);
      shape.push_back(it->second);
    }
    Tensor t = Tensor::empty(shape, type->dtype);
    for (int64_t k = 0; k < t.count(); ++k) {
      double v = static_cast<double>(random.between(-12, 12)) / 4;
      if (special && random.between(0, 5) == 0) v = random.coin() ? std::nan("") : -0.0;
      const bool is_float = type->dtype.is_float();
      loop::scalar_store(
          type->dtype, t.data_as<char>() + k * type->dtype.bytes(),
          is_float ? loop::float_bits(v) : wrap_to(type->dtype, random.between(-3, 3)));
    }
    inputs.emplace_back(t);
  }
  return inputs;
}

}  // namespace tenon::random_programs
