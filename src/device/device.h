// Devices: where tensors live, and each kind's table of functions for allocation and copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "object/device_name.h"
#include "object/tensor.h"

namespace tenon {

// The functions of a kind of device. Each returns 0, or sets this thread's waiting error.
struct DeviceTable {
  const char* name;    // "cpu"
  int32_t (*count)();  // the number of devices; ids start at 0
  // Memory aligned to `alignment` (a power of two); null, without an error, if there is none left.
  void* (*allocate)(int32_t id, size_t bytes, size_t alignment);
  void (*free)(int32_t id, void* memory, size_t bytes);
  // Copies between this device's memory and the host's or its own. May return before the copy is
  // complete; `synchronise` waits.
  int (*copy)(int32_t id, void* to, const void* from, size_t bytes);
  int (*synchronise)(int32_t id);
};

// The table must never be destroyed. An Internal error if the kind already has a different one.
void register_device(DLDeviceType kind, const DeviceTable* table);
// The CPU is always available. An Unsupported error if this process doesn't have the device.
const DeviceTable& device_table(DLDevice device);
bool has_device(DLDevice device);

// New memory on a device, at least one byte, freed with the object. During a machine's call it
// comes from the machine's pool and counts for the call's memory limit. If there is none, a Runtime
// error that names the size.
Ref<StorageObj> allocate_storage(size_t bytes, DLDevice device = kCpu);
// A compact, uninitialised tensor in storage of its own. A Runtime error if the size is negative or
// overflows.
Tensor allocate_tensor(std::span<const int64_t> shape, DataType dtype, DLDevice device = kCpu);
// Copies elements between compact tensors of equal dtype and shape, with one on the host or both on
// the same device; waits until the copy is complete. Usage errors for anything else and for a
// read-only target.
void copy_tensor(const Tensor& from, const Tensor& to);

}  // namespace tenon
