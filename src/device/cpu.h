// The CPU as a device: 64-byte aligned memory from the C library; copies are synchronous.
#pragma once

#include "device/device.h"

namespace tenon {

const DeviceTable& cpu_device_table();

}  // namespace tenon
