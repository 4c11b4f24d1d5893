#include "graph/ir/random_module_testing.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include "graph/ir/builder.h"
#include "graph/ir/check.h"
#include "graph/ir/operators_testing.h"
#include "graph/ir/text.h"
#include "json/object_json.h"
#include "loop/random_compute_testing.h"
#include "object/reflect.h"

namespace tenon::graph {

namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }
  std::string name() {
    static const std::vector<std::string> names = {
        "x", "y", "", "conv1", "0", "a b", "x.1", "é", "q\"\\", "if", "tensor", "\x01", "x_1", "_"};
    return pick(names);
  }

 private:
  std::mt19937_64 engine_;
};

// ---- kernels ----

class RandomKernel {
 public:
  explicit RandomKernel(Random* r) : r_(*r) {}

  loop::KernelRef make_kernel(const std::string& name) {
    auto k = make<loop::Kernel>();
    k->name = name;
    Dim n = Dim::symbol("n");
    k->inputs = {loop::buffer("x", f32, {n, 4}), loop::buffer(r_.name(), i8, {n})};
    k->outputs = {loop::buffer("y", f32, {n, 4})};
    if (r_.chance(30)) k->integers = {String("odd symbol")};
    if (r_.chance(30)) k->in_place = {loop::InPlace(0, 0)};
    floats_ = {k->inputs[0]};
    bytes_ = {k->inputs[1]};
    out_ = k->outputs[0];
    vars_ = {};
    k->body = stmt(3, false);
    return k;
  }

 private:
  loop::ExprRef index() {
    switch (r_.below(6)) {
      case 0:
        return loop::index(r_.below(4));
      case 1:
        return loop::dim_value(floordiv(Dim::symbol("n") + r_.below(3), 2));
      case 2:
        return loop::checked_index(loop::cast(i64, loop::load(bytes_[0], {leaf()})),
                                   Dim::symbol("n"));
      case 3:
        return loop::binary(loop::BinaryOp::kFloorDiv, leaf(), loop::index(2));
      default:
        return leaf();
    }
  }
  loop::ExprRef leaf() { return vars_.empty() ? loop::index(r_.below(9) - 4) : r_.pick(vars_); }

  loop::ExprRef float_expr(int depth) {
    if (depth == 0 || r_.chance(15)) {
      if (r_.chance(50)) return loop::load(r_.pick(floats_), {index(), index()});
      // Any double is a literal, rounded to f32; NaNs keep their bits.
      double d = std::bit_cast<double>(r_.bits());
      auto l = make<loop::Literal>();
      l->dtype = f32;
      double value = std::isnan(d) ? d : static_cast<double>(static_cast<float>(d));
      l->bits = std::bit_cast<int64_t>(value);
      return l;
    }
    loop::ExprRef a = float_expr(depth - 1), b = r_.chance(30) ? a : float_expr(depth - 1);
    switch (r_.below(5)) {
      case 0:
        return loop::select(loop::binary(loop::BinaryOp::kLt, a, b), b, a);
      case 1:
        return loop::cast(f32, loop::cast(r_.pick<DataType>({f16, f64, i64, u8}), a));
      case 2: {
        auto op =
            static_cast<loop::UnaryOp>(r_.below(static_cast<int64_t>(loop::unary_ops().size())));
        const bool fits = takes(info(op), f32) && !info(op).tests;
        return fits ? loop::unary(op, a) : a;
      }
      case 3:
        return loop::cast(f32, loop::load(bytes_[0], {index()}));
      default:
        return loop::binary(r_.pick<loop::BinaryOp>({loop::BinaryOp::kAdd, loop::BinaryOp::kSub,
                                                     loop::BinaryOp::kMul, loop::BinaryOp::kDiv,
                                                     loop::BinaryOp::kPow, loop::BinaryOp::kMax}),
                            a, b);
    }
  }

  loop::StmtRef store() {
    auto s = make<loop::Store>();
    s->buffer = out_;
    s->indices = {index()};
    if (r_.chance(70)) s->indices.push_back(index());
    s->value = float_expr(3);
    return s;
  }

