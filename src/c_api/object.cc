// The C interface's values, tensors, functions and errors.
#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "c_api/entry.h"
#include "device/device.h"
#include "device/parallel.h"
#include "device/thread_pool.h"
#include "object/array.h"
#include "object/cell.h"
#include "object/new_tensor.h"
#include "object/reflect.h"
#include "object/registry.h"
#include "object/string_tensor.h"
#include "support/failures.h"
#include "support/nested_call.h"
#include "support/thread_slot.h"

namespace {

using namespace tenon;
using c_api::give;
using c_api::guard;
using c_api::need;
using c_api::object_in;
using c_api::take;
using c_api::view;

// Arguments from outside, admitted. The first few need no allocation.
class Arguments {
 public:
  Arguments(const tenon_any* args, int32_t n) {
    need(n >= 0 && (n == 0 || args), "args must not be NULL, nor n negative");
    if (n > kInline) many_.resize(static_cast<size_t>(n));
    data_ = n > kInline ? many_.data() : few_;
    for (int32_t i = 0; i < n; ++i) data_[i] = admit(view(args + i));
  }
  const Any* data() const { return data_; }

 private:
  static constexpr int32_t kInline = 8;
  Any few_[kInline];
  std::vector<Any> many_;
  Any* data_;
};

// Two enumerations can't be compared directly.
constexpr bool same(int32_t c_number, int32_t type_index) {
  return c_number == type_index;
}
static_assert(same(TENON_NONE, TypeIndex::None) && same(TENON_INT, TypeIndex::Int) &&
              same(TENON_BOOL, TypeIndex::Bool) && same(TENON_FLOAT, TypeIndex::Float) &&
              same(TENON_POINTER, TypeIndex::OpaquePtr) && same(TENON_DTYPE, TypeIndex::DataType) &&
              same(TENON_DEVICE, TypeIndex::Device) && same(TENON_RAW_STRING, TypeIndex::RawStr) &&
              same(TENON_SMALL_STRING, TypeIndex::SmallStr) &&
              same(TENON_SMALL_BYTES, TypeIndex::SmallBytes) &&
              same(TENON_OBJECT_BEGIN, TypeIndex::ObjectBegin) &&
              same(TENON_STRING, TypeIndex::Str) && same(TENON_BYTES, TypeIndex::Bytes) &&
              same(TENON_ERROR, TypeIndex::Error) && same(TENON_FUNCTION, TypeIndex::Function) &&
              same(TENON_SHAPE, TypeIndex::Shape) && same(TENON_TENSOR, TypeIndex::Tensor) &&
              same(TENON_ARRAY, TypeIndex::Array) && same(TENON_MAP, TypeIndex::Map) &&
              same(TENON_MODULE, TypeIndex::Module) && same(TENON_CELL, TypeIndex::Cell));

constexpr bool is_error_kind(int32_t number) {
#define TENON_ERROR_KIND(identifier, c, ...)                   \
  static_assert(c == static_cast<int>(ErrorKind::identifier)); \
  if (number == c) return true;
#include "support/error_kinds.def"
  return false;
}

// What the native stack must have left for a function; a program's call checks for more.
constexpr size_t kFunctionStack = size_t{64} << 10;
constinit thread_local int function_calls = 0;

void delete_text(std::string* text) {
  delete text;
}

}  // namespace

