#include "graph/ir/intrinsic.h"

#include <algorithm>

#include "graph/ir/builder.h"
#include "graph/ir/op.h"

namespace tenon::graph {

namespace {

constexpr char kSizeAttr[] = "size", kDeviceAttr[] = "device";
constexpr char kOffsetAttr[] = "offset", kShapeAttr[] = "shape", kValuesAttr[] = "values";
constexpr char kCountAttr[] = "count";

struct Form {
  MemoryIntrinsic intrinsic;
  const char* name;
  const char* text;  // for messages
  size_t operands;
  std::vector<std::pair<const char*, AttrKind>> attrs;
  std::vector<std::pair<const char*, AttrKind>> optional_attrs;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> table = {
#define TENON_MEMORY_INTRINSIC(identifier, name, ...) \
  {MemoryIntrinsic::k##identifier, kMemory##identifier, __VA_ARGS__},
#include "graph/ir/intrinsics.def"
  };
  return table;
}

const Form* form_named(std::string_view name) {
  for (const Form& form : forms()) {
    if (name == form.name) return &form;
  }
  return nullptr;
}

bool is_of(const Any& value, AttrKind kind) {
  if (kind == AttrKind::kInt) return value.type_index == TypeIndex::Int;
  return kind == AttrKind::kDims ? value.try_as<Array<Dim>>().has_value()
                                 : value.try_as<Dim>().has_value();
}

bool operands_and_attrs_fit(const Call& call, const Form& form) {
  if (call.args.size() != form.operands) return false;
  for (const Operand& arg : call.args) {
    if (!arg) return false;
  }
  for (const auto& [name, kind] : form.attrs) {
    const Any* value = call.attrs.find(name);
    if (!value || !is_of(*value, kind)) return false;
  }
  size_t given = form.attrs.size();
  for (const auto& [name, kind] : form.optional_attrs) {
    const Any* value = call.attrs.find(name);
    if (value && !is_of(*value, kind)) return false;
    given += value != nullptr;
  }
  return call.attrs.size() == given;
}

bool is_storage(const TypeRef& type) {
  auto* opaque = type.as<OpaqueType>();
  return opaque && opaque->key == kStorageType;
}

// Whether `type` is a tensor type of the call's stated shape.
bool has_stated_shape(const Call& call, const TypeRef& type) {
  auto* tensor = known_tensor(type);
  return tensor && same_dims(type, tensor_type(tensor->dtype, stated_shape(call).to_vector()));
}

bool result_fits(const Call& call, MemoryIntrinsic intrinsic) {
  const TypeRef& type = call.result_type;
  switch (intrinsic) {
    case MemoryIntrinsic::kStorage:
      return is_storage(type);
    case MemoryIntrinsic::kTensor:
      return is_storage(type_of(call.args[0])) && has_stated_shape(call, type) &&
             !known_tensor(type)->value_known;
    case MemoryIntrinsic::kReshape: {
      auto *x = type_of(call.args[0]).as<TensorType>(), *y = type.as<TensorType>();
      return x && y && x->dtype == y->dtype && has_stated_shape(call, type);
    }
    case MemoryIntrinsic::kValues: {
      auto* tensor = known_tensor(type);
      const Array<Dim> values = stated_values(call);
      return tensor && (tensor->dtype.is_int() || tensor->dtype.is_bool()) && tensor->rank <= 1 &&
             product(tensor->dims.to_vector()).is_const(static_cast<int64_t>(values.size())) &&
             (!tensor->value_known ||
              std::equal(values.begin(), values.end(), tensor->values.begin(), tensor->values.end(),
                         proves_equal));
    }
    case MemoryIntrinsic::kElement: {
      auto* x = type_of(call.args[0]).as<TensorType>();
      auto* element = type.as<ScalarType>();
      return x && element && x->dtype == element->dtype;
    }
    case MemoryIntrinsic::kOfElement: {
      auto* scalar = type_of(call.args[0]).as<ScalarType>();
      auto* x = known_tensor(type);
      return x && scalar && x->rank == 0 && x->dtype == scalar->dtype && !x->value_known;
    }
    case MemoryIntrinsic::kRank:
      return type_of(call.args[0]).is<TensorType>() && same_type(type, scalar_type(i64));
    case MemoryIntrinsic::kConcurrent:
      return same_type(type, unit_type()) && call.attrs.at(kCountAttr).as<int64_t>() >= 2;
  }
  return false;
}

}  // namespace

std::optional<MemoryIntrinsic> memory_intrinsic(const Call& call) {
  const Form* form = call.kind == CalleeKind::kPacked ? form_named(call.callee) : nullptr;
  return form ? std::optional(form->intrinsic) : std::nullopt;
}

std::optional<MemoryIntrinsic> memory_intrinsic(const ExprRef& value) {
  auto* call = value.as<Call>();
  return call ? memory_intrinsic(*call) : std::nullopt;
}

Ref<const Call> storage_call(const Dim& bytes, int64_t device) {
  static const TypeRef type = make<OpaqueType>(String(kStorageType));
  Attrs storage = attrs({{kSizeAttr, Any(bytes)}});
  if (device != 0) storage.set(kDeviceAttr, Any(device));
  return make_call(CalleeKind::kPacked, kMemoryStorage, {}, std::move(storage), type);
}

Dim bytes_of_storage(const Call& call) {
  return call.attrs.at(kSizeAttr).as<Dim>();
}

int64_t device_of_storage(const Call& call) {
  const Any* device = call.attrs.find(kDeviceAttr);
  return device ? device->as<int64_t>() : 0;
}

Ref<const Call> tensor_call(const Operand& storage, const Dim& offset,
                            const Ref<const TensorType>& type) {
  return make_call(CalleeKind::kPacked, kMemoryTensor, {storage},
                   attrs({{kOffsetAttr, Any(offset)}, {kShapeAttr, Any(type->dims)}}), type);
}

Dim offset_of_tensor(const Call& call) {
  return call.attrs.at(kOffsetAttr).as<Dim>();
}

Ref<const Call> reshape_call(const Operand& x, const Ref<const TensorType>& type) {
  return make_call(CalleeKind::kPacked, kMemoryReshape, {x}, attrs({{kShapeAttr, Any(type->dims)}}),
                   type);
}

Array<Dim> stated_shape(const Call& call) {
  return call.attrs.at(kShapeAttr).as<Array<Dim>>();
}

Ref<const Call> values_call(const Ref<const TensorType>& type) {
  return make_call(CalleeKind::kPacked, kMemoryValues, {},
                   attrs({{kValuesAttr, Any(type->values)}}), type);
}

Array<Dim> stated_values(const Call& call) {
  return call.attrs.at(kValuesAttr).as<Array<Dim>>();
}

Ref<const Call> element_call(const Operand& tensor) {
  return make_call(CalleeKind::kPacked, kMemoryElement, {tensor}, {},
                   scalar_type(dtype_of(type_of(tensor))));
}

Ref<const Call> of_element_call(const Operand& scalar) {
  return make_call(CalleeKind::kPacked, kMemoryOfElement, {scalar}, {},
                   tensor_type(dtype_of(type_of(scalar)), {}));
}

Ref<const Call> rank_call(const Operand& tensor) {
  return make_call(CalleeKind::kPacked, kMemoryRank, {tensor}, {}, scalar_type(i64));
}

Ref<const Call> concurrent_call(int64_t count) {
  return make_call(CalleeKind::kPacked, kMemoryConcurrent, {}, attrs({{kCountAttr, Any(count)}}),
                   unit_type());
}

int64_t grouped_after(const ExprRef& value) {
  if (memory_intrinsic(value) != MemoryIntrinsic::kConcurrent) return 0;
  return value.as<Call>()->attrs.at(kCountAttr).as<int64_t>();
}

bool check_intrinsic(const Call& call) {
  const std::string name = call.callee.str();
  if (const Form* form = form_named(name)) {
    if (!operands_and_attrs_fit(call, *form) || !result_fits(call, form->intrinsic)) {
      throw Error(ErrorKind::Usage, cat("the call of '", name, "' has the wrong form"))
          .expected(cat("packed \"", name, "\"", form->text));
    }
    return true;
  }
  if (name.starts_with("memory.")) {
    std::vector<std::string> names;
    for (const Form& form : forms()) names.push_back(form.name);
    throw Error(ErrorKind::Usage, cat("there is no memory intrinsic '", name, "'"))
        .expected(tenon::join(names, ", "));
  }
  return false;
}

}  // namespace tenon::graph
