// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/fuse.h"

#include "saker/adapters/bind.h"
#include "saker/adapters/fused_module.h"
#include "saker/adapters/resized.h"
#include "saker/adapters/weight_norms.h"
#include "saker/base/atomic_file.h"
#include "saker/base/atomic_folder.h"
#include "saker/base/error.h"
#include "saker/base/json.h"
#include "saker/base/utf8.h"
#include "saker/load/checkpoint.h"
#include "saker/load/foreign/foreign_source.h"
#include "saker/load/safetensors_writer.h"
#include "saker/load/weight_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace saker::adapters {
namespace {

namespace fs = std::filesystem;

// The head of these is the embedding whatever tie_word_embeddings says.
constexpr std::array<std::string_view, 2> kAlwaysTied{"gemma", "gemma2"};

struct TensorName {
  std::string_view module;
  std::string_view part;
};

TensorName split_name(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? TensorName{{}, name}
                                       : TensorName{name.substr(0, dot), name.substr(dot + 1)};
}

// What the tensors of one module are made from.
struct Target {
  std::string like;                   // The module of the base that has its tensors' form.
  std::optional<FusedModule> change;  // None: the base's tensors under another name.
};

load::LoadedCheckpoint load_base(const fs::path& model) {
  require(
      !load::foreign::is_foreign(model),
      ErrorCode::kUnsupported,
      "{}: is in another program's format, expected a folder of MLX's; 'saker convert' writes one",
      quote(model.native(), model.native().size())
  );
  return load::load_checkpoint(model);
}

class Fusion {
 public:
  Fusion(const fs::path& model, const fs::path& adapter, float strength)
      : loaded_(load_base(model)),
        files_(load::find_weight_files(model)),
        tensors_(load::read_weight_files(files_)) {
    for (const nn::Module& module : loaded_.model->modules()) {
      modules_.emplace(module_name(module.path), &module);
    }
    AdapterSource source = read_adapter(adapter);
    take_vocabulary(source, strength);
    bind(source, *loaded_.model);  // All that does not fit is refused there.
    for (const auto& [name, change] : source.modules) {
      const nn::Module& base = *modules_.find(name)->second;
      ModuleSource real = without_equals(change, base);
      if (real.weight || real.bias || real.low_rank) {
        changes_.emplace(name, FusedModule{&base, std::move(real), strength});
      }
    }
    choose_targets(source.tied_head_follows);
  }

  FuseReport write(const fs::path& dir, const FuseOptions& options) {
    for (const auto& [name, change] : changes_) {
      report_.fused.push_back(change.change.name);
    }
    plan();
    for (const auto& [shard, names] : shards_) {
      report_.tensors += names.size();
    }
    std::size_t done = 0;
    Json weight_map = Json::object();
    for (const auto& [shard, names] : shards_) {
      std::vector<load::PlannedTensor> infos;
      for (const std::string& name : names) {
        infos.push_back(info(name));
        weight_map[name] = shard;
      }
      const auto next = [&](std::size_t i) {
        if (options.progress) {
          options.progress(done, report_.tensors);
        }
        ++done;
        Tensor tensor = this->tensor(names[i]);
        report_.bytes += tensor.nbytes();
        return tensor;
      };
      load::write_safetensors(dir / shard, infos, next, {{"format", "mlx"}});
    }
    write_texts(dir, weight_map);
    return std::move(report_);
  }

 private:
  bool is_tied() const {
    const auto head = modules_.find(kHead);
    const auto embedding = modules_.find(kEmbedding);
    return head != modules_.end() && embedding != modules_.end() &&
           shares_weight(*head->second, *embedding->second);
  }

  // Embedding and head of another size.
  void take_vocabulary(AdapterSource& source, float strength) {
    const auto embedding = modules_.find(kEmbedding);
    if (embedding == modules_.end()) {
      return;
    }
    const nn::Module& base = *embedding->second;
    ResizedVocabulary resized = take_resized(source, base.outputs, base.inputs, is_tied());
    if (resized.tokens == 0) {
      return;
    }
    require(
        strength == 1.0F,
        ErrorCode::kInvalidArgument,
        "strength: got {}, expected 1 for an adapter with a vocabulary of another size ({} tokens, "
        "the base has {})",
        strength,
        resized.tokens,
        base.outputs
    );
    tokens_ = static_cast<int>(resized.tokens);
    for (auto& [name, change] : resized.modules) {
      if (name != kHead || !resized.tied) {
        const nn::Module& module = *modules_.find(name)->second;
        changes_.emplace(name, FusedModule{&module, std::move(change), strength, tokens_});
      }
    }
    stays_tied_ = resized.tied;
  }

