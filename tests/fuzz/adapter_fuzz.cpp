// SPDX-License-Identifier: Apache-2.0
// Any bytes as an adapter's folder: a typed error, or modules whose parts fit each other and that
// can be written in both forms. The first byte chooses the form, the configuration ends with a
// zero byte, the rest are the weights. An input that begins with "GGUF" is llama.cpp's file.
#include "saker/adapters/adapter_source.h"
#include "saker/adapters/model_fit.h"
#include "saker/adapters/save.h"
#include "saker/base/error.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "GGUF";

const fs::path& folder() {
  static const fs::path path =
      fs::temp_directory_path() / ("saker-fuzz-adapter-" + std::to_string(getpid()));
  return path;
}

void write(const fs::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(
          reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())
      );
}

void check(const saker::adapters::AdapterSource& source) {
  for (const auto& [name, module] : source.modules) {
    if (module.low_rank && module.low_rank->up.shape.size() != 2) {
      std::abort();
    }
  }
  for (const auto& save : {saker::adapters::save_mlx, saker::adapters::save_peft}) {
    const fs::path out = folder() / "out";
    fs::remove_all(out);
    try {
      save(source, out);
    } catch (const saker::Error&) {  // Nothing that has a place in this form.
      continue;
    }
    if (saker::adapters::read_adapter(out).modules.empty()) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> input(data, size);
  if (input.empty()) {
    return 0;
  }
  const fs::path dir = folder() / "in";
  fs::remove_all(dir);
  fs::create_directories(dir);
  if (std::ranges::equal(input.first(std::min(size, kMagic.size())), kMagic)) {
    write(dir / "a.gguf", input);
    try {
      auto source = saker::adapters::read_adapter(dir / "a.gguf");
      saker::adapters::order_rows(source, 2);
      check(source);
    } catch (const saker::Error&) {  // The expected answer to most inputs.
    }
    return 0;
  }
  const bool mlx = input.front() % 2 == 0;
  const auto end = std::ranges::find(input.subspan(1), 0);
  const auto config = static_cast<std::size_t>(end - input.subspan(1).begin());
  write(dir / "adapter_config.json", input.subspan(1, config));
  write(
      dir / (mlx ? "adapters.safetensors" : "adapter_model.safetensors"),
      input.subspan(std::min(size, config + 2))
  );
  try {
    check(saker::adapters::read_adapter(dir));
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
