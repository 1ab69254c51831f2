// SPDX-License-Identifier: Apache-2.0
// Any bytes as config.json: each reader of it accepts, or throws a typed error.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/load/files/quantization.h"
#include "saker/models/model.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const saker::Json config = saker::parse_json(text, "fuzz");
    static_cast<void>(saker::load::parse_quantization(config));
    saker::models::check_config(config);
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
