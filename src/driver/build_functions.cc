#include "driver/build_functions.h"

#include <algorithm>
#include <unordered_set>

#include "driver/build_values.h"
#include "graph/ir/expected_types.h"
#include "graph/ir/typed_text.h"
#include "graph/ir/value_words.h"
#include "graph/ir/walk.h"
#include "object/reflect.h"

namespace tenon::driver {
namespace {

using graph::Operand;

// Null for an unknown function.
graph::TypeRef type_of_global(const graph::Builder& builder, const String& function) {
  const graph::TypeRef* known = builder.signatures().functions.find(function);
  return known ? *known : nullptr;
}

std::vector<std::string> names_of(const Array<String>& names) {
  return {names.begin(), names.end()};
}

void need(const Function& function, const char* what) {
  if (!function) throw Error(ErrorKind::Usage, cat(what, " is none, not a function"));
}

// A host's function from an array of variables to an operand of that type, if it isn't null.
graph::Builder::LoopBody body_of(graph::Builder& builder, const Function& function,
                                 const char* what, const graph::TypeRef& expected) {
  need(function, what);
  return [&builder, function, expected](const std::vector<Operand>& variables) {
    const Any made = function(Array<Operand>(variables.begin(), variables.end()));
    return operand_of(builder, made, expected);
  };
}

// Blocks of nodes that a host makes: what walks them recurses, and takes each for another.
class BlockNesting {
 public:
  void require(const graph::ExprRef& value, int depth) {
    if (depth > graph::kMaxNesting) {
      throw Error(ErrorKind::Usage,
                  cat("blocks are nested deeper than ", graph::kMaxNesting, " levels"));
    }
    if (!graph::is_right_hand_side(value)) return;  // an error of who takes it
    graph::for_each_block(value, [&](const graph::BlockRef& block) {
      if (!block || block->bindings.empty()) return;
      if (!seen_.insert(block.get()).second) {
        throw Error(ErrorKind::Usage, "a block is part of two right-hand sides")
            .help("make its bindings anew for each");
      }
      for (const auto& binding : block->bindings) {
        if (binding && binding->value) require(binding->value, depth + 1);
      }
    });
  }

