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

static_assert(sizeof(tenon_text) == 16, "text");
static_assert(offsetof(tenon_text, size) == 8, "text");

static_assert(sizeof(DLDataType) == 4 && sizeof(DLDevice) == 8, "DLPack");
static_assert(sizeof(DLTensor) == 48, "DLPack");
static_assert(offsetof(DLTensor, device) == 8, "DLPack");
static_assert(offsetof(DLTensor, ndim) == 16, "DLPack");
static_assert(offsetof(DLTensor, dtype) == 20, "DLPack");
static_assert(offsetof(DLTensor, shape) == 24, "DLPack");
static_assert(offsetof(DLTensor, strides) == 32, "DLPack");
static_assert(offsetof(DLTensor, byte_offset) == 40, "DLPack");
static_assert(sizeof(DLManagedTensor) == 64, "DLPack");
static_assert(offsetof(DLManagedTensorVersioned, manager_ctx) == 8, "DLPack");
static_assert(offsetof(DLManagedTensorVersioned, deleter) == 16, "DLPack");
static_assert(offsetof(DLManagedTensorVersioned, flags) == 24, "DLPack");
static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 32, "DLPack");
