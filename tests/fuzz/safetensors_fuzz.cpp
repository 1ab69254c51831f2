// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file: a typed error, or entries that lie inside the file.
#include "saker/base/error.h"
#include "saker/load/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
    std::size_t end = 0;
    for (const auto& entry : saker::load::parse_safetensors(file, "fuzz").entries) {
      if (entry.begin > entry.end || entry.end > size || (end != 0 && entry.begin != end)) {
        std::abort();
      }
      end = entry.end;
    }
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