  loop::StmtRef stmt(int depth, bool in_loop) {
    if (depth == 0) return store();
    switch (r_.below(8)) {
      case 0:
      case 1: {
        auto s = make<loop::Seq>();
        int64_t count = r_.below(4);
        for (int64_t i = 0; i < count; ++i) s->body.push_back(stmt(depth - 1, in_loop));
        return s;
      }
      case 2:
      case 3: {
        auto s = make<loop::For>();
        s->loop = in_loop
                      ? loop::ForKind::kSerial
                      : r_.pick<loop::ForKind>({loop::ForKind::kSerial, loop::ForKind::kParallel});
        s->begin = leaf();
        s->extent = loop::dim_value(Dim::symbol("n"));
        if (r_.chance(20)) {
          s->loop = loop::ForKind::kUnrolled;
          s->extent = loop::index(4);
        }
        auto v = loop::var(r_.name(), i64);
        s->var = v;
        vars_.push_back(v);
        s->body = stmt(depth - 1, true);
        vars_.pop_back();
        return s;
      }
      case 4: {
        auto s = make<loop::If>();
        s->condition = loop::binary(loop::BinaryOp::kLe, leaf(), loop::dim_value(Dim::symbol("n")));
        s->then_body = stmt(depth - 1, in_loop);
        if (r_.chance(50)) s->else_body = stmt(depth - 1, in_loop);
        return s;
      }
      case 5: {
        auto s = make<loop::Let>();
        s->value = index();
        auto v = loop::var(r_.name(), i64);
        s->var = v;
        vars_.push_back(v);
        s->body = stmt(depth - 1, in_loop);
        vars_.pop_back();
        return s;
      }
      case 6: {
        auto s = make<loop::Alloc>();
        s->buffer = loop::buffer(r_.name(), f32, {4, Dim::symbol("n") * 2});
        floats_.push_back(s->buffer);
        s->body = stmt(depth - 1, in_loop);
        floats_.pop_back();
        return s;
      }
      default:
        return store();
    }
  }

  Random& r_;
  std::vector<Ref<const loop::Buffer>> floats_, bytes_;
  Ref<const loop::Buffer> out_;
  std::vector<loop::ExprRef> vars_;
};

// ---- functions ----

class RandomModule {
 public:
  explicit RandomModule(uint64_t seed) : r_(seed) {}

  Module make_one() {
    data_type();
    std::vector<std::string> names = {"main", "helper", "odd name/1"};
    for (const auto& [_, adt] : adts_) signatures_.add_type(adt);
    signatures_.kernels.set("k", RandomKernel(&r_).make_kernel("k"));
    const auto seed = static_cast<unsigned>(r_.bits());
    signatures_.kernels.set("odd compute", loop::RandomCompute(seed).compute());
    for (const std::string& name : names) signatures_.functions.set(String(name), signature());
    Map<String, FunctionRef> functions;
    for (const std::string& name : names) functions.set(String(name), function(name));
    return make_module(functions, signatures_.kernels, adts_);
  }

 private:
  struct Values {
    std::vector<Operand> floats, ints, bools, lists, trees, tuples, functions, unknown, shapes;
  };

  void data_type() {
    const TypeRef t = type_var("T");
    auto leaf = make<Constructor>();
    leaf->name = "Leaf";
    auto node = make<Constructor>();
    node->name = "Node";
    node->fields = {adt_type("tree", {t}), t, adt_type("tree", {t})};
    auto d = make<AdtDefinition>();
    d->name = "tree";
    d->type_params = {String("T")};
    d->constructors = {leaf, node};
    adts_.set("tree", d);
  }

  static TypeRef float_type() { return tensor_type(f32, {Dim::symbol("n"), 4}); }

  // Every function takes a tensor, an i64 and a list, and gives an i64.
  TypeRef signature() {
    return function_type({float_type(), scalar_type(i64), adt_type("list", {scalar_type(i64)})},
                         scalar_type(i64));
  }

  FunctionRef function(const std::string& name) {
    builder_ = Builder(signatures_);
    builder_.at(Span::at("random.tn", 1, 1));
    Values v;
    v.floats = {builder_.param(r_.name(), float_type())};
    v.ints = {builder_.param("i", scalar_type(i64))};
    v.lists = {builder_.param(r_.name(), adt_type("list", {scalar_type(i64)}))};
    v.bools = {constant_bool(r_.chance(50))};
    Operand result = body(v, 3, 12);
    Attrs attrs;
    for (const char* attr : {kExportAttr, kInlineAttr}) {
      if (r_.chance(30)) attrs.set(attr, Any(r_.chance(50)));
    }
    return builder_.finish_as(name, result, scalar_type(i64), attrs);
  }

