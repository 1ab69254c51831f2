// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of the prefix cache's folder: it is left out, or its rows are taken up. The
// first byte chooses what the layers keep, the second whether checksums are made good, as whoever
// changes a file can do.
#include "saker/base/checksum.h"
#include "saker/base/error.h"
#include "saker/cache/kv.h"
#include "saker/cache/prefix_cache.h"
#include "saker/cache/recurrent.h"
#include "saker/cache/window.h"

#include "tests/fuzz/input.h"
#include "tests/support/temporary_dir.h"
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
namespace cache = saker::cache;
namespace mx = mlx::core;

using saker::fuzz::expect;

cache::SequenceCache layers_of(unsigned kind) {
  const saker::kernels::KvShape rows{.kv_heads = 1, .head_dim = 8, .value_head_dim = 8};
  saker::kernels::KvShape codes{.kv_heads = 1, .head_dim = 32, .value_head_dim = 32, .bits = 8};
  std::vector<std::unique_ptr<cache::LayerCache>> layers;
  layers.push_back(std::make_unique<cache::KVCache>(kind % 4 == 1 ? codes : rows));
  if (kind % 4 == 2) {
    layers.push_back(std::make_unique<cache::WindowCache>(rows, 70));
  } else if (kind % 4 == 3) {
    layers.push_back(std::make_unique<cache::RecurrentCache>(
        cache::RecurrentState{mx::zeros({1, 2, 4}), mx::zeros({1, 3, 2})}
    ));
  }
  return cache::SequenceCache(std::move(layers));
}

// Where the parts of a file lie, as saker/cache/prefix_store.cpp has them.
struct Layout {
  std::size_t key = 0;  // Bytes, also below.
  std::size_t path = 0;

  std::size_t payload() const { return kHeader + key + path; }

  static constexpr std::size_t kHeader = 56;
};

template <typename T>
T number_at(const std::string& file, std::size_t place) {
  T number{};
  std::memcpy(&number, file.data() + place, sizeof(number));
  return number;
}

// Of a file that is long enough for it.
Layout layout_of(const std::string& file) {
  if (file.size() < Layout::kHeader) {
    return {};
  }
  const std::uint64_t key = number_at<std::uint32_t>(file, 12);
  const auto tokens = number_at<std::uint64_t>(file, 16);
  const std::uint64_t left = file.size() - Layout::kHeader;
  return key <= left && tokens <= (left - key) / 4 ? Layout{key, 4 * tokens} : Layout{};
}

void put(std::string& file, std::size_t place, std::uint64_t number) {
  std::memcpy(file.data() + place, &number, sizeof(number));
}

// Length and checksums of the payload and of what is before it.
void make_good(std::string& file, const Layout& layout) {
  if (layout.path == 0) {
    return;
  }
  const auto bytes = std::as_bytes(std::span(file));
  put(file, 32, file.size() - layout.payload());
  put(file, 40, saker::checksum(bytes.subspan(layout.payload())));
  saker::Checksum index;
  index.add(bytes.first(48));
  index.add(bytes.subspan(Layout::kHeader, layout.key + layout.path));
  put(file, 48, index.value());
}

// The tokens of the file and one more.
std::vector<std::int32_t> prompt_of(const std::string& file, const Layout& layout) {
  std::vector<std::int32_t> prompt(layout.path / 4 + 1);
  std::memcpy(prompt.data(), file.data() + Layout::kHeader + layout.key, layout.path);
  return prompt;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  spdlog::set_level(spdlog::level::off);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const saker::testing::TemporaryDir dir;
  saker::fuzz::Input input(data, size);
  auto layers = layers_of(input.byte());
  const bool as_it_is = input.byte() % 2 == 1;
  std::string file(input.rest());
  const Layout layout = layout_of(file);
  if (!as_it_is) {
    make_good(file, layout);
  }
  const fs::path folder = dir.path() / "folder";
  dir.write("folder/0123456789abcdef.saker-prefix", file);
  {
    cache::PrefixCache prefixes({.folder = folder});
    if (layout.path > 0) {
      const std::string key = file.substr(Layout::kHeader, layout.key);
      const std::vector<std::int32_t> prompt = prompt_of(file, layout);
      cache::PrefixCache::Pin pin;
      const auto restored = prefixes.restore(key, prompt, layers, pin);
      expect(restored >= 0 && restored < static_cast<std::int64_t>(prompt.size()));
      expect(restored == layers.offset());
      prefixes.keep(key, prompt, layers, pin);
    }
  }
  fs::remove_all(folder);
  return 0;
}