  // The head of a tied model gets tensors of its own where it no longer is the embedding.
  void choose_targets(bool tied_head_follows) {
    const auto embedding = modules_.find(kEmbedding);
    const bool tied = is_tied();
    const bool head_changes = changes_.contains(kHead);
    const bool embedding_changes = changes_.contains(kEmbedding);
    for (const auto& [name, change] : changes_) {
      if (name != kHead || !tied) {
        targets_[change.base->path] = {change.base->path, change};
      }
    }
    if (!tied || stays_tied_ || (!head_changes && (!embedding_changes || tied_head_follows))) {
      return;
    }
    const std::string& type = loaded_.model->info().model_type;
    require(
        std::ranges::find(kAlwaysTied, type) == kAlwaysTied.end(),
        ErrorCode::kUnsupported,
        "the adapter changes only one of embedding and head, which are one in a model of type {}",
        type
    );
    const std::string& path = embedding->second->path;
    head_ = path.starts_with("language_model.") ? "language_model.lm_head" : "lm_head";
    embedding_ = path;
    Target target{path, std::nullopt};
    if (head_changes) {
      target.change = changes_.find(kHead)->second;
    }
    targets_[head_] = std::move(target);
  }

  // Which tensors each shard gets; those of a draft are not the model's.
  void plan() {
    for (const fs::path& path : files_.paths) {
      std::set<std::string> sorted;  // So that the tensors of a module follow each other.
      for (const auto& entry : load::read_safetensors_header(path).entries) {
        const auto shard = files_.shard_of.find(entry.name);
        const bool is_here = shard == files_.shard_of.end() || shard->second == path;
        if (is_here && !load::is_of_draft(entry.name)) {
          sorted.insert(entry.name);
        }
      }
      add_missing(sorted);
      if (!sorted.empty()) {
        shards_[path.filename().string()].assign(sorted.begin(), sorted.end());
      }
    }
  }

  // Biases, and the head beside the embedding that it was.
  void add_missing(std::set<std::string>& names) {
    std::vector<std::string> added;
    for (const std::string& name : names) {
      const auto [module, part] = split_name(name);
      if (part == "weight" && targets_.contains(module)) {
        const std::string bias = std::string(module) + ".bias";
        const Target& target = targets_.find(module)->second;
        if (!tensors_.contains(bias) && target.change &&
            fused_bias(*target.change, DType::kFloat32)) {
          added.push_back(bias);
        }
      }
      if (!head_.empty() && module == embedding_ && part != "bias") {
        added.push_back(fmt::format("{}.{}", head_, part));
      }
    }
    for (std::string& name : added) {
      if (names.insert(name).second) {
        report_.added.push_back(std::move(name));
      }
    }
  }

  const Tensor& base_tensor(const std::string& name) const { return tensors_.find(name)->second; }

  kernels::WeightTensors weight_tensors(const std::string& module) const {
    const auto find = [&](std::string_view part) {
      const auto found = tensors_.find(fmt::format("{}.{}", module, part));
      return found == tensors_.end() ? std::nullopt : std::optional(found->second);
    };
    return {*find("weight"), find("scales"), find("biases"), module};
  }

  // A bias that the base lacks takes the dtype that its other tensors have.
  DType bias_dtype(const std::string& module) const {
    if (const auto found = tensors_.find(module + ".bias"); found != tensors_.end()) {
      return found->second.dtype;
    }
    const auto like = weight_tensors(module);
    const DType dtype = like.scales ? like.scales->dtype : like.weight.dtype;
    return dtype == DType::kUInt8 ? DType::kBFloat16 : dtype;
  }

