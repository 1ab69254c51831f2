// SPDX-License-Identifier: Apache-2.0
// Any bytes as an importance matrix, of both forms: a typed error, or numbers that are finite.
#include "saker/base/error.h"
#include "saker/load/export/imatrix_file.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file =
        saker::load::gguf::parse_imatrix(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& [name, entry] : file.entries) {
      for (const float mean : entry.means()) {
        if (std::isnan(mean) || mean < 0.0F) {
          std::abort();
        }
      }
    }
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