  Operand body(Values v, int depth, int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) step(&v, depth);
    return int_of(v);
  }

  Operand int_of(const Values& v) {
    return r_.chance(15) ? constant_int(static_cast<int64_t>(r_.bits())) : r_.pick(v.ints);
  }

  void step(Values* v, int depth) {
    builder_.at(Span::at("random.tn", static_cast<int32_t>(r_.below(99)) + 1, 2));
    switch (r_.below(18)) {
      case 0:
        v->floats.push_back(builder_.op("relu", {r_.pick(v->floats)}));
        return;
      case 1: {
        Operand y = builder_.op("add", {r_.pick(v->floats), r_.pick(v->floats)});
        v->floats.push_back(y);
        return;
      }
      case 2: {
        const char* op = r_.pick<const char*>({"add", "sub", "mul"});
        v->ints.push_back(builder_.op(op, {int_of(*v), int_of(*v)}));
        return;
      }
      case 3:
        v->bools.push_back(builder_.op("less", {int_of(*v), int_of(*v)}));
        return;
      case 4:
        fresh_sizes(v);
        return;
      case 5:
        constants();
        return;
      case 6:
        packed(v);
        return;
      case 7:
        tuples(v);
        return;
      case 8: {
        if (depth == 0) return;
        Operand c = r_.pick(v->bools);
        int64_t n = r_.below(4);
        v->ints.push_back(builder_.if_(
            c, [&] { return body(*v, depth - 1, n); }, [&] { return body(*v, depth - 1, n); }));
        return;
      }
      case 9:
        loop(v, depth);
        return;
      case 10:
        match(v, depth);
        return;
      case 11:
        literal(v, depth);
        return;
      case 12: {
        std::string name = r_.pick<std::string>({"main", "helper", "odd name/1"});
        v->ints.push_back(
            builder_.call_global(name, {r_.pick(v->floats), int_of(*v), r_.pick(v->lists)}));
        return;
      }
      case 13:
        if (!v->functions.empty()) {
          v->ints.push_back(builder_.call_closure(r_.pick(v->functions), {int_of(*v)}));
        }
        return;
      case 14:
        kernel(v);
        return;
      case 15:
        construct(v);
        return;
      case 16:
        sizes(v);
        return;
      default:
        attributes(v);
        return;
    }
  }

  void fresh_sizes(Values* v) {
    Operand x = r_.pick(v->floats);
    if (r_.chance(50)) {
      builder_.op("nonzero", {x});
    } else {
      builder_.ops("unique", {x});
    }
    if (!v->unknown.empty()) {
      Operand y = builder_.match_shape(r_.pick(v->unknown), {builder_.fresh_symbol("m"), 4});
      builder_.op("softmax", {y}, attrs({{"axis", r_.below(2)}}));
    }
  }

  void sizes(Values* v) {
    Operand s = builder_.op("shape_of", {r_.pick(v->floats)});
    std::vector<Dim> e = builder_.elements_of(s);
    Dim n = Dim::symbol("n");
    builder_.check(
        r_.pick<CheckKind>({CheckKind::kEqual, CheckKind::kLessEqual, CheckKind::kBroadcast}),
        floordiv(e[0] * 3 + 1, 2), max(e[0], mod(n * n, 7)) - 5, r_.name());
    Operand i = builder_.match_elements(constant_shape({2, 3}), {2, 3});
    v->shapes.push_back(i);
    std::vector<Dim> bound = builder_.elements_of(r_.pick(v->ints));
    builder_.op("reshape", {r_.pick(v->floats)}, attrs({{"shape", attr_dims({n * 4})}}));
  }

  void constants() {
    static const std::vector<DataType> dtypes = {boolean, i8,  i16, i32, i64,  u8, u16,
                                                 u32,     u64, f16, f32, bf16, f64};
    DataType dtype = r_.pick(dtypes);
    std::vector<int64_t> shape;
    for (int64_t i = r_.below(3); i > 0; --i) shape.push_back(r_.below(4));
    Tensor t = Tensor::empty(shape, dtype);
    for (int64_t i = 0; i < t.bytes(); ++i) {
      uint64_t b = r_.bits();
      t.data_as<uint8_t>()[i] = static_cast<uint8_t>(dtype == boolean ? b & 1 : b);
    }
    double d = std::bit_cast<double>(r_.bits());
    double f = std::isnan(d)
                   ? d
                   : static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(r_.bits())));
    Operand half = constant_float(f32, std::isnan(f) ? 0.25 : f);
    builder_.tuple({constant(t, r_.name()), constant_float(f64, d), half, nullptr,
                    constant_string(r_.name()), constant_shape({r_.below(5)}),
                    constant_int(INT64_MIN), constant_bool(r_.chance(50))});
  }

  Any any_value(int depth) {
    switch (r_.below(depth == 0 ? 6 : 8)) {
      case 0:
        return Any(static_cast<int64_t>(r_.bits()));
      case 1:
        return Any(std::bit_cast<double>(r_.bits()));
      case 2:
        return Any(r_.chance(50));
      case 3:
        return Any(String(r_.name()));
      case 4:
        return Any(r_.pick<DataType>({f32, boolean, u8, bf16}));
      case 5:
        return Any(Dim::symbol("n") * 2 - 3);
      default: {
        Array<Any> list;
        for (int64_t i = r_.below(3); i > 0; --i) list.push_back(any_value(depth - 1));
        return Any(list);
      }
    }
  }

  Attrs any_attrs() {
    Attrs out;
    out.set("a", any_value(2));
    out.set("b_1", any_value(2));
    return out;
  }

  void packed(Values* v) {
    auto c = make<Call>();
    c->kind = CalleeKind::kPacked;
    c->callee = r_.name();
    c->args = {r_.pick(v->floats), constant_int(3)};
    if (r_.chance(50)) c->attrs = any_attrs();
    auto o = make<OpaqueType>();
    o->key = r_.name();
    switch (r_.below(3)) {
      case 0:
        c->result_type = tensor_type_unknown(f32);
        v->unknown.push_back(builder_.bind(c, r_.name()));
        return;
      case 1:
        c->result_type = array_type(tuple_type({o, tensor_type_of_rank(f16, 3)}));
        break;
      default:
        c->result_type = unit_type();
    }
    builder_.bind(c, r_.name());
  }

  void tuples(Values* v) {
    std::vector<Operand> fields = {r_.pick(v->floats), int_of(*v)};
    if (!v->tuples.empty() && r_.chance(30)) fields.push_back(r_.pick(v->tuples));
    Operand t = builder_.tuple(fields);
    v->tuples.push_back(t);
    v->ints.push_back(builder_.field(t, 1));
  }

  void loop(Values* v, int depth) {
    if (depth == 0) return;
    Operand limit = int_of(*v);
    int64_t n = r_.below(4);
    TypeRef state = float_type();
    Operand out = builder_.loop(
        {r_.name(), "acc"}, {scalar_type(i64), state}, {constant_int(0), r_.pick(v->floats)},
        [&](const std::vector<Operand>& vars) {
          return builder_.op("less", {vars[0], limit});
        },
        [&](const std::vector<Operand>& vars) {
          Values inner = *v;
          inner.ints.push_back(vars[0]);
          inner.floats.push_back(vars[1]);
          Operand next = body(inner, depth - 1, n);
          Operand acc = builder_.op("add", {vars[1], vars[1]});
          return builder_.tuple({next, acc});
        });
    v->ints.push_back(builder_.field(out, 0));
  }

  void match(Values* v, int depth) {
    if (depth == 0) return;
    auto m = make<Match>();
    m->value = r_.pick(v->lists);
    auto arm = [&](const char* name, std::vector<TypeRef> types) {
      auto p = make<Pattern>();
      p->kind = *name ? PatternKind::kConstructor : PatternKind::kAny;
      p->constructor = name;
      builder_.begin_block();
      Values inner = *v;
      for (const TypeRef& t : types) {
        auto field = make<Pattern>();
        if (r_.chance(80)) {
          field->kind = PatternKind::kVariable;
          field->var = builder_.block_var(r_.name(), t);
          (type_as<ScalarType>(t) ? inner.ints : inner.lists).push_back(field->var);
        }
        p->fields.push_back(field);
      }
      m->patterns.push_back(p);
      m->arms.push_back(builder_.finish_block(body(inner, depth - 1, r_.below(4))));
    };
    arm("Cons", {scalar_type(i64), adt_type("list", {scalar_type(i64)})});
    arm(r_.chance(50) ? "" : "Nil", {});
    v->ints.push_back(builder_.bind(m, r_.name()));
  }

  void literal(Values* v, int depth) {
    if (depth == 0) return;
    std::string self = r_.chance(50) ? "self" : "";
    Operand f = builder_.function(self, {r_.name()}, {scalar_type(i64)}, scalar_type(i64),
                                  [&](const std::vector<Operand>& vars) {
                                    Values inner = *v;
                                    inner.ints.push_back(vars[0]);
                                    if (!self.empty()) inner.functions.push_back(vars[1]);
                                    return body(inner, depth - 1, r_.below(5));
                                  });
    v->functions.push_back(f);
  }

  void kernel(Values* v) {
    const loop::KernelInterface& k = *signatures_.kernels.at("k");
    auto c = make<Call>();
    c->kind = CalleeKind::kKernel;
    c->callee = "k";
    Tensor bytes = Tensor::empty({4}, i8);
    for (int i = 0; i < 4; ++i) bytes.data_as<int8_t>()[i] = static_cast<int8_t>(r_.bits());
    Operand x = builder_.match_shape(r_.pick(v->floats), {4, 4});
    c->args = {x, constant(bytes)};
    if (!k.integers.empty()) c->attrs.set("integers", Array<Dim>{Dim::symbol("n") + 1});
    builder_.bind(c, r_.name());
  }

  void construct(Values* v) {
    auto nil = make<Construct>();
    nil->constructor = "Nil";
    nil->type_args = {scalar_type(i64)};
    Operand empty = builder_.bind(nil);
    auto cons = make<Construct>();
    cons->constructor = "Cons";
    cons->type_args = {scalar_type(i64)};
    cons->fields = {int_of(*v), r_.chance(50) ? empty : r_.pick(v->lists)};
    v->lists.push_back(builder_.bind(cons, r_.name()));
    auto leaf = make<Construct>();
    leaf->constructor = "Leaf";
    leaf->type_args = {float_type()};
    Operand tree = builder_.bind(leaf);
    auto node = make<Construct>();
    node->constructor = "Node";
    node->type_args = {float_type()};
    node->fields = {tree, r_.pick(v->floats), tree};
    builder_.bind(node);
  }

  void attributes(Values* v) {
    Attrs given;
    if (r_.chance(50)) given.set("i", Any(static_cast<int64_t>(r_.bits())));
    if (r_.chance(50)) given.set("f", Any(std::bit_cast<double>(r_.bits())));
    if (r_.chance(50)) given.set("s", Any(String(r_.name())));
    if (r_.chance(50)) given.set("t", Any(r_.pick<DataType>({f16, boolean, i8})));
    if (r_.chance(50)) given.set("is", attr_ints({r_.below(9), -r_.below(9)}));
    if (r_.chance(50)) given.set("fs", attr_floats({0.5, std::bit_cast<double>(r_.bits())}));
    if (r_.chance(50)) given.set("d", Any(Dim::symbol("n") * 3 - 1));
    if (r_.chance(50)) given.set("ds", attr_dims({min(Dim::symbol("n"), 3), 2}));
    v->floats.push_back(builder_.op("tagged", {r_.pick(v->floats)}, given));
    builder_.op("clip", {r_.pick(v->floats), nullptr, constant_tensor()});
  }

  Operand constant_tensor() {
    Tensor t = Tensor::empty(std::vector<int64_t>{}, f32);
    *t.data_as<float>() = 1.5f;
    return constant(t);
  }

  Random r_;
  Map<String, Ref<const AdtDefinition>> adts_;
  Signatures signatures_;
  Builder builder_;
};

}  // namespace

