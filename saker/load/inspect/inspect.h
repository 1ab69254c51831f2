// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inspects a path: its content, and if we can run it. Uses configurations and safetensors headers
// alone: no weight is read, no array is made. Broken files throw as loading them would. A valid
// model that we can't run is described, with the reason.

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
  kAdapter,      // A folder with adapter_config.json, or llama.cpp's file.
  kPromptCache,  // A safetensors file of mlx-lm's prompt-cache form.
  kSafetensors,  // Any other safetensors file.
};

// The kind for people and JSON: "model", "adapter", "prompt cache", "safetensors".
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
  std::int64_t layers = 0;   // 0 if the configuration doesn't say, also below.
  std::int64_t hidden_size = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t vocab_size = 0;
  std::int64_t context_length = 0;
  std::string quantization;  // "4 bits, groups of 64, affine"; empty for float weights.
  std::string sampling;      // From generation_config.json: "temperature 0.6, top_k 20".
  bool has_tokenizer = false;
  bool has_chat_template = false;
};

struct AdapterSummary {
  std::string type;        // "lora", "dora", ...
  std::string base_model;  // Empty when the configuration doesn't say.
  std::int64_t rank = 0;
  double scale = 0;
};

// A layer's cache.
struct CacheLayer {
  std::string kind;             // "QuantizedKVCache", as mlx-lm names it.
  int bits = 0;                 // Per element; 16: rows are not quantized, even if float32.
  std::optional<int> max_size;  // Maximum rows; empty: unlimited.
  std::size_t token_bytes = 0;  // Keys and values of one row.
  std::size_t state_bytes = 0;  // For a layer with a state instead of rows.

  bool operator==(const CacheLayer&) const = default;
};

// Memory of one conversation, in bytes.
struct MemoryNeed {
  std::size_t weight_bytes = 0;
  std::int64_t tokens = 0;      // Tokens that the cache is computed for.
  std::size_t token_bytes = 0;  // One token in all layers.
  std::size_t cache_bytes = 0;
  std::size_t work_bytes = 0;    // The arrays of a pass, and the program.
  std::size_t usable_bytes = 0;  // Memory of the machine or container.

  std::size_t total() const { return weight_bytes + cache_bytes + work_bytes; }

  bool fits() const { return total() <= usable_bytes; }
};

struct Inspection {
  PathKind kind = PathKind::kSafetensors;
  std::filesystem::path path;
  std::vector<std::filesystem::path> files;  // Weights.
  std::uintmax_t file_bytes = 0;             // All weight files.
  // Weights as people count them: packed words count as the weights that they hold; scales and
  // biases don't count.
  std::int64_t parameters = 0;
  std::map<std::string, DTypeTotal> dtypes;
  std::vector<TensorSummary> tensors;                        // By name.
  std::map<std::string, std::string, std::less<>> metadata;  // Only of a single file.
  std::optional<ModelSummary> model;
  std::optional<AdapterSummary> adapter;
  std::vector<std::string> cache_layers;  // The class of each layer in a prompt cache.
  std::vector<CacheLayer> caches;         // A model's layers, if asked for.
  std::optional<MemoryNeed> memory;       // Set for a model that we can run.
  bool runnable = false;
  std::string reason;  // Why it can't be run; empty if it can, or if running makes no sense.
  std::vector<std::string> warnings;
};

// Says if the weights are there. With kToCome files have their sizes and headers, but holes for
// weights, whose values can't be judged yet.
enum class Weights : std::uint8_t { kThere, kToCome };

// Throws kNotFound if nothing is there, kInvalidArgument for other kinds of files, kCorruptData for
// broken ones. With `kv_bits` (32, 16, 8 or 4) the result includes a model's caches; it then throws
// kInvalidArgument for anything but a model.
Inspection inspect(
    const std::filesystem::path& path,
    std::optional<int> kv_bits = std::nullopt,
    Weights weights = Weights::kThere
);

}  // namespace saker::load
