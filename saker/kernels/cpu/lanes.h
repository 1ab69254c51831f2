// SPDX-License-Identifier: Apache-2.0
#pragma once

// The width that all our vectors have, in every instruction set, so that layouts and orders of
// addition are the same.

namespace saker::kernels {

inline constexpr int kLanes = 16;

}  // namespace saker::kernels
