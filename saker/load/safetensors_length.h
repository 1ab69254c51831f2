// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long the header of a safetensors file is, for those who have only its beginning.

#include <cstddef>
#include <span>
#include <string_view>

namespace saker::load {

// Where the data of a file begins that begins so and has `file_bytes`. Throws as parse_safetensors
// does for a length that can't be; `what` names the file in messages.
std::size_t safetensors_data_begin(
    std::span<const std::byte> begin, std::size_t file_bytes, std::string_view what
);

}  // namespace saker::load
