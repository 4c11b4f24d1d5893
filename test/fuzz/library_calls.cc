// library_calls COUNT FIRST: calls each library function (library/signatures) with random
// arguments, twice each, with other bytes in memory that nothing has written. Both calls must end
// in the same result or in the same error, within the memory and time that they get. Exits with 0
// if there is no finding. A call depends only on its number.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "arguments.h"
#include "bounds.h"
#include "content.h"
#include "device/call_context.h"
#include "library/algorithms/register.h"
#include "library/ml/register.h"
#include "library/onednn/register.h"
#include "library/text/register.h"
#include "library_arguments.h"
#include "object/array.h"
#include "object/library.h"
#include "object/registry.h"
#include "object/string_tensor.h"
#include "support/text.h"
#include "vm/builtin/register.h"

namespace {

using namespace tenon;
using namespace tenon::fuzz;
using library::Signature;

// A call with tight limits, whose new memory is filled with a byte.
class LimitedCall final : public CallContext {
 public:
  explicit LimitedCall(int fill) : fill_(fill) {}

  void poll() override {
    if (Clock::now() < end_) return;
    stopped_ = true;
    throw Error(ErrorKind::Runtime, "stopped");
  }
  bool count_memory(size_t bytes) override {
    if (bytes > kMemory) return false;
    if (counted_.fetch_add(bytes) + bytes <= kMemory) return true;
    counted_ -= bytes;
    return false;
  }
  void discount_memory(size_t bytes) override { counted_ -= bytes; }
  void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "over the limit"); }
  Ref<StorageObj> allocate(size_t bytes, size_t alignment) override {
    if (!count_memory(bytes)) fail_memory(bytes);
    auto storage = make<StorageObj>();
    storage->size = bytes;
    storage->data = aligned_alloc(
        alignment, std::max(alignment, (bytes + alignment - 1) / alignment * alignment));
    if (!storage->data) fail_memory(bytes);
    std::memset(storage->data, fill_, bytes);
    storage->context = this;
    storage->free = [](StorageObj* made) {
      std::free(made->data);
      static_cast<LimitedCall*>(made->context)->discount_memory(made->size);
    };
    return storage;
  }
  bool may_write(const Tensor& tensor) const override { return !tensor.read_only(); }

  bool was_stopped() const { return stopped_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMemory = size_t{64} << 20;

  const int fill_;
  const Clock::time_point end_ = Clock::now() + std::chrono::seconds(1);
  std::atomic<size_t> counted_{0};
  std::atomic<bool> stopped_{false};
};

// The call as text, for a finding.
std::string text_of(uint64_t number, const Signature& function) {
  Choices choices(number);
  std::string out = cat(function.name, "(");
  for (const Any& argument : make_arguments(choices, function)) {
    const auto tensor = argument.try_as<Tensor>();
    if (tensor && *tensor) {
      out += to_text(*tensor);
      if (tensor->read_only()) out += tensor->constant() ? " constant" : " read-only";
    } else if (argument.is_none()) {
      out += "None";
    } else {
      append_content(argument, &out);
    }
    out += ", ";
  }
  return out + ")\n";
}

struct Ending {
  std::string content;  // of the result, or the error's message
  bool is_value = false, was_stopped = false;
  std::string problem;
};

// The tensors that the function writes its results into.
std::span<Any> results_in(std::vector<Any>& arguments, const Signature& function) {
  if (!function.writes_results) return {};
  return std::span(arguments).subspan(function.operands.size(), function.results.size());
}

Ending call(uint64_t number, const Signature& function, int fill) {
  Choices choices(number);
  std::vector<Any> arguments = make_arguments(choices, function);
  const std::span<Any> written = results_in(arguments, function);
  for (const Any& result : written) {
    const auto tensor = result.try_as<Tensor>();
    if (tensor && *tensor && !is_string_tensor(*tensor))
      std::memset(tensor->data(), fill, static_cast<size_t>(tensor->bytes()));
  }
  LimitedCall limited(fill);
  Ending ending;
  {
    CallContext::Scope scope(&limited);
    const std::vector<AnyView> views(arguments.begin(), arguments.end());
    Any result;
    try {
      if (find_function(function.name)
              .call(views.data(), static_cast<int32_t>(views.size()), &result))
        throw take_error();
      ending.is_value = true;
      append_content(result, &ending.content);
      for (const Any& w : written) append_content(w, &ending.content);
    } catch (const Error& e) {
      ending.content = e.render();
      if (e.kind() == ErrorKind::Internal) ending.problem = e.render();
    }
  }
  ending.was_stopped = limited.was_stopped();
  return ending;
}

bool may_vary(const Signature& function) {
  return function.name == "tenon.random";  // without a seed
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = read_arguments(argc, argv, Arguments::Files::None);
  vm::register_builtins();
  register_algorithm_functions();
  register_ml_functions();
  register_text_functions();
  register_onednn_functions();
  set_bounds(60);
  struct Count {
    long values = 0, errors = 0, stopped = 0;
  };
  std::map<std::string_view, Count> counts;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    const Signature& function = library::kSignatures[number % library::kSignatures.size()];
    const std::string text = text_of(number, function);
    begin_mutant(number, text);
    const Ending one = call(number, function, 0x5a), other = call(number, function, 0xa5);
    Count& count = counts[function.name];
    ++(one.was_stopped ? count.stopped : one.is_value ? count.values : count.errors);
    if (!one.problem.empty())
      finding(cat("call ", number, " of ", function.name, ": ", one.problem));
    if (one.was_stopped || other.was_stopped || may_vary(function)) continue;
    if (one.content != other.content || one.is_value != other.is_value)
      finding(
          cat("call ", number, " of ", function.name, " depends on memory that it didn't write"));
  }
  end_mutants();
  for (const auto& [name, count] : counts) {
    std::printf("%-28s %6ld values %6ld errors %4ld stopped\n", std::string(name).c_str(),
                count.values, count.errors, count.stopped);
  }
  std::printf("%llu calls; %ld findings\n", static_cast<unsigned long long>(arguments.count()),
              Bounds::findings);
  return Bounds::findings ? 1 : 0;
}