extern "C" {

int32_t tenon_c_api_version(void) {
  return TENON_C_API_VERSION;
}
const char* tenon_version(void) {
  return TENON_VERSION;
}

int tenon_any_copy(const tenon_any* value, tenon_any* out) {
  return guard([&] {
    need(value && out, "value and out must not be NULL");
    give(out, admit(view(value)));
  });
}
int tenon_any_repr(const tenon_any* value, tenon_any* out) {
  return guard([&] {
    need(value && out, "value and out must not be NULL");
    give(out, Any(repr(admit(view(value)))));
  });
}

int tenon_string_create(const char* data, size_t size, tenon_any* out) {
  return guard([&] {
    need((data || size == 0) && out, "data and out must not be NULL");
    give(out, String(std::string_view(data ? data : "", size)));
  });
}
int tenon_bytes_create(const void* data, size_t size, tenon_any* out) {
  return guard([&] {
    need((data || size == 0) && out, "data and out must not be NULL");
    give(out, Bytes(std::string_view(data ? static_cast<const char*>(data) : "", size)));
  });
}
tenon_text tenon_string_view(const tenon_any* value) {
  if (!value || !(String::accepts(view(value)) || Bytes::accepts(view(value)))) return {nullptr, 0};
  if (view(value).is_object() && !value->v.object) return {nullptr, 0};
  std::string_view text = detail::text_of(view(value));
  return {text.data(), text.size()};
}

int tenon_shape_create(const int64_t* dims, size_t rank, tenon_any* out) {
  return guard([&] {
    need((dims || rank == 0) && out, "dims and out must not be NULL");
    give(out, Shape(std::span(dims, rank)));
  });
}
const int64_t* tenon_shape_view(const tenon_any* value, size_t* rank) {
  const auto* s = object_in<ShapeObj>(value);
  if (rank) *rank = s ? s->size : 0;
  return s ? s->data : nullptr;
}

int tenon_array_create(const tenon_any* items, size_t size, tenon_any* out) {
  return guard([&] {
    need((items || size == 0) && out, "items and out must not be NULL");
    Array<Any> array;
    array.reserve(size);
    for (size_t i = 0; i < size; ++i) array.push_back(admit(view(items + i)));
    give(out, array);
  });
}
int64_t tenon_array_size(const tenon_any* value) {
  const auto* a = object_in<ArrayObj>(value);
  return a ? a->size : -1;
}
int tenon_array_get(const tenon_any* value, size_t index, tenon_any* out) {
  return guard([&] {
    auto array = take<Array<Any>>(value, "not an array");
    need(out, "out must not be NULL");
    if (index >= array.size()) {
      throw Error(ErrorKind::Usage, cat("element ", index, " of an array of ", array.size()));
    }
    give(out, array[index]);
  });
}

int tenon_cell_create(int64_t tag, const tenon_any* fields, size_t size, tenon_any* out) {
  return guard([&] {
    need((fields || size == 0) && out && tag >= 0,
         "fields and out must not be NULL, nor tag negative");
    auto cell = CellObj::of(tag, size);
    for (size_t i = 0; i < size; ++i) cell->begin()[i] = admit(view(fields + i));
    give(out, std::move(cell));
  });
}
const tenon_any* tenon_cell_view(const tenon_any* value, int64_t* tag, size_t* size) {
  const auto* cell = object_in<CellObj>(value);
  if (tag) *tag = cell ? cell->tag : -1;
  if (size) *size = cell ? static_cast<size_t>(cell->size) : 0;
  return cell ? reinterpret_cast<const tenon_any*>(cell->begin()) : nullptr;
}

int tenon_tensor_from_dlpack(DLManagedTensor* tensor, int read_only, tenon_any* out) {
  return guard([&] {
    Tensor t = Tensor::from_dlpack(tensor, read_only != 0);
    need(out, "out must not be NULL");
    give(out, t);
  });
}
int tenon_tensor_from_dlpack_versioned(DLManagedTensorVersioned* tensor, tenon_any* out) {
  return guard([&] {
    Tensor t = Tensor::from_dlpack(tensor);
    need(out, "out must not be NULL");
    give(out, t);
  });
}
int tenon_tensor_from_memory(const DLTensor* view, int read_only, void* context,
                             void (*release)(void* context), tenon_any* out) {
  return guard([&] {
    if (!view || !out) {
      if (release) release(context);
      need(false, "view and out must not be NULL");
    }
    Tensor made = host_tensor(*view, read_only != 0, {context, release});
    c_api::give_owned(out, AnyView::of_object(made.leak()));
  });
}
int tenon_tensor_to_dlpack(const tenon_any* tensor, DLManagedTensor** out) {
  return guard([&] {
    need(out, "out must not be NULL");
    *out = take<Tensor>(tensor, "not a tensor").to_dlpack();
  });
}
int tenon_tensor_to_dlpack_versioned(const tenon_any* tensor, DLManagedTensorVersioned** out) {
  return guard([&] {
    need(out, "out must not be NULL");
    *out = take<Tensor>(tensor, "not a tensor").to_dlpack_versioned();
  });
}
int tenon_tensor_create(const int64_t* shape, int32_t rank, DLDataType dtype, DLDevice device,
                        tenon_any* out) {
  return guard([&] {
    need(rank >= 0 && (shape || rank == 0) && out,
         "shape and out must not be NULL, nor rank negative");
    if (rank > kMaxRank) {
      throw_misuse("a tensor has too many dimensions", cat(rank), cat("at most ", kMaxRank));
    }
    DataType t = dtype;
    if (!is_tensor_dtype(t)) {
      throw Error(ErrorKind::Unsupported, cat("a tensor can't have elements of type ", to_text(t)));
    }
    give(out, allocate_tensor(std::span(shape, static_cast<size_t>(rank)), t, device));
  });
}
const DLTensor* tenon_tensor_view(const tenon_any* tensor) {
  const auto* t = object_in<TensorObj>(tensor);
  return t ? &t->dl : nullptr;
}

int32_t tenon_tensor_flags(const tenon_any* tensor) {
  const auto* t = object_in<TensorObj>(tensor);
  if (!t || !t->is_ours()) return 0;
  return (t->layout & LayoutWord::kReadOnly ? TENON_TENSOR_READ_ONLY : 0) |
         (t->layout & LayoutWord::kConstant ? TENON_TENSOR_CONSTANT : 0);
}

int tenon_string_tensor_create(const tenon_text* elements, const int64_t* shape, int32_t rank,
                               tenon_any* out) {
  return guard([&] {
    need(rank >= 0 && (shape || rank == 0) && out,
         "shape and out must not be NULL, nor rank negative");
    const std::span dims(shape, static_cast<size_t>(rank));
    StringTensorBuilder made(dims);  // before the count is known to be one
    const int64_t count = element_count(dims).value_or(0);
    need(elements || count == 0, "elements must not be NULL");
    for (int64_t i = 0; i < count; ++i) {
      need(elements[i].data || elements[i].size == 0, "an element's data must not be NULL");
      const std::string_view text(elements[i].data, elements[i].size);
      require_utf8(text, i, "the tensor");
      made.append(text);
    }
    give(out, made.finish());
  });
}
tenon_text tenon_string_tensor_element(const tenon_any* tensor, size_t index) {
  const auto* t = object_in<TensorObj>(tensor);
  if (!t || !t->is_ours() || DataType(t->dl.dtype) != string_elements) return {nullptr, 0};
  const Strings strings{Tensor(Ref<Object>(const_cast<TensorObj*>(t)))};
  if (index >= static_cast<size_t>(strings.size())) return {nullptr, 0};
  const std::string_view text = strings[static_cast<int64_t>(index)];
  return {text.data(), text.size()};
}

int32_t tenon_function_threads(void) {
  return threads_in_scope();
}

int tenon_threads_lend(tenon_threads_run run, int32_t (*count)(void), int32_t flags) {
  return guard([&] {
    need(!run == !count, "run and count must both be functions or both be NULL");
    need((flags & ~TENON_REPLACE) == 0, "unknown flags for lending threads");
    // Loops may still use an earlier team, so teams are never freed; one that is lent again is
    // reused.
    static std::mutex mutex;
    static auto* const teams = new std::list<ThreadTeam>;
    static bool chosen = false;
    const std::lock_guard lock(mutex);
    if (!(flags & TENON_REPLACE) && chosen) return;
    chosen = true;
    if (!run) return set_thread_team(nullptr);
    const auto same = [&](const ThreadTeam& t) { return t.run == run && t.thread_count == count; };
    auto known = std::find_if(teams->begin(), teams->end(), same);
    set_thread_team(known != teams->end()
                        ? &*known
                        : &teams->emplace_back(ThreadTeam{.run = run, .thread_count = count}));
  });
}

int tenon_function_create(tenon_packed_call call, void* context, void (*release)(void* context),
                          tenon_any* out) {
  return guard([&] {
    need(call && out, "call and out must not be NULL");
    give(out, Function::from_c(reinterpret_cast<PackedCall>(call), context, release));
  });
}
int tenon_function_call(const tenon_any* function, const tenon_any* args, int32_t n,
                        tenon_any* result) {
  int code = 0;
  int guarded = guard([&] {
    Function f = take<Function>(function, "the called value is not a function");
    const NestedCall nested(&function_calls, kFunctionStack);
    Arguments arguments(args, n);
    Any value;
    code = f.call(arguments.data(), n, &value);
    if (code == 0 && result) give(result, std::move(value));
  });
  return guarded != 0 ? guarded : code != 0 ? -1 : 0;
}

int tenon_function_register(const char* name, const tenon_any* function, int32_t flags) {
  return guard([&] {
    need(name, "name must not be NULL");
    constexpr int32_t kFlags =
        TENON_REPLACE | TENON_FOR_FILES | TENON_AT_PROGRAM_START | TENON_AT_PROGRAM_END;
    need((flags & ~kFlags) == 0, "unknown flags for registering a function");
    FunctionFlags f;
    f.for_files = (flags & TENON_FOR_FILES) != 0;
    f.at_program_start = (flags & TENON_AT_PROGRAM_START) != 0;
    f.at_program_end = (flags & TENON_AT_PROGRAM_END) != 0;
    register_function(name, take<Function>(function, "the registered value is not a function"), f,
                      (flags & TENON_REPLACE) != 0);
  });
}
int tenon_function_find(const char* name, tenon_any* out) {
  return guard([&] {
    need(name && out, "name and out must not be NULL");
    give(out, function_named(name));
  });
}

const char* tenon_last_error(void) {
  using Text = ThreadSlot<std::string, &delete_text>;
  if (!has_error()) return nullptr;
  try {
    auto text = std::make_unique<std::string>(take_error().render());
    const char* bytes = text->c_str();
    delete Text::exchange(text.release());
    return bytes;
  } catch (...) {
    return "error: out of memory";
  }
}
void tenon_error_take(tenon_any* out) {
  auto taken = take_error_object();
  if (out) give(out, Any(std::move(taken)));
}
void tenon_error_set(int32_t kind, const char* message) {
  if (!is_error_kind(kind)) kind = TENON_ERROR_RUNTIME;
  set_error(static_cast<ErrorKind>(kind), message ? message : "");
}
int tenon_error_restore(const tenon_any* error) {
  return guard([&] {
    const ErrorObj* e = object_in<ErrorObj>(error);
    need(e, "not an error");
    set_error_object(Ref<ErrorObj>(const_cast<ErrorObj*>(e)));
  });
}
int32_t tenon_error_kind(const tenon_any* error) {
  const ErrorObj* e = object_in<ErrorObj>(error);
  return e ? static_cast<int32_t>(kind_of_name({e->kind.data, e->kind.size})) : -1;
}
tenon_text tenon_error_message(const tenon_any* error) {
  const ErrorObj* e = object_in<ErrorObj>(error);
  return e ? tenon_text{e->message.data, e->message.size} : tenon_text{nullptr, 0};
}
int tenon_error_text(const tenon_any* error, tenon_any* out) {
  return guard([&] {
    const ErrorObj* e = object_in<ErrorObj>(error);
    need(e && out, "not an error, or out is NULL");
    give(out, Any(error_of(*e).render()));
  });
}
int tenon_error_parts(const tenon_any* error, tenon_any* out) {
  return guard([&] {
    const ErrorObj* e = object_in<ErrorObj>(error);
    need(e && out, "not an error, or out is NULL");
    Array<Any> rows;
    for (const Error::Row& row : error_of(*e).all_rows()) {
      rows.push_back(Any(Array<String>{row.label, row.text, row.note}));
    }
    give(out, Any(rows));
  });
}
int tenon_error_create(int32_t kind, const char* message, const tenon_any* parts, tenon_any* out) {
  return guard([&] {
    need(is_error_kind(kind) && message && out, "an unknown kind, or message or out is NULL");
    std::vector<Error> errors{Error(static_cast<ErrorKind>(kind), message)};
    if (parts) {
      const char* what = "the parts are not an array of arrays of [label, text, note]";
      for (const Array<String>& part : take<Array<Array<String>>>(parts, what)) {
        need(part.size() == 3, what);
        const String& text = part[1];
        Error& e = errors.back();
        if (part[0] == "error") {
          errors.emplace_back(static_cast<ErrorKind>(kind), text.view());
        } else if (part[0] == "span") {
          e.at(Span::at(text.str(), 0));
        } else if (part[0] == "at") {
          e.frame(text.view());
        } else if (part[0] == "help") {
          e.help(text.view());
        } else {
          e.row(part[0].view(), text.view(), part[2].view());
        }
      }
    }
    for (size_t i = 1; i < errors.size(); ++i) errors[0].also(errors[i]);
    give(out, Any(ErrorObj::of(errors[0])));
  });
}

}  // extern "C"
