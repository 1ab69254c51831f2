// SPDX-License-Identifier: Apache-2.0
#pragma once

// The width of all our vectors in every instruction set, so that layouts and orders of addition are
// equal.

namespace saker::kernels {

inline constexpr int kLanes = 16;

}  // namespace saker::kernels
