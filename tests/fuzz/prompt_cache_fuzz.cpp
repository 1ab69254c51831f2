// SPDX-License-Identifier: Apache-2.0
// Any bytes as a prompt-cache file: a typed error, or layers that pass all checks and that a second
// file, written from them, gives again.
#include "saker/base/error.h"
#include "saker/load/prompt_cache.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

const std::filesystem::path& folder() {
  static const std::filesystem::path path = [] {
    auto made = std::filesystem::temp_directory_path() / ("saker-fuzz-" + std::to_string(getpid()));
    std::filesystem::create_directories(made);
    return made;
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using saker::load::PromptCache;
  const auto first = folder() / "first";
  const auto second = folder() / "second";
  std::ofstream(first, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  PromptCache cache;
  try {
    cache = saker::load::read_prompt_cache(first);
  } catch (const saker::Error&) {  // The expected answer to most inputs.
    return 0;
  }
  saker::load::write_prompt_cache(second, cache);
  const PromptCache again = saker::load::read_prompt_cache(second);
  if (again.layers.size() != cache.layers.size()) {
    std::abort();
  }
  for (std::size_t i = 0; i < cache.layers.size(); ++i) {
    if (again.layers[i].state.size() != cache.layers[i].state.size()) {
      std::abort();
    }
  }
  return 0;
}
