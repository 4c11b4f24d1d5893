// Devices: where tensors live, and the table of functions by which each kind gives memory and
// copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "object/device_name.h"
#include "object/tensor.h"

namespace tenon {

// What a kind of device can do. All functions return 0 or leave an error on this thread.
struct DeviceTable {
  const char* name;    // "cpu"
  int32_t (*count)();  // how many there are; ids run from 0
  // Memory aligned to `alignment` (a power of two); null, without an error, when there is none
  // left.
  void* (*allocate)(int32_t id, size_t bytes, size_t alignment);
  void (*free)(int32_t id, void* memory, size_t bytes);
  // Copies between this device's memory and the host's or its own. May return before it is done;
  // `synchronise` waits.
  int (*copy)(int32_t id, void* to, const void* from, size_t bytes);
  int (*synchronise)(int32_t id);
};

// The table must live for ever. An Internal error when the kind has another one already.
void register_device(DLDeviceType kind, const DeviceTable* table);
// The CPU is always there. An Unsupported error for a device that this process doesn't have.
const DeviceTable& device_table(DLDevice device);
bool has_device(DLDevice device);

// New memory on a device, freed with the object; at least one byte is taken. Within a call on a
// machine it comes from the machine's pool and counts for the call's memory limit. A Runtime error,
// naming the size, when there is none.
Ref<StorageObj> allocate_storage(size_t bytes, DLDevice device = kCpu);
// A compact tensor in storage of its own, not initialised. A Runtime error when the size is
// negative or overflows.
Tensor allocate_tensor(std::span<const int64_t> shape, DataType dtype, DLDevice device = kCpu);
// Copies elements between compact tensors of one dtype and shape, one of them on the host or both
// on one device; waits until it is done. Usage errors for anything else and for a read-only target.
void copy_tensor(const Tensor& from, const Tensor& to);

}  // namespace tenon
