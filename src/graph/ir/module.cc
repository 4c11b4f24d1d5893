#include "graph/ir/module.h"

#include "loop/types.h"
#include "object/reflect.h"

namespace tenon::graph {

const TypeInfo& Constructor::type_info() {
  static const ::tenon::Field fields[] = {field("name", &Constructor::name),
                                          field("fields", &Constructor::fields)};
  static const TypeInfo info = tenon::type_of<Constructor>("graph.Constructor", fields);
  return info;
}

const TypeInfo& AdtDefinition::type_info() {
  static const ::tenon::Field fields[] = {
      field("name", &AdtDefinition::name),
      field("type_params", &AdtDefinition::type_params),
      field("constructors", &AdtDefinition::constructors),
  };
  static const TypeInfo info = tenon::type_of<AdtDefinition>("graph.AdtDefinition", fields);
  return info;
}

const TypeInfo& ModuleNode::type_info() {
  static const ::tenon::Field fields[] = {
      field("functions", &ModuleNode::functions),
      field("kernels", &ModuleNode::kernels),
      field("adts", &ModuleNode::adts),
  };
  static const TypeInfo info = tenon::type_of<ModuleNode>("graph.Module", fields);
  return info;
}

Module make_module(Map<String, FunctionRef> functions,
                   Map<String, loop::KernelInterfaceRef> kernels,
                   Map<String, Ref<const AdtDefinition>> adts) {
  auto m = make<ModuleNode>();
  m->functions = std::move(functions);
  m->kernels = std::move(kernels);
  m->adts = std::move(adts);
  return m;
}

namespace {

Ref<const Constructor> constructor(const char* name, Array<TypeRef> fields) {
  auto c = make<Constructor>();
  c->name = name;
  c->fields = std::move(fields);
  return c;
}

Ref<const AdtDefinition> adt(const char* name, Ref<const Constructor> a, Ref<const Constructor> b) {
  auto d = make<AdtDefinition>();
  d->name = name;
  d->type_params = {String("T")};
  d->constructors = {std::move(a), std::move(b)};
  return d;
}

Map<String, Ref<const AdtDefinition>> make_prelude() {
  const TypeRef t = type_var("T");
  Map<String, Ref<const AdtDefinition>> out;
  out.set("option", adt("option", constructor("None", {}), constructor("Some", {t})));
  out.set("list",
          adt("list", constructor("Nil", {}), constructor("Cons", {t, adt_type("list", {t})})));
  return out;
}

}  // namespace

const Map<String, Ref<const AdtDefinition>>& prelude() {
  static const Map<String, Ref<const AdtDefinition>> types = make_prelude();
  return types;
}

void register_graph_types() {
  loop::register_loop_types();
  register_types({
      &Type::type_info(),       &TensorType::type_info(),  &ScalarType::type_info(),
      &ShapeType::type_info(),  &TupleType::type_info(),   &FunctionType::type_info(),
      &ArrayType::type_info(),  &AdtType::type_info(),     &TypeVar::type_info(),
      &OpaqueType::type_info(), &Expr::type_info(),        &Var::type_info(),
      &Constant::type_info(),   &Call::type_info(),        &FunctionExpr::type_info(),
      &If::type_info(),         &Loop::type_info(),        &Match::type_info(),
      &Tuple::type_info(),      &Field::type_info(),       &Construct::type_info(),
      &Closure::type_info(),    &Size::type_info(),        &MatchShape::type_info(),
      &Check::type_info(),      &Binding::type_info(),     &Block::type_info(),
      &Pattern::type_info(),    &Constructor::type_info(), &AdtDefinition::type_info(),
      &ModuleNode::type_info(),
  });
}

}  // namespace tenon::graph
