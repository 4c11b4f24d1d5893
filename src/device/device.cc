#include "device/device.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "device/call_context.h"
#include "device/cpu.h"
#include "object/function.h"
#include "support/bulk.h"
#include "support/failures.h"

namespace tenon {

namespace {
constexpr size_t kKinds = 32;
constinit std::array<std::atomic<const DeviceTable*>, kKinds> tables{};

const DeviceTable* find_table(DLDeviceType kind) {
  if (kind == kDLCPU) return &cpu_device_table();
  auto i = static_cast<size_t>(kind);
  return i < kKinds ? tables[i].load(std::memory_order_acquire) : nullptr;
}

void free_storage(StorageObj* s) {
  static_cast<const DeviceTable*>(s->context)->free(s->device.device_id, s->data, s->size);
}
}  // namespace

void register_device(DLDeviceType kind, const DeviceTable* table) {
  auto i = static_cast<size_t>(kind);
  TENON_ASSERT(i < kKinds && kind != kDLCPU, "no table can be set for device kind ", i);
  const DeviceTable* none = nullptr;
  bool set = tables[i].compare_exchange_strong(none, table);
  TENON_ASSERT(set || none == table, "device kind ", i, " has a table already");
}

bool has_device(DLDevice device) {
  const DeviceTable* table = find_table(device.device_type);
  return table && device.device_id >= 0 && device.device_id < table->count();
}

const DeviceTable& device_table(DLDevice device) {
  if (!has_device(device)) {
    throw Error(ErrorKind::Unsupported, cat("there is no device ", to_text(device)));
  }
  return *find_table(device.device_type);
}

Ref<StorageObj> allocate_storage(size_t bytes, DLDevice device) {
  const DeviceTable& table = device_table(device);
  CallContext* call = CallContext::current();
  if (call && device.device_type == kDLCPU) {
    if (Ref<StorageObj> counted = call->allocate(bytes, kDataAlignment)) return counted;
  }
  auto s = make<StorageObj>();
  size_t taken = bytes ? bytes : 1;
  if (taken <= kAddressSpace) s->data = table.allocate(device.device_id, taken, kDataAlignment);
  if (!s->data) {
    throw Error(ErrorKind::Runtime, cat("no memory for ", bytes, " bytes on ", to_text(device)));
  }
  s->size = taken;
  s->device = device;
  s->context = const_cast<DeviceTable*>(&table);
  s->free = &free_storage;
  if (call && device.device_type == kDLCPU) {
    if (auto byte = call->fill_byte()) fill_memory(s->data, *byte, taken);
  }
  return s;
}

Tensor allocate_tensor(std::span<const int64_t> shape, DataType dtype, DLDevice device) {
  auto bytes = byte_count(shape, dtype);
  if (!bytes) throw impossible_tensor(tensor_type_text(dtype, shape));
  return Tensor::over(allocate_storage(static_cast<size_t>(*bytes), device), 0, dtype, shape);
}

void copy_tensor(const Tensor& from, const Tensor& to) {
  auto is_host = [](DLDevice d) { return d.device_type == kDLCPU; };
  bool same_device = from.device().device_type == to.device().device_type &&
                     from.device().device_id == to.device().device_id;
  bool agree = from.dtype() == to.dtype() && std::equal(from.shape().begin(), from.shape().end(),
                                                        to.shape().begin(), to.shape().end());
  if (!agree || !from.compact() || !to.compact()) {
    throw Error(ErrorKind::Usage, "a copy needs two compact tensors of one type")
        .row("from", cat(to_text(from), from.compact() ? "" : ", strided"))
        .row("to", cat(to_text(to), to.compact() ? "" : ", strided"));
  }
  if (to.read_only()) throw Error(ErrorKind::Usage, "the target of a copy is read-only");
  if (!same_device && !is_host(from.device()) && !is_host(to.device())) {
    throw Error(ErrorKind::Usage, cat("can't copy from ", to_text(from.device()), " to ",
                                      to_text(to.device()), " directly"))
        .help("copy through the host");
  }
  DLDevice device = is_host(to.device()) ? from.device() : to.device();
  const DeviceTable& table = device_table(device);
  auto bytes = static_cast<size_t>(from.bytes());
  if (bytes == 0) return;
  auto* target = static_cast<char*>(to.data());
  const auto* source = static_cast<const char*>(from.data());
  // Two tensors on the host may overlap, which is only safe when the whole is copied at once.
  const bool whole = target < source + bytes && source < target + bytes;
  auto copy = [&](size_t at, size_t n) {
    if (table.copy(device.device_id, target + at, source + at, n) != 0) throw take_error();
  };
  whole ? copy(0, bytes) : in_parts(bytes, copy);
  if (table.synchronise(device.device_id) != 0) throw take_error();
}

}  // namespace tenon
