// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Modelfile: a typed error, or instructions and options that a request can take.
#include "saker/base/error.h"
#include "saker/cli/requests/modelfile_options.h"
#include "saker/engine/options/apply_options.h"
#include "saker/load/importers/modelfile.h"

#include "tests/fuzz/input.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using saker::fuzz::expect;
  try {
    const auto file = saker::load::parse_modelfile(saker::fuzz::Input(data, size).rest(), "fuzz");
    expect(!file.from.empty());
    auto names = file.instructions;
    std::ranges::sort(names);
    expect(std::ranges::adjacent_find(names) == names.end());
    const auto read = saker::cli::options_of(file.parameters);
    saker::engine::Request request;
    saker::engine::apply_record(read.options, request);
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
