// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes an adapter of llama.cpp from its header.

#include "saker/load/inspect/inspect.h"

#include <filesystem>
#include <optional>

namespace saker::load {

// Empty for other GGUF files. Throws as gguf::open_parts does.
std::optional<Inspection> inspect_gguf_adapter(const std::filesystem::path& path);

}  // namespace saker::load
