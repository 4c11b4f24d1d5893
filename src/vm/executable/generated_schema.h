// The flatbuffers code generated from tnx.fbs, with the warnings of its headers kept out.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include "vm/executable/tnx_generated.h"
#pragma GCC diagnostic pop
