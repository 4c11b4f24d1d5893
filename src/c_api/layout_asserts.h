/* The layouts of the C interface, asserted; compiled as C and as C++. */
#pragma once

#include <assert.h>
#include <stddef.h>

#include "tenon/c_api.h"

static_assert(sizeof(tenon_object) == 24, "object header");
static_assert(offsetof(tenon_object, counts) == 0, "object header");
static_assert(offsetof(tenon_object, type_index) == 8, "object header");
static_assert(offsetof(tenon_object, reserved) == 12, "object header");
static_assert(offsetof(tenon_object, deleter) == 16, "object header");

static_assert(sizeof(tenon_any) == 16, "value");
static_assert(offsetof(tenon_any, type_index) == 0, "value");
static_assert(offsetof(tenon_any, small_length) == 4, "value");
static_assert(offsetof(tenon_any, v) == 8, "value");
static_assert(sizeof(((tenon_any*)0)->v) == 8, "value");

static_assert(sizeof(tenon_text) == 2 * sizeof(void*), "text");
static_assert(offsetof(tenon_text, size) == sizeof(void*), "text");

/* Pointers have 32 or 64 bits; 64-bit integers are aligned to 8 bytes in either case. */
#define TENON_UP8(n) (((n) + 7) / 8 * 8)
#define TENON_UP_TO_POINTER(n) (((n) + sizeof(void*) - 1) / sizeof(void*) * sizeof(void*))
static_assert(sizeof(tenon_load_options) == TENON_UP8(24 + 4 * sizeof(void*)), "load options");
static_assert(offsetof(tenon_load_options, flags) == 4, "load options");
static_assert(offsetof(tenon_load_options, deadline_ns) == 8, "load options");
static_assert(offsetof(tenon_load_options, memory) == 16, "load options");
static_assert(offsetof(tenon_load_options, modules) == 24, "load options");
static_assert(offsetof(tenon_load_options, module_count) == 24 + sizeof(void*), "load options");
static_assert(offsetof(tenon_load_options, weights) == 24 + 2 * sizeof(void*), "load options");
static_assert(offsetof(tenon_load_options, name) == 24 + 3 * sizeof(void*), "load options");

static_assert(sizeof(tenon_limits) == 48, "limits");
static_assert(offsetof(tenon_limits, size) == 0, "limits");
static_assert(offsetof(tenon_limits, threads) == 4, "limits");
static_assert(offsetof(tenon_limits, fuel) == 8, "limits");
static_assert(offsetof(tenon_limits, deadline_ns) == 16, "limits");
static_assert(offsetof(tenon_limits, memory) == 24, "limits");
static_assert(offsetof(tenon_limits, depth) == 32, "limits");
static_assert(offsetof(tenon_limits, stack_bytes) == 40, "limits");

static_assert(sizeof(tenon_machine_options) == 8 + 2 * sizeof(void*), "machine options");
static_assert(offsetof(tenon_machine_options, memory) == 4, "machine options");
static_assert(offsetof(tenon_machine_options, limits) == 8, "machine options");
static_assert(offsetof(tenon_machine_options, inter_op) == 8 + sizeof(void*), "machine options");

static_assert(sizeof(tenon_memory_stats) == 64, "memory statistics");
static_assert(offsetof(tenon_memory_stats, memory) == 4, "memory statistics");
static_assert(offsetof(tenon_memory_stats, allocated) == 8, "memory statistics");
static_assert(offsetof(tenon_memory_stats, peak) == 16, "memory statistics");
static_assert(offsetof(tenon_memory_stats, pooled) == 24, "memory statistics");
static_assert(offsetof(tenon_memory_stats, call_peak) == 32, "memory statistics");
static_assert(offsetof(tenon_memory_stats, allocations) == 40, "memory statistics");
static_assert(offsetof(tenon_memory_stats, system_allocations) == 48, "memory statistics");
static_assert(offsetof(tenon_memory_stats, call_bytes) == 56, "memory statistics");

static_assert(sizeof(tenon_call_event) == 16 + 7 * sizeof(void*), "call event");
static_assert(offsetof(tenon_call_event, kind) == 4, "call event");
static_assert(offsetof(tenon_call_event, before) == 8, "call event");
static_assert(offsetof(tenon_call_event, arg_count) == 12, "call event");
static_assert(offsetof(tenon_call_event, name) == 16, "call event");
static_assert(offsetof(tenon_call_event, caller) == 16 + 2 * sizeof(void*), "call event");
static_assert(offsetof(tenon_call_event, function) == 16 + 4 * sizeof(void*), "call event");
static_assert(offsetof(tenon_call_event, args) == 16 + 5 * sizeof(void*), "call event");
static_assert(offsetof(tenon_call_event, result) == 16 + 6 * sizeof(void*), "call event");

static_assert(offsetof(tenon_value_info, size) == 0, "value info");
static_assert(offsetof(tenon_value_info, name) == sizeof(void*), "value info");
static_assert(offsetof(tenon_value_info, type) == 3 * sizeof(void*), "value info");
static_assert(offsetof(tenon_value_info, kind) == 5 * sizeof(void*), "value info");
static_assert(offsetof(tenon_value_info, dtype) == 4 + 5 * sizeof(void*), "value info");
static_assert(offsetof(tenon_value_info, rank) == 8 + 5 * sizeof(void*), "value info");
static_assert(offsetof(tenon_value_info, dims) == TENON_UP_TO_POINTER(12 + 5 * sizeof(void*)),
              "value info");
static_assert(offsetof(tenon_value_info, symbols) ==
                  offsetof(tenon_value_info, dims) + sizeof(void*),
              "value info");
static_assert(sizeof(tenon_value_info) == offsetof(tenon_value_info, symbols) + sizeof(void*),
              "value info");

static_assert(sizeof(DLDataType) == 4 && sizeof(DLDevice) == 8, "DLPack");
static_assert(sizeof(DLTensor) == TENON_UP8(16 + 3 * sizeof(void*)) + 8, "DLPack");
static_assert(offsetof(DLTensor, device) == sizeof(void*), "DLPack");
static_assert(offsetof(DLTensor, ndim) == 8 + sizeof(void*), "DLPack");
static_assert(offsetof(DLTensor, dtype) == 12 + sizeof(void*), "DLPack");
static_assert(offsetof(DLTensor, shape) == 16 + sizeof(void*), "DLPack");
static_assert(offsetof(DLTensor, strides) == 16 + 2 * sizeof(void*), "DLPack");
static_assert(offsetof(DLTensor, byte_offset) == TENON_UP8(16 + 3 * sizeof(void*)), "DLPack");
static_assert(sizeof(DLManagedTensor) == sizeof(DLTensor) + 2 * sizeof(void*), "DLPack");
static_assert(offsetof(DLManagedTensorVersioned, manager_ctx) == 8, "DLPack");
static_assert(offsetof(DLManagedTensorVersioned, deleter) == 8 + sizeof(void*), "DLPack");
static_assert(offsetof(DLManagedTensorVersioned, flags) == 8 + 2 * sizeof(void*), "DLPack");
static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 16 + 2 * sizeof(void*), "DLPack");
#undef TENON_UP8
#undef TENON_UP_TO_POINTER
