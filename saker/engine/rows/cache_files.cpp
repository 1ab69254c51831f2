// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/rows/cache_files.h"

#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/cache/serialized_rows.h"
#include "saker/load/prompt_cache.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::engine {
namespace {

constexpr const char* kOwnKey = "saker";
constexpr int kVersion = 2;
constexpr int kSampledVersion = 1;
constexpr std::size_t kPageBytes = 4096;

// Our metadata about a file's rows.
struct OwnMetadata {
  load::ModelFingerprint model;
  std::string adapter;  // Empty: the base.
  std::vector<std::int32_t> tokens;
};

OwnMetadata parse_own(std::string_view text, std::string_view what) {
  const Json json = parse_json(text, fmt::format("{}: metadata saker", what));
  const auto version = json.is_object() ? json_int(json, "version", 0) : 0;
  require(
      version != kSampledVersion,
      ErrorCode::kUnsupported,
      "{}: was written by an earlier version, which knew its model by a sample of the weights: "
      "make "
      "it again",
      what
  );
  require(
      version == kVersion,
      ErrorCode::kUnsupported,
      "{}: metadata saker is {}, expected version {}",
      what,
      describe_json(json),
      kVersion
  );
  OwnMetadata own;
  own.model = {json_string(json, "config", ""), json_string(json, "weights", "")};
  own.adapter = json_string(json, "adapter", "");
  const auto tokens = json.find("tokens");
  require(
      tokens != json.end() && tokens->is_array() &&
          std::ranges::all_of(
              *tokens,
              [](const Json& id) {
                return id.is_number_unsigned() && id.get<std::uint64_t>() <= INT32_MAX;
              }
          ),
      ErrorCode::kCorruptData,
      "{}: metadata saker: tokens are not token ids",
      what
  );
  own.tokens = tokens->get<std::vector<std::int32_t>>();
  return own;
}

std::string own_text(const OwnMetadata& own) {
  Json json = {
      {"version", kVersion},
      {"config", own.model.config},
      {"weights", own.model.weights},
      {"tokens", own.tokens},
  };
  if (!own.adapter.empty()) {
    json["adapter"] = own.adapter;
  }
  return json.dump();
}

std::string describe_adapter(const std::string& identity) {
  return identity.empty() ? "the base" : fmt::format("adapter {}", quote(identity));
}

}  // namespace

const load::ModelFingerprint& CacheFiles::fingerprint() {
  if (!fingerprint_) {
    fingerprint_ = load::fingerprint(model_dir_);
  }
  return *fingerprint_;
}

load::PromptCache CacheFiles::read(const std::filesystem::path& path) {
  load::PromptCache file = load::read_prompt_cache(path);
  // The tensors lie in the mapped file: its pages are to be there when the rows are copied.
  std::byte seen{0};
  for (const cache::SerializedCache& layer : file.layers) {
    for (const Tensor& tensor : layer.state) {
      const std::span<const std::byte> bytes = tensor.bytes();
      for (std::size_t at = 0; at < bytes.size(); at += kPageBytes) {
        seen |= bytes[at];
      }
    }
  }
  spdlog::trace("{}: read, {}", quote_path(path), static_cast<int>(seen));
  return file;
}

CacheFiles::Rows CacheFiles::restore(
    const std::filesystem::path& path,
    const load::PromptCache& file,
    const models::Model& model,
    const models::CacheOptions& options,
    const std::string& adapter
) {
  const std::string what = quote_path(path);
  OwnMetadata known;  // Empty for other programs' files: the base's rows.
  if (const auto own = file.metadata.find(kOwnKey); own != file.metadata.end()) {
    known = parse_own(own->second, what);
    require(
        known.model == fingerprint(),
        ErrorCode::kInvalidArgument,
        "{}: holds rows of another model: its configuration and weights are {} and {}, expected {} "
        "and {}",
        what,
        quote(known.model.config),
        quote(known.model.weights),
        quote(fingerprint().config),
        quote(fingerprint().weights)
    );
  }
  require(
      known.adapter == adapter,
      ErrorCode::kInvalidArgument,
      "{}: holds rows of {}, expected those of {}: adapter and strength must be the same",
      what,
      describe_adapter(known.adapter),
      describe_adapter(adapter)
  );
  try {
    const auto layers = cache::without_lists(file.layers);
    Rows rows{cache::restored(model.make_cache(options), layers), std::move(known.tokens)};
    const int vocab_size = model.info().vocab_size;
    require(
        rows.unknown_rows() >= 0 &&
            std::ranges::all_of(rows.tokens, [&](std::int32_t id) { return id < vocab_size; }),
        ErrorCode::kCorruptData,
        "{} token ids for {} rows, expected at most as many, below {}",
        rows.tokens.size(),
        rows.cache.offset(),
        vocab_size
    );
    const auto name = file.metadata.find("model");
    if (!file.metadata.contains(kOwnKey) && name != file.metadata.end() &&
        name->second != model_dir_.native()) {
      spdlog::warn(
          "{}: was made with model {}, which may be another than {}",
          what,
          quote(name->second),
          quote_path(model_dir_)
      );
    }
    return rows;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", what, error.what()));
  }
}

void CacheFiles::check_save(
    const std::filesystem::path& path,
    const models::Model& model,
    const models::CacheOptions& options
) {
  const AtomicFile can_be_written(path);
  cache::serialize(model.make_cache(options));
}

void CacheFiles::save(
    const std::filesystem::path& path,
    const cache::SequenceCache& cache,
    int caches_per_layer,
    const std::vector<std::int32_t>& tokens,
    const std::string& adapter
) {
  load::PromptCache file;
  file.layers = cache::in_lists(cache::serialize(cache), caches_per_layer);
  file.metadata = {
      {"model", model_dir_.native()},
      {"tokenizer_config", "{}"},  // mlx-lm's own command line reads both.
      {kOwnKey, own_text({fingerprint(), adapter, tokens})},
  };
  load::write_prompt_cache(path, file);
}

}  // namespace saker::engine
