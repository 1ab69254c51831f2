// SPDX-License-Identifier: Apache-2.0
// Any bytes as a line of requests, and as a list of tokens: results, or typed errors.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/cli/options/token_list.h"
#include "saker/engine/options/apply_options.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  saker::engine::Request request;
  try {
    saker::engine::apply_record(saker::parse_json(text, "fuzz"), request);
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  try {
    static_cast<void>(saker::cli::parse_token_list("--tokens", text));
  } catch (const saker::Error&) {
  }
  return 0;
}
