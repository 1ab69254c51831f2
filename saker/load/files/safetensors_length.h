// SPDX-License-Identifier: Apache-2.0
#pragma once

// The length of a safetensors file's header, from its beginning alone.

#include <cstddef>
#include <span>
#include <string_view>

namespace saker::load {

// Offset of the data in a file of `file_bytes` bytes that starts with `begin`. Throws as
// parse_safetensors does for an impossible length; `what` names the file in messages.
std::size_t safetensors_data_begin(
    std::span<const std::byte> begin, std::size_t file_bytes, std::string_view what
);

}  // namespace saker::load