 private:
  std::unordered_set<const graph::Block*> seen_;
};

graph::CheckKind check_kind(const String& kind) {
  const auto* const name = std::ranges::find(graph::kCheckNames, kind.view());
  if (name != std::end(graph::kCheckNames)) {
    return static_cast<graph::CheckKind>(name - std::begin(graph::kCheckNames));
  }
  throw Error(ErrorKind::Usage, "this is not a kind of check")
      .found(quoted(kind))
      .expected("\"equal\", \"less_equal\" or \"broadcast\"");
}

}  // namespace

void build_at(const BuilderRef& builder, const String& node) {
  builder_of(builder).at(Span::node(node.str()));
}

Operand build_param(const BuilderRef& builder, const String& name, const Any& type) {
  return builder_of(builder).param(name, type_of_value(builder, type));
}

Operand build_op(const BuilderRef& builder, const String& op, const Array<Any>& arguments,
                 const Any& attributes) {
  if (graph::is_value_word(op.view())) {
    graph::Builder& b = builder_of(builder);
    if (const auto attrs = map_or_empty<graph::Attrs>(attributes, "a map of attributes");
        !attrs.empty()) {
      throw Error(ErrorKind::Usage, cat(op.view(), " takes no attributes"))
          .found(quoted((*attrs.begin()).first));
    }
    std::vector<Operand> operands;
    for (const Any& argument : arguments) {
      operands.push_back(
          operand_of(b, argument, graph::expected_of_value_word(op.view(), operands)));
    }
    return b.bind(graph::value_call(op.view(), operands, b.signatures().variances()));
  }
  return builder_of(builder).op(op, operator_operands(arguments), attributes_of(op, attributes));
}

Operand build_call(const BuilderRef& builder, const String& function, const Array<Any>& arguments,
                   const Array<Any>& type_arguments) {
  graph::Builder& b = builder_of(builder);
  const String name = full_name(*builder, function);
  const std::vector<graph::TypeRef> types = types_of(builder, type_arguments);
  return b.call_global(name, arguments_of(b, arguments, type_of_global(b, name), types), types);
}

Operand build_call_packed(const BuilderRef& builder, const String& function,
                          const Array<Any>& arguments, const Any& result) {
  graph::Builder& b = builder_of(builder);
  return b.call_packed(function, operands_of(b, arguments), type_of_value(builder, result));
}

Operand build_call_closure(const BuilderRef& builder, const Any& closure,
                           const Array<Any>& arguments) {
  graph::Builder& b = builder_of(builder);
  const Operand callee = operand_of(closure);
  const graph::TypeRef type = callee ? graph::type_of(callee) : nullptr;
  return b.call_closure(callee, arguments_of(b, arguments, type));
}

Operand build_tuple(const BuilderRef& builder, const Array<Any>& fields) {
  graph::Builder& b = builder_of(builder);
  return b.tuple(operands_of(b, fields));
}

Operand build_field(const BuilderRef& builder, const Any& tuple, int64_t index) {
  return builder_of(builder).field(operand_of(tuple), index);
}

Operand build_match_shape(const BuilderRef& builder, const Any& value, const Array<Any>& sizes) {
  return builder_of(builder).match_shape(operand_of(value), sizes_of(sizes));
}

Operand build_match_elements(const BuilderRef& builder, const Any& value, const Array<Any>& sizes) {
  return builder_of(builder).match_elements(operand_of(value), sizes_of(sizes));
}

void build_check(const BuilderRef& builder, const String& kind, const Any& left, const Any& right,
                 const String& message) {
  builder_of(builder).check(check_kind(kind), size_of(left), size_of(right), message);
}

Operand build_if(const BuilderRef& builder, const Any& condition, const Function& then,
                 const Function& otherwise) {
  graph::Builder& b = builder_of(builder);
  need(then, "the first arm");
  need(otherwise, "the second arm");
  graph::TypeRef first;
  const auto first_arm = [&] {
    Operand result = operand_of(b, then(), nullptr);
    if (result) first = graph::type_of(result);
    return result;
  };
  return b.if_(operand_of(condition), first_arm, [&] { return operand_of(b, otherwise(), first); });
}

Operand build_loop(const BuilderRef& builder, const Array<String>& names, const Array<Any>& types,
                   const Array<Any>& init, const Function& condition, const Function& body) {
  if (names.size() != types.size() || names.size() != init.size()) {
    throw Error(ErrorKind::Usage, "a loop needs a type and an initial value for each variable")
        .found(cat(names.size(), " names, ", types.size(), " types, ", init.size(), " values"));
  }
  graph::Builder& b = builder_of(builder);
  const std::vector<graph::TypeRef> variables = types_of(builder, types);
  std::vector<Operand> first;
  for (size_t i = 0; i < init.size(); ++i) first.push_back(operand_of(b, init[i], variables[i]));
  return b.loop(names_of(names), variables, first,
                body_of(b, condition, "the loop's condition", nullptr),
                body_of(b, body, "the loop's body", graph::loop_type(variables)));
}

Operand build_function(const BuilderRef& builder, const String& self, const Array<String>& names,
                       const Array<Any>& types, const Any& result, const Function& body) {
  if (names.size() != types.size()) {
    throw Error(ErrorKind::Usage, "a function needs a type for each parameter")
        .found(cat(names.size(), " names, ", types.size(), " types"));
  }
  graph::Builder& b = builder_of(builder);
  const graph::TypeRef result_type = type_of_value(builder, result);
  return b.function(self, names_of(names), types_of(builder, types), result_type,
                    body_of(b, body, "the body", result_type));
}

Operand build_construct(const BuilderRef& builder, const String& constructor,
                        const Array<Any>& fields, const Any& type) {
  graph::Builder& b = builder_of(builder);
  const graph::ConstructorRef ref = b.signatures().find_constructor(constructor.view());
  if (!ref.adt) {
    throw Error(ErrorKind::Usage, cat("no data type has a constructor ", quoted(constructor)))
        .help("define its data type before: tenon.build_define");
  }
  const Array<String>& params = ref.adt->type_params;
  std::vector<graph::TypeRef> variables;
  for (const String& param : params) variables.push_back(graph::type_var(param));
  const graph::TypeRef expected = type.is_none() ? graph::TypeRef() : type_of_value(builder, type);
  graph::ExpectedTypes types(params, ref.constructor->fields,
                             graph::adt_type(ref.adt->name, variables), expected,
                             b.signatures().variances());
  auto made = make<graph::Construct>();
  made->constructor = constructor;
  for (const Operand& field : operands_of(b, fields, &types)) made->fields.push_back(field);
  made->type_args = types.type_args();
  if (made->type_args.empty() && !params.empty() &&
      fields.size() == ref.constructor->fields.size()) {
    throw Error(ErrorKind::Usage,
                cat("nothing determines the type arguments of ", constructor.view()))
        .help(cat("give the type, such as \"", ref.adt->name.view(), "[i64]\""));
  }
  return b.bind(made);
}

Operand build_match(const BuilderRef& builder, const Any& value, const Array<String>& patterns,
                    const Array<Function>& arms) {
  graph::Builder& b = builder_of(builder);
  if (patterns.size() != arms.size()) {
    throw Error(ErrorKind::Usage, "a match needs an arm for each pattern")
        .found(cat(patterns.size(), " patterns, ", arms.size(), " arms"));
  }
  auto match = make<graph::Match>();
  match->value = operand_of(value);
  graph::TypeRef first;  // the type of the first arm, which numbers of the others take
  for (size_t i = 0; i < patterns.size(); ++i) {
    need(arms[i], "an arm");
    const auto arm = [&] {
      std::vector<Operand> variables;
      const auto variable = [&](std::string_view name, const graph::TypeRef& type) {
        graph::VarRef made = b.block_var(name, type);
        variables.emplace_back(made);
        return made;
      };
      match->patterns.push_back(graph::parse_pattern(patterns[i], graph::type_of(match->value),
                                                     b.signatures(), variable));
      const Any result = arms[i](Array<Operand>(variables.begin(), variables.end()));
      return operand_of(b, result, first);
    };
    match->arms.push_back(b.block(arm));
    if (i == 0) first = graph::type_of(match->arms[0]->result);
  }
  return b.bind(match);
}

Operand build_closure(const BuilderRef& builder, const String& function,
                      const Array<Any>& arguments, const Array<Any>& type_arguments) {
  graph::Builder& b = builder_of(builder);
  auto closure = make<graph::Closure>();
  closure->function = full_name(*builder, function);
  const std::vector<graph::TypeRef> types = types_of(builder, type_arguments);
  closure->type_args = Array<graph::TypeRef>(types);
  const graph::TypeRef type = type_of_global(b, closure->function);
  closure->captures = Array<Operand>(arguments_of(b, arguments, type, types));
  return b.bind(closure);
}

Operand build_array(const BuilderRef& builder, const Any& type, const Array<Any>& elements) {
  graph::Builder& b = builder_of(builder);
  const graph::TypeRef element = type_of_value(builder, type);
  Operand out = b.bind(graph::empty_array(element));
  for (const Any& value : elements) {
    out = b.bind(graph::value_call("array_push", {out, operand_of(b, value, element)},
                                   b.signatures().variances()));
  }
  return out;
}

Operand build_size(const BuilderRef& builder, const Any& size) {
  return builder_of(builder).bind(graph::make_size(size_of(size)));
}

Operand build_bind(const BuilderRef& builder, const graph::ExprRef& value, const String& name) {
  if (!value) throw Error(ErrorKind::Usage, "the right-hand side is none");
  BlockNesting().require(value, 0);
  return builder_of(builder).bind(value, name);
}

Any build_node(const String& type_key, const Map<String, Any>& fields) {
  const TypeInfo* type = find_type(type_key.view());
  if (!type || !type->make) {
    throw Error(ErrorKind::Usage, cat("no type ", quoted(type_key), " can be made"));
  }
  std::vector<const Field*> known = all_fields(*type);
  std::erase_if(known, [](const Field* field) { return field->flags & kHidden; });
  Ref<Object> made = type->make();
  for (const auto& [name, value] : fields) {
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&, n = name](const Field* f) { return n == f->name; });
    if (at == known.end()) {
      std::vector<std::string> names;
      names.reserve(known.size());
      for (const Field* field : known) names.emplace_back(field->name);
      throw Error(ErrorKind::Usage, cat(type_key.view(), " has no field ", quoted(name)))
          .expected(join(names, ", "));
    }
    set_field(*made, **at, value);
  }
  complete(*made);
  return made;
}

}  // namespace tenon::driver
