// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/resized.h"

#include "saker/base/error.h"
#include "saker/load/files/npz.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/files/weight_files.h"
#include "saker/load/sources/open_imported.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace saker::adapters {
namespace {

bool same_values(const Tensor& one, const Tensor& other) {
  return one.dtype == other.dtype &&
         (one.data == other.data || std::ranges::equal(one.bytes(), other.bytes()));
}

// True for a replaced weight with as many columns as the base's and another number of rows.
bool is_resized(const ModuleSource& module, std::int64_t tokens, std::int64_t hidden) {
  return module.weight && module.weight->shape.size() == 2 && module.weight->shape[1] == hidden &&
         module.weight->shape[0] != tokens;
}

// Checks that other changes of the new weight fit it.
void check_resized(const ModuleSource& module, std::int64_t tokens, std::int64_t hidden) {
  require(
      module.weight->shape[0] == tokens,
      ErrorCode::kInvalidArgument,
      "[{}] the adapter has {} tokens here and {} elsewhere",
      module.name,
      module.weight->shape[0],
      tokens
  );
  require(
      !module.bias && (!module.low_rank || (!module.low_rank->magnitude && !module.low_rank->bias)),
      ErrorCode::kUnsupported,
      "[{}] biases and DoRA of a resized vocabulary can't be fused",
      module.name
  );
  if (!module.low_rank) {
    return;
  }
  const LowRank& pair = *module.low_rank;
  const auto& of_tokens = pair.embedding ? pair.down : pair.up;
  const auto of_hidden = pair.embedding ? pair.up.shape.at(0) : pair.down.shape.at(1);
  require(
      of_tokens.shape.at(0) == tokens && of_hidden == hidden,
      ErrorCode::kInvalidArgument,
      "[{}] low-rank matrices of {} tokens, expected {}",
      module.name,
      of_tokens.shape.at(0),
      tokens
  );
}

// True for "…embed_tokens.weight", "…lm_head.modules_to_save.default.weight"; false for low-rank
// matrices.
bool is_table(std::string_view name) {
  const auto path = module_name(name);
  return (path.starts_with("embed_tokens.") || path.starts_with("lm_head.")) &&
         name.ends_with(".weight") && name.find("lora_") == std::string_view::npos &&
         name.find("original_module") == std::string_view::npos;
}

// Row counts of a file's tables of tokens.
std::vector<std::int64_t> table_rows(const std::filesystem::path& file) {
  std::vector<std::int64_t> rows;
  if (file.extension() == ".npz") {
    for (const auto& [name, tensor] : load::read_npz(file)) {
      if (is_table(name) && tensor.shape.size() == 2) {
        rows.push_back(tensor.shape.front());
      }
    }
    return rows;
  }
  for (const auto& entry : load::read_safetensors_header(file).entries) {
    if (!load::is_of_draft(entry.name) && is_table(entry.name) && entry.shape.size() == 2) {
      rows.push_back(entry.shape.front());
    }
  }
  return rows;
}

bool find_own_vocabulary(const std::filesystem::path& model, const std::filesystem::path& adapter) {
  const auto dir = adapter_folder(adapter);
  const auto weights = load::find_adapter_weights(dir);
  const auto rows = weights ? table_rows(dir / weights->file) : std::vector<std::int64_t>();
  if (rows.empty() || load::importers::is_imported(model)) {
    return false;
  }
  for (const auto& file : load::find_weight_files(model).paths) {
    const auto base = table_rows(file);
    if (!base.empty()) {
      return std::ranges::any_of(rows, [&](std::int64_t count) { return count != base.front(); });
    }
  }
  return false;
}

}  // namespace

bool has_own_vocabulary(const std::filesystem::path& model, const std::filesystem::path& adapter) {
  try {
    return find_own_vocabulary(model, adapter);
  } catch (const Error&) {
    return false;
  }
}

ResizedVocabulary take_resized(
    AdapterSource& source, std::int64_t tokens, std::int64_t hidden, bool tied
) {
  ResizedVocabulary result;
  for (const auto name : {kEmbedding, kHead}) {
    const auto found = source.modules.find(name);
    if (found != source.modules.end() && is_resized(found->second, tokens, hidden)) {
      result.modules.insert(source.modules.extract(found));
    }
  }
  if (result.modules.empty()) {
    return result;
  }
  result.tokens = result.modules.begin()->second.weight->shape[0];
  for (const auto& [name, module] : result.modules) {
    check_resized(module, result.tokens, hidden);
  }
  const auto embedding = result.modules.find(kEmbedding);
  const bool has_embedding = embedding != result.modules.end();
  const bool has_head = result.modules.contains(kHead);
  require(
      has_embedding && (has_head || (tied && !source.modules.contains(kHead))),
      ErrorCode::kInvalidArgument,
      "the adapter has {} tokens and resizes only one of embedding and head, expected both",
      result.tokens
  );
  if (tied && !has_head) {
    ModuleSource head;
    head.weight = embedding->second.weight;
    head.name = kHead;
    result.modules.emplace(kHead, std::move(head));
  }
  const ModuleSource& head = result.modules.find(kHead)->second;
  result.tied = tied && !embedding->second.low_rank && !head.low_rank &&
                same_values(*embedding->second.weight, *head.weight);
  return result;
}

}  // namespace saker::adapters