Module random_module(uint64_t seed) {
  return RandomModule(seed).make_one();
}

namespace {

TEST(RandomModule, IsValidAndReadsBackEqual) {
  register_test_operators();
  register_graph_types();
  const char* more = std::getenv("TENON_RANDOM_MODULES");  // how many; the default takes seconds
  const uint64_t count = more ? std::stoull(more) : 300;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Module m = random_module(seed);
    ASSERT_NO_THROW(check_module(m)) << "seed " << seed << "\n" << to_text(m);
    std::string text = to_text(m);
    Module back;
    try {
      back = parse_module(text, "random.tn");
    } catch (const Error& e) {
      FAIL() << "seed " << seed << "\n" << e.render() << "\n" << text;
    }
    ASSERT_EQ(to_text(back), text) << "seed " << seed;
    ASSERT_TRUE(structural_equal(m, back)) << "seed " << seed << "\n" << text;
    ASSERT_EQ(structural_hash(m), structural_hash(back)) << "seed " << seed;
    ASSERT_NO_THROW(check_module(back)) << "seed " << seed;
  }
}

TEST(RandomModule, ReadsBackEqualFromJson) {
  register_test_operators();
  register_graph_types();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Module m = random_module(seed);
    Any back = from_json(to_json(m));
    ASSERT_TRUE(structural_equal(m, back)) << "seed " << seed;
    ASSERT_EQ(to_text(back.as<Module>()), to_text(m)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tenon::graph
