#include "graph/ir/infer_kernel_call.h"

#include "graph/ir/instantiate.h"

namespace tenon::graph {
namespace {

// Requires that the arguments determine all symbols of the result; others would clash with symbols
// of the caller.
void require_told(const TypeRef& result, const Matching& arguments, std::string_view kernel) {
  SymbolSet names;
  collect_symbols(result, &names);
  for (const std::string& name : names) {
    if (arguments.find(name)) continue;
    throw Error(ErrorKind::Usage,
                cat("kernel @", kernel, ": the arguments don't determine the size ", name,
                    " of its result"))
        .found(to_text(result))
        .help(cat("state the result: kernel @", kernel, "(...) -> tensor[...]"));
  }
}

}  // namespace

TypeRef infer_kernel_call(const Call& c, const loop::KernelInterface& k) {
  auto ft = make<FunctionType>();
  std::vector<TypeRef> results;
  auto buffer_type = [](const Ref<const loop::Buffer>& b) -> TypeRef {
    return tensor_type(b->dtype, b->shape.to_vector());
  };
  for (const auto& b : k.inputs) ft->params.push_back(buffer_type(b));
  bool has_destinations =
      c.args.size() == k.inputs.size() + k.outputs.size() && !(k.outputs.empty());
  for (const auto& b : k.outputs) {
    if (has_destinations) {
      ft->params.push_back(buffer_type(b));
    } else {
      results.push_back(buffer_type(b));
    }
  }
  TypeRef result = has_destinations      ? unit_type()
                   : results.size() == 1 ? results[0]
                                         : tuple_type(results);
  if (c.args.size() != ft->params.size()) {
    throw Error(ErrorKind::Usage,
                cat("kernel @", c.callee, " is called with the wrong number of arguments"))
        .found(cat(c.args.size()))
        .expected(cat(k.inputs.size(), " inputs, and ", k.outputs.size(), " destinations or none"));
  }
  // Integers first, since they bind symbols that no shape binds.
  Array<Operand> args = c.args;
  for (const auto& [name, value] : c.attrs) {
    if (name != kIntegersAttr || !value.try_as<Array<Dim>>()) {
      throw Error(ErrorKind::Usage, cat("kernel @", c.callee, " has no attribute '", name, "'"))
          .found(type_name(value.type_index))
          .expected("integers=[sizes]");
    }
  }
  const Array<Dim> integers = kernel_integers(c);
  if (integers.size() != k.integers.size()) {
    throw Error(ErrorKind::Usage, cat("kernel @", c.callee, " has the wrong number of integers"))
        .found(cat(integers.size()))
        .expected(cat(k.integers.size()));
  }
  Matching m;
  for (size_t i = 0; i < k.integers.size(); ++i) {
    m.bind(k.integers[i].view(), integers[i]);
  }
  auto arg_type = [&](size_t i) -> TypeRef {
    TypeRef t = type_of(args[i]);
    const auto* s = type_as<ScalarType>(t);
    return s ? TypeRef(tensor_type(s->dtype, {})) : t;
  };
  for (size_t i = 0; i < args.size(); ++i) m.match(ft->params[i], arg_type(i));
  // Unproved conditions need no check binding, since the kernel's entry checks them.
  std::vector<Ref<const Check>> by_entry;
  const Variances& variances = Variances::of_prelude();  // a kernel takes and gives tensors
  for (size_t i = 0; i < args.size(); ++i) {
    TypeRef want = m.apply(ft->params[i]), have = arg_type(i);
    if (const auto* t = type_as<TensorType>(have); t && !t->dims_known) {
      const auto* w = type_as<TensorType>(want);
      if (t->dtype != w->dtype || (t->rank != kUnknownRank && t->rank != w->rank)) {
        require_fit(have, want, cat("kernel @", c.callee, ": argument ", i), variances, &by_entry);
      }
      continue;
    }
    require_fit(have, want, cat("kernel @", c.callee, ": argument ", i), variances, &by_entry);
  }
  if (!c.result_type) require_told(result, m, c.callee);
  result = m.apply(result);
  if (!c.result_type) return result;
  require_fit(c.result_type, result, cat("kernel @", c.callee, ": the stated result"), variances,
              &by_entry);
  return c.result_type;
}

}  // namespace tenon::graph