  load::PlannedTensor info(const std::string& name) const {
    const auto [module, part] = split_name(name);
    const auto target = targets_.find(module);
    if (target == targets_.end()) {
      const Tensor& tensor = base_tensor(name);
      return {name, tensor.dtype, tensor.shape};
    }
    if (part == "bias") {
      return {name, bias_dtype(target->second.like), {target->second.change->base->outputs}};
    }
    const Tensor& like = base_tensor(fmt::format("{}.{}", target->second.like, part));
    auto shape = like.shape;
    if (target->second.change && target->second.change->resized_rows > 0) {
      shape.front() = target->second.change->resized_rows;
    }
    return {name, like.dtype, std::move(shape)};
  }

  Tensor tensor(const std::string& name) {
    const auto [module, part] = split_name(name);
    const auto found = targets_.find(module);
    if (found == targets_.end()) {
      return base_tensor(name);
    }
    const Target& target = found->second;
    if (!target.change) {
      return base_tensor(fmt::format("{}.{}", target.like, part));
    }
    if (part == "bias") {
      return *fused_bias(*target.change, bias_dtype(target.like));
    }
    if (latest_ != module) {
      latest_tensors_ = fused_weight(*target.change, weight_tensors(target.like));
      latest_ = module;
    }
    return part == "weight"   ? latest_tensors_.weight
           : part == "scales" ? *latest_tensors_.scales
                              : *latest_tensors_.biases;
  }

  void write_texts(const fs::path& dir, const Json& weight_map) {
    if (shards_.size() > 1 || !files_.shard_of.empty()) {
      const Json index{
          {"metadata", {{"total_size", report_.bytes}}},
          {"weight_map", weight_map},
      };
      write_json(dir / "model.safetensors.index.json", index);
    }
    Json config = loaded_.config;
    if (!head_.empty()) {
      config["tie_word_embeddings"] = false;
      if (const auto text = config.find("text_config"); text != config.end()) {
        (*text)["tie_word_embeddings"] = false;
      }
      for (const std::string_view key : {"quantization", "quantization_config"}) {
        const auto section = config.find(key);
        if (section != config.end() && section->is_object() && section->contains(embedding_)) {
          (*section)[head_] = (*section)[embedding_];
        }
      }
    }
    if (tokens_ > 0) {
      const auto text = config.find("text_config");
      (text == config.end() ? config : *text)["vocab_size"] = tokens_;
    }
    write_json(dir / "config.json", config);
  }

  static void write_json(const fs::path& path, const Json& json) {
    AtomicFile file(path);
    file.write(json.dump(2) + "\n");
    file.commit();
  }

  load::LoadedCheckpoint loaded_;
  load::WeightFiles files_;
  load::TensorMap tensors_;
  std::map<std::string, const nn::Module*, std::less<>> modules_;  // By module_name.
  std::map<std::string, FusedModule, std::less<>> changes_;        // By module_name.
  std::map<std::string, Target, std::less<>> targets_;             // By path.
  std::string head_;  // The path of a head that was tied to `embedding_` and no longer is.
  std::string embedding_;
  int tokens_ = 0;           // Of a vocabulary of another size; 0: the base's.
  bool stays_tied_ = false;  // And its embedding is its head.
  std::map<std::string, std::vector<std::string>> shards_;  // Tensors by file.
  std::string latest_;                                      // The module of `latest_tensors_`.
  kernels::WeightTensors latest_tensors_;
  FuseReport report_;
};

// What describes tokens and generation; weights in any form stay behind.
bool is_text_file(const fs::path& path) {
  constexpr std::array<std::string_view, 5> kSuffixes{
      ".json", ".jinja", ".txt", ".model", ".tiktoken"
  };
  const std::string name = path.filename().string();
  return std::ranges::find(kSuffixes, path.extension().string()) != kSuffixes.end() &&
         name != "config.json" && name != "adapter_config.json" && !name.ends_with(".index.json");
}

void copy_texts(const fs::path& from, const fs::path& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    if (entry.is_regular_file() && is_text_file(entry.path())) {
      constexpr std::size_t kMostBytes = std::size_t{1} << 28;
      AtomicFile file(to / entry.path().filename());
      file.write(read_file(entry.path(), kMostBytes));
      file.commit();
    }
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
  AtomicFolder folder(output);
  Fusion fusion(model, adapter, options.strength);
  FuseReport report = fusion.write(folder.path(), options);
  copy_texts(model, folder.path());
  if (fs::exists(adapter / "tokenizer.json")) {
    copy_texts(adapter, folder.path());
  }
  folder.commit();
  return report;
}

}  // namespace saker::adapters
