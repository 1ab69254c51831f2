// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a path holds and whether we can run it, from configurations and safetensors headers alone:
// no weight is read, no array is made. Broken files throw as loading them would; a model that is
// merely beyond us is described, with the reason.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

enum class PathKind : std::uint8_t {
  kModel,        // A folder with config.json.
  kAdapter,      // A folder with adapter_config.json.
  kPromptCache,  // A safetensors file of mlx-lm's prompt-cache form.
  kSafetensors,  // Any other safetensors file.
};

// "model", "adapter", "prompt cache", "safetensors": as people and JSON read it.
std::string_view path_kind_name(PathKind kind);

struct TensorSummary {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
};

// Tensors of one dtype.
struct DTypeTotal {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::size_t bytes = 0;
};

struct ModelSummary {
  std::string model_type;
  std::string architecture;  // architectures[0]; empty when the configuration has none.
  std::int64_t layers = 0;   // 0 where the configuration doesn't say, here and below.
  std::int64_t hidden_size = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t vocab_size = 0;
  std::int64_t context_length = 0;
  std::string quantization;  // "4 bits, groups of 64, affine"; empty for float weights.
  std::string sampling;      // What generation_config.json asks for: "temperature 0.6, top_k 20".
  bool has_tokenizer = false;
  bool has_chat_template = false;
};

struct AdapterSummary {
  std::string type;        // "lora", "dora", ...
  std::string base_model;  // Empty when the configuration doesn't say.
  std::int64_t rank = 0;
  double scale = 0;
};

// What the rows of a layer are kept in.
struct CacheLayer {
  std::string kind;             // "QuantizedKVCache", as mlx-lm names it.
  int bits = 0;                 // Of an element; 16: the rows as they are, float32 ones too.
  std::optional<int> max_size;  // Rows that stay; none: all.
  std::size_t token_bytes = 0;  // Of one row, keys and values.
  std::size_t state_bytes = 0;  // Of a layer that keeps a state instead of rows.

  bool operator==(const CacheLayer&) const = default;
};

// Memory of one conversation, in bytes.
struct MemoryNeed {
  std::size_t weight_bytes = 0;
  std::int64_t tokens = 0;      // That the cache is counted for.
  std::size_t token_bytes = 0;  // Of one of them, in all layers.
  std::size_t cache_bytes = 0;
  std::size_t work_bytes = 0;    // The arrays of a pass, and the program.
  std::size_t usable_bytes = 0;  // What the machine, or the container, has.

  std::size_t total() const { return weight_bytes + cache_bytes + work_bytes; }

  bool fits() const { return total() <= usable_bytes; }
};

struct Inspection {
  PathKind kind = PathKind::kSafetensors;
  std::filesystem::path path;
  std::vector<std::filesystem::path> files;  // Weights.
  std::uintmax_t file_bytes = 0;             // Of those files.
  // Weights as a person counts them: packed words count as the weights that they hold, scales and
  // biases don't count.
  std::int64_t parameters = 0;
  std::map<std::string, DTypeTotal> dtypes;
  std::vector<TensorSummary> tensors;                        // By name.
  std::map<std::string, std::string, std::less<>> metadata;  // Of a single file.
  std::optional<ModelSummary> model;
  std::optional<AdapterSummary> adapter;
  std::vector<std::string> cache_layers;  // Class of each layer of a prompt cache.
  std::vector<CacheLayer> caches;         // Of a model's layers, where they were asked for.
  std::optional<MemoryNeed> memory;       // Of a model that runs.
  bool runnable = false;
  std::string reason;  // Why it can't be run; empty when it can, or when running makes no sense.
  std::vector<std::string> warnings;
};

// Whether the weights are there. Where they are still to come, files have their sizes, headers and
// holes, and whether the numbers are sound is not known yet.
enum class Weights : std::uint8_t { kThere, kToCome };

// Throws kNotFound where there is nothing, kInvalidArgument for what we don't know, kCorruptData
// for broken files. With `kv_bits` (32, 16, 8 or 4) it also says what the caches of a model would
// be, and throws kInvalidArgument for what is no model.
Inspection inspect(
    const std::filesystem::path& path,
    std::optional<int> kv_bits = std::nullopt,
    Weights weights = Weights::kThere
);

}  // namespace saker::load
