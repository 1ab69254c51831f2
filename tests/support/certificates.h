// SPDX-License-Identifier: Apache-2.0
#pragma once

// Certificates for tests of TLS.

#include <filesystem>

namespace saker {

// Writes a self-signed certificate for 127.0.0.1 and its key as files in PEM; valid for a day.
void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key);

}  // namespace saker
