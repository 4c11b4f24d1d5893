#include "device/host_check.h"

#include <atomic>

#include "object/host_error.h"

namespace tenon {

namespace {
constinit std::atomic<HostCheck> host_check{nullptr};
}  // namespace

void set_host_check(HostCheck check) {
  host_check.store(check, std::memory_order_release);
}

bool has_host_check() {
  return host_check.load(std::memory_order_relaxed) != nullptr;
}

bool check_host() {
  const HostCheck check = host_check.load(std::memory_order_acquire);
  const int answer = check ? check() : 0;
  if (answer < 0) throw_host_error();
  return answer == 0;
}

}  // namespace tenon
