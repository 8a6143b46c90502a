// SPDX-License-Identifier: Apache-2.0
// Precompiled header of the torch layer.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>
