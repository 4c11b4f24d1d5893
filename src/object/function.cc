#include "object/function.h"

#include <new>

#include "object/host_error.h"
#include "object/tensor.h"
#include "support/failures.h"
#include "support/thread_slot.h"

namespace tenon {

std::string_view name_of(const AnyView& function) {
  const auto* f = function.as_object<FunctionObj>();
  return f && f->is_ours() && f->info ? f->info->name(*f) : std::string_view();
}

void FunctionObj::delete_function(void* self, int flags) {
  static_cast<FunctionObj*>(static_cast<Object*>(self))->type_deleter(self, flags);
}

namespace {
void release_error(ErrorObj* error) {
  release(error);
}
using Waiting = ThreadSlot<ErrorObj, &release_error>;

void put_waiting(ErrorObj* error) noexcept {
  if (ErrorObj* before = Waiting::exchange(error)) release(before);
}

// Waits if there is no memory for an error: one object for all threads, never changed or freed.
[[gnu::cold]] ErrorObj* out_of_memory_object() noexcept {
  static ErrorObj* const object = [] {
    alignas(ErrorObj) static unsigned char memory[sizeof(ErrorObj)];
    auto* made = new (memory) ErrorObj;
    init_header(made, 0);
    made->counts = Object::kCountsOfImmortal;
    const Error& error = Error::out_of_memory();
    const std::string_view kind = kind_name(error.kind());
    made->kind = {kind.data(), kind.size()};
    made->message = {error.message().data(), error.message().size()};
    made->update_backtrace = [](void*, const StringCell*, int32_t) {};
    return made;
  }();
  return object;
}

void copy_to_cell(std::string& text, StringCell& cell) {
  cell = {text.data(), text.size()};
}

std::string_view text_of_cell(const StringCell& cell) {
  return cell.data ? std::string_view(cell.data, cell.size) : std::string_view();
}

[[gnu::cold]] void change_backtrace(void* self, const StringCell* backtrace, int32_t mode) {
  auto* e = static_cast<ErrorObj*>(self);
  try {
    if (mode == 0) e->backtrace_text.clear();
    e->backtrace_text.append(text_of_cell(*backtrace));
    copy_to_cell(e->backtrace_text, e->backtrace);
  } catch (...) {  // out of memory: the backtrace is truncated
  }
}
}  // namespace

ErrorObj::~ErrorObj() {
  if (cause_chain) release(cause_chain);
  if (extra_context) release(extra_context);
}

[[gnu::cold]] Ref<ErrorObj> ErrorObj::of(const Error& e) {
  const ObjectBudget uncounted(nullptr);  // it may say that the call has no memory left
  auto o = make<ErrorObj>();
  o->error = std::make_shared<const Error>(e);
  o->kind_text = kind_name(e.kind());
  o->message_text = e.message();
  for (const auto& f : e.backtrace()) o->backtrace_text += f + "\n";
  copy_to_cell(o->kind_text, o->kind);
  copy_to_cell(o->message_text, o->message);
  copy_to_cell(o->backtrace_text, o->backtrace);
  o->update_backtrace = &change_backtrace;
  return o;
}

[[gnu::cold]] Error error_of(const ErrorObj& object) {
  if (&object == out_of_memory_object()) return Error::out_of_memory();
  if (object.is_ours() && object.error) return *object.error;
  std::string_view kind = text_of_cell(object.kind);
  std::string message(text_of_cell(object.message));
  ErrorKind ours = kind_of_name(kind);
  if (kind_name(ours) != kind && !kind.empty()) message = cat(kind, ": ", message);
  Error e(ours, std::move(message));
  std::string_view rest = text_of_cell(object.backtrace);
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    if (!line.empty()) e.frame(std::string(line));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return e;
}

[[gnu::cold]] void set_error_object(Ref<ErrorObj> object) noexcept {
  put_waiting(object.leak());
}
Ref<ErrorObj> take_error_object() noexcept {
  return Ref<ErrorObj>::adopt(Waiting::exchange(nullptr));
}
bool has_error() noexcept {
  return Waiting::get() != nullptr;
}

[[gnu::cold]] void set_error(const Error& error) noexcept {
  try {
    put_waiting(ErrorObj::of(error).leak());
  } catch (...) {
    put_waiting(out_of_memory_object());
  }
}

[[gnu::cold]] void set_error(ErrorKind kind, std::string_view message) noexcept {
  try {
    set_error(Error(kind, message));
  } catch (...) {
    put_waiting(out_of_memory_object());
  }
}

Error take_error() noexcept {
  Ref<ErrorObj> taken = take_error_object();
  try {
    if (!taken) return Error(ErrorKind::Internal, "a call failed without setting an error");
    return error_of(*taken);
  } catch (...) {
    return Error::out_of_memory();
  }
}

// If no error waits, sets one that says so of the host.
[[gnu::cold]] static void require_host_error() {
  if (has_error()) return;
  set_error(Error(ErrorKind::Runtime, "a function of the host failed without setting an error")
                .help("call tenon_error_set before returning non-zero"));
}

[[gnu::cold]] void throw_host_error() {
  require_host_error();
  throw take_error();
}

int set_current_exception() noexcept {
  try {
    throw;
  } catch (const Error& e) {
    set_error(e);
  } catch (const std::bad_alloc&) {
    put_waiting(out_of_memory_object());
  } catch (const std::exception& e) {
    set_error(ErrorKind::Runtime, e.what());
  } catch (...) {
    set_error(ErrorKind::Runtime, "an exception that is not a std::exception");
  }
  return -1;
}

namespace detail {

namespace {
std::string_view call_name(std::string_view name) {
  return name.empty() ? "function" : name;
}
}  // namespace

[[gnu::cold]] void fail_count(std::string_view name, int32_t wanted, int32_t n) {
  throw Error(ErrorKind::Usage,
              cat(call_name(name), " takes ", counted(static_cast<uint64_t>(wanted), "argument"),
                  ", not ", n));
}

[[gnu::cold]] void fail_argument(std::string_view name, int32_t i, const std::string& wanted,
                                 const AnyView& found) {
  throw_misuse(cat("argument ", i, " of ", call_name(name), " has the wrong type"),
               type_name(found.type_index), wanted);
}

struct CFunction : FunctionObj {
  PackedCall inner = nullptr;
  void* context = nullptr;
  void (*release_context)(void*) = nullptr;
  ~CFunction() {
    if (release_context) release_context(context);
  }
};

// A value from outside, whose reference (if any) the caller gives up.
static Any admit_result(AnyView value) {
  if (!value.v.p) return admit(value);  // a null object is refused: there is nothing to release
  Any owned = Any::adopt(value);
  return admit(owned);
}

static int call_c(void* self, const AnyView* args, int32_t n, Any* result) {
  auto* f = static_cast<CFunction*>(static_cast<FunctionObj*>(self));
  // An error that waited before the call must not be taken for this call's.
  Ref<ErrorObj> before;
  if (has_error()) [[unlikely]]
    before = take_error_object();
  const int code = f->inner(f->context, args, n, result);
  try {
    if (code != 0) {
      // The result of a failed call is neither read nor released: it may be anything.
      static_cast<AnyView&>(*result) = AnyView();
      require_host_error();
      return code;
    }
    if (before) [[unlikely]]
      set_error_object(std::move(before));
    if (result->type_index >= TypeIndex::None && result->type_index <= TypeIndex::Device) return 0;
    *result = admit_result(result->leak());
    return 0;
  } catch (...) {
    return set_current_exception();
  }
}

}  // namespace detail

Function Function::from_c(PackedCall call, void* context, void (*release)(void* context)) {
  auto made = make<detail::CFunction>();
  made->inner = call;
  made->context = context;
  made->release_context = release;
  made->call = &detail::call_c;
  return adopt(std::move(made));
}

}  // namespace tenon
