// SPDX-License-Identifier: Apache-2.0
// Caches of Qwen3-0.6B's shape, 28 layers of 8 heads of 128 in bf16: what a token costs, and how
// fast a known prefix of 8192 tokens (940 MB) is there again, from memory and from files. Rows are
// never filled in, since nothing depends on them. Files lie in TMPDIR; the system is asked to
// forget them before each round. `share` is the part of the plain reading speed of the same files.
#include "saker/cache/kv.h"
#include "saker/cache/prefix_cache.h"

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;

constexpr int kLayers = 28;
constexpr int kPrefix = 8192;

SequenceCache make_cache(int bits = kernels::kUnquantizedBits) {
  std::vector<std::unique_ptr<LayerCache>> layers;
  for (int i = 0; i < kLayers; ++i) {
    layers.push_back(std::make_unique<KVCache>(kernels::KvShape{8, 128, 128, mx::bfloat16, bits}));
  }
  return SequenceCache(std::move(layers));
}

void append(SequenceCache& cache, int count) {
  cache.begin();
  for (int i = 0; i < cache.layer_count(); ++i) {
    cache.layer(i).append(0, count);
  }
  cache.commit(count);
}

std::vector<std::int32_t> tokens(int count) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// All layers' bookkeeping of one more token, memory of new pages included; `bytes` is what the
// cache grew by for a token.
void append_token(benchmark::State& state) {
  auto cache = make_cache();
  append(cache, static_cast<int>(state.range(0)));
  const std::size_t before = cache.nbytes();
  for (auto _ : state) {
    append(cache, 1);
  }
  const auto grown = static_cast<double>(cache.nbytes() - before);
  state.counters["bytes"] = benchmark::Counter(grown, benchmark::Counter::kAvgIterations);
}

BENCHMARK(append_token)->Arg(0)->Arg(1024)->Arg(8192)->Iterations(2048);

void restore_from_memory(benchmark::State& state) {
  PrefixCache prefixes({.byte_budget = std::size_t{2} << 30, .folder = {}});
  PrefixCache::Pin pin;
  {
    auto cache = make_cache(static_cast<int>(state.range(0)));
    append(cache, kPrefix);
    prefixes.keep("k", tokens(kPrefix), cache, pin);
  }
  const auto prompt = tokens(kPrefix + 1);
  for (auto _ : state) {
    auto cache = make_cache(static_cast<int>(state.range(0)));
    if (prefixes.restore("k", prompt, cache, pin) != kPrefix) {
      state.SkipWithError("rows are missing");
    }
    append(cache, 1);
  }
}

BENCHMARK(restore_from_memory)->Arg(16)->Arg(8)->Arg(4)->Unit(benchmark::kMillisecond);

std::vector<fs::path> files(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& item : fs::directory_iterator(folder)) {
    paths.push_back(item.path());
  }
  return paths;
}

void forget(const fs::path& folder) {
  for (const fs::path& path : files(folder)) {
    const int file = open(path.c_str(), O_RDONLY);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
  }
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double read_plainly(const fs::path& folder) {
  std::vector<char> buffer(std::size_t{8} << 20);
  const auto start = Clock::now();
  for (const fs::path& path : files(folder)) {
    const int file = open(path.c_str(), O_RDONLY);
    while (read(file, buffer.data(), buffer.size()) > 0) {
    }
    close(file);
  }
  return seconds_since(start);
}

void load_from_files(benchmark::State& state) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("prefix_bench_{}", getpid());
  const PrefixCacheOptions options{.byte_budget = std::size_t{2} << 30, .folder = folder};
  {
    PrefixCache prefixes(options);
    PrefixCache::Pin pin;
    auto cache = make_cache();
    append(cache, kPrefix);
    prefixes.keep("k", tokens(kPrefix), cache, pin);
  }
  const auto prompt = tokens(kPrefix + 1);
  double plain = 0.0;
  double loading = 0.0;
  for (auto _ : state) {
    forget(folder);
    plain += read_plainly(folder);
    forget(folder);
    PrefixCache prefixes(options);
    PrefixCache::Pin pin;
    auto cache = make_cache();
    const auto start = Clock::now();
    if (prefixes.restore("k", prompt, cache, pin) != kPrefix) {
      state.SkipWithError("rows are missing");
    }
    const double seconds = seconds_since(start);
    state.SetIterationTime(seconds);
    loading += seconds;
  }
  std::uintmax_t bytes = 0;
  for (const fs::path& path : files(folder)) {
    bytes += fs::file_size(path);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
  state.counters["share"] = plain / loading;
  fs::remove_all(folder);
}

BENCHMARK(load_from_files)->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace saker::cache
