// SPDX-License-Identifier: Apache-2.0
// Any bytes as JSON: a value or a typed error. A value that was read can be written and read again.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/json/json_numbers.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const saker::Json value = saker::parse_json(text, "fuzz");
    const std::string written =
        saker::write_json(value);  // NaN equals nothing: texts are compared.
    if (saker::write_json(saker::parse_json(written, "fuzz")) != written) {
      std::abort();
    }
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
