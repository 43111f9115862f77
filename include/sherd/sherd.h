#pragma once

/// All of Sherd's public interface, for programs that use it as a library.

#include "core/buffer.h"
#include "core/cpu_stream.h"
#include "core/error.h"
#include "core/rng.h"
#include "core/tensor.h"
