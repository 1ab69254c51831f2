// SPDX-License-Identifier: Apache-2.0
#pragma once

// NumPy's .npz: a zip archive of .npy arrays
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), as numpy.savez,
// numpy.savez_compressed and MLX's savez write them. Numbers are little-endian, in either order of
// axes. Two raw bytes are bfloat16, as MLX and ml_dtypes write it. Objects (pickles), records and
// texts are refused. Memory: about the size of the arrays.

#include "saker/base/tensor.h"
#include "saker/load/files/safetensors.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace saker::load {

// All arrays, by name without ".npy". Throws as ZipArchive does, and as `parse_npy`, naming the
// array.
TensorMap read_npz(const std::filesystem::path& path);

// One array. It shares the file's memory unless its axes are in Fortran's order. Throws
// kUnsupported unless it is an array of numbers that we can hold, and kCorruptData if it breaks the
// format. `what` is for messages.
Tensor parse_npy(std::shared_ptr<const std::vector<std::byte>> file, std::string_view what);

}  // namespace saker::load
