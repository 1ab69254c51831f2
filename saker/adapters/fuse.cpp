// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/fuse.h"

#include "saker/adapters/fusion.h"
#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/files/atomic_folder.h"
#include "saker/base/json/json.h"
#include "saker/base/json/json_members.h"
#include "saker/base/json/json_numbers.h"
#include "saker/load/files/safetensors_writer.h"
#include "saker/text/chat_template.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

namespace saker::adapters {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void write_json_file(const fs::path& path, const Json& json) {
  write_text(path, write_json(json, 2) + "\n");
}

FuseReport write_weights(Fusion& fusion, const fs::path& dir, const FuseOptions& options) {
  FuseReport report{
      .fused = fusion.changed_modules(), .added = fusion.added(), .warnings = fusion.warnings()
  };
  for (const auto& [shard, names] : fusion.shards()) {
    report.tensors += names.size();
  }
  std::size_t done = 0;
  JsonMembers weight_map;
  for (const auto& [shard, names] : fusion.shards()) {
    std::vector<load::PlannedTensor> infos;
    for (const std::string& name : names) {
      infos.push_back(fusion.info(name));
      weight_map.set(name, shard);
    }
    const auto next = [&](std::size_t i) {
      if (options.progress) {
        options.progress(done, report.tensors);
      }
      ++done;
      Tensor tensor = fusion.tensor(names[i]);
      report.bytes += tensor.nbytes();
      return tensor;
    };
    load::write_safetensors(dir / shard, infos, next, {{"format", "mlx"}});
  }
  if (fusion.shards().size() > 1 || fusion.has_index()) {
    const Json index{
        {"metadata", {{"total_size", report.bytes}}},
        {"weight_map", weight_map.take()},
    };
    write_json_file(dir / "model.safetensors.index.json", index);
  }
  write_json_file(dir / "config.json", fusion.config());
  return report;
}

// True for files about tokens and generation; false for weights in any form.
bool is_text_file(const fs::path& path) {
  constexpr std::array<std::string_view, 5> kSuffixes{
      ".json", ".jinja", ".txt", ".model", ".tiktoken"
  };
  const std::string name = path.filename().string();
  return std::ranges::find(kSuffixes, path.extension().string()) != kSuffixes.end() &&
         name != "config.json" && name != "adapter_config.json" && !name.ends_with(".index.json");
}

void add_texts(const fs::path& dir, std::map<std::string, fs::path>& texts) {
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.is_regular_file() && is_text_file(entry.path())) {
      texts[entry.path().filename().string()] = entry.path();
    }
  }
  for (const std::string& name : text::additional_chat_templates(dir)) {
    texts[name] = dir / name;
  }
}

}  // namespace

FuseReport fuse(
    const fs::path& model,
    const fs::path& adapter,
    const fs::path& output,
    const FuseOptions& options
) {
  require(
      std::isfinite(options.strength),
      ErrorCode::kInvalidArgument,
      "strength: got {}, expected a finite number",
      options.strength
  );
  Fusion fusion(model, adapter, options.strength);
  AtomicFolder folder(output);
  FuseReport report = write_weights(fusion, folder.path(), options);
  for (const auto& [name, file] : fused_texts(model, adapter)) {
    constexpr std::size_t kMaxBytes = std::size_t{1} << 28;
    fs::create_directories((folder.path() / name).parent_path());
    write_text(folder.path() / name, read_file(file, kMaxBytes));
  }
  folder.commit();
  return report;
}

FusedCheckpoint load_fused(
    const fs::path& model,
    const fs::path& adapter,
    const models::LoadProgress& progress,
    bool with_mtp
) {
  const auto fusion = std::make_shared<Fusion>(model, adapter, 1.0F);
  load::CheckpointSource source{
      .config = fusion->config(),
      .tensors = {},
      .warnings = fusion->warnings(),
      .make = [fusion](const std::string& name) { return fusion->tensor(name); },
  };
  for (const auto& [shard, names] : fusion->shards()) {
    for (const std::string& name : names) {
      const load::PlannedTensor made = fusion->info(name);
      source.tensors.emplace(
          name,
          fusion->is_made(name)
              ? Tensor{.dtype = made.dtype, .shape = made.shape, .data = nullptr, .release = {}}
              : fusion->tensor(name)
      );
    }
  }
  return {load::load_checkpoint(std::move(source), progress, with_mtp), fusion->adapter_identity()};
}

std::map<std::string, fs::path> fused_texts(const fs::path& model, const fs::path& adapter) {
  std::map<std::string, fs::path> texts;
  add_texts(model, texts);
  const fs::path dir = adapter_folder(adapter);
  if (fs::exists(dir / "tokenizer.json")) {
    // These list tokens of the base's tokenizer.
    texts.erase("added_tokens.json");
    texts.erase("special_tokens_map.json");
    add_texts(dir, texts);
  }
  return texts;
}

}  // namespace saker::adapters
