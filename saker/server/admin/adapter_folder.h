// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters that clients name by a path: only those below the folder that the server allows.

#include <filesystem>
#include <string>

namespace saker::server {

// Throws a 400 for a name that is empty, long, or has control characters.
void check_adapter_name(const std::string& name);

// The real path of an adapter, a folder or a GGUF file: `path` is one below `folder`, or relative
// to it. Links that lead out of it are refused. Throws a 403 for a path elsewhere, a 404 if no
// adapter is there.
std::filesystem::path adapter_below(const std::filesystem::path& folder, const std::string& path);

}  // namespace saker::server
