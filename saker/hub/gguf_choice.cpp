// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/gguf_choice.h"

#include "saker/base/characters/letter_case.h"
#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::hub {
namespace {

constexpr std::string_view kSuffix = ".gguf";
constexpr std::string_view kSeparators = "-._/";
// Prefix of the mixes in unsloth's repositories that this quantization's name stands for.
constexpr std::string_view kDynamic = "ud-";
// A message lists at most this many models.
constexpr std::size_t kListed = 12;

// Choices in order if nothing was asked for: small without much loss first. Only types that we
// read.
constexpr std::array<std::string_view, 12> kPreferred{
    "q4_k_m",
    "q4_k_s",
    "q4_0",
    "q4_1",
    "q5_k_m",
    "q5_k_s",
    "q5_0",
    "q8_0",
    "q6_k",
    "bf16",
    "f16",
    "f32",
};

std::string_view without_suffix(std::string_view path) {
  return path.ends_with(kSuffix) ? path.substr(0, path.size() - kSuffix.size()) : path;
}

// The path without ".gguf" and the part's number.
std::string stem_of(const GgufModel& model) {
  const auto part = part_name(model.path, kSuffix);
  return part ? part->stem : std::string(without_suffix(model.path));
}

bool helps_a_model(std::string_view path) {
  const std::string name = ascii_lower(path.substr(path.rfind('/') + 1));
  return name.starts_with("mmproj") || name.find("-mmproj") != std::string::npos ||
         name.find("imatrix") != std::string::npos;
}

// True if the stem ends so, behind a separator or from its beginning.
bool ends_as(std::string_view stem, std::string_view end) {
  return stem.ends_with(end) &&
         (stem.size() == end.size() ||
          kSeparators.find(stem[stem.size() - end.size() - 1]) != std::string_view::npos);
}

bool is_dynamic(std::string_view stem, std::string_view end) {
  return ends_as(stem, std::string(kDynamic) + std::string(end));
}

// The models that `wanted`, in lower case, may mean.
std::vector<const GgufModel*> find_ends(
    std::span<const GgufModel> models, std::string_view wanted
) {
  std::vector<const GgufModel*> found;
  for (const GgufModel& model : models) {
    if (ends_as(ascii_lower(stem_of(model)), wanted)) {
      found.push_back(&model);
    }
  }
  const auto plain = [&](const GgufModel* model) {
    return !is_dynamic(ascii_lower(stem_of(*model)), wanted);
  };
  if (found.size() > 1 && std::ranges::any_of(found, plain)) {
    std::erase_if(found, [&](const GgufModel* model) { return !plain(model); });
  }
  return found;
}

const GgufModel* find_path(std::span<const GgufModel> models, std::string_view wanted) {
  for (const GgufModel& model : models) {
    const bool is_part = std::ranges::find(model.paths, wanted) != model.paths.end();
    if (is_part || stem_of(model) == wanted) {
      return &model;
    }
  }
  return nullptr;
}

[[noreturn]] void fail(
    ErrorCode code,
    std::span<const GgufModel> models,
    std::string_view what,
    std::string_view problem
) {
  std::vector<std::string> labels;
  for (const GgufModel& model : models.first(std::min(models.size(), kListed))) {
    labels.push_back(":" + gguf_label(model, models));
  }
  throw Error(
      code,
      models.empty() ? fmt::format("{}: holds no GGUF model", what)
                     : fmt::format(
                           "{}: {}; there {} {}{}",
                           what,
                           problem,
                           models.size() == 1 ? "is" : "are",
                           fmt::join(labels, ", "),
                           models.size() > kListed ? ", ..." : ""
                       )
  );
}

}  // namespace

std::vector<GgufModel> gguf_models(std::span<const std::string> paths) {
  std::vector<std::string> sorted(paths.begin(), paths.end());
  std::ranges::sort(sorted);
  std::vector<GgufModel> models;
  for (const std::string& path : sorted) {
    if (!path.ends_with(kSuffix) || helps_a_model(path)) {
      continue;
    }
    GgufModel model{.path = path, .paths = {path}};
    const auto part = part_name(path, kSuffix);
    bool is_whole = !part || part->number == 1;
    for (int i = 2; is_whole && part && i <= part->count; ++i) {
      model.paths.push_back(part->sibling(i));
      is_whole = std::ranges::binary_search(sorted, model.paths.back());
    }
    if (is_whole) {
      models.push_back(std::move(model));
    }
  }
  return models;
}

std::string gguf_label(const GgufModel& model, std::span<const GgufModel> all) {
  const std::string stem = stem_of(model);
  const std::size_t begin = stem.find_last_of("-./");
  std::string end = begin == std::string::npos ? stem : stem.substr(begin + 1);
  if (is_dynamic(ascii_lower(stem), ascii_lower(end))) {
    end = stem.substr(stem.size() - end.size() - kDynamic.size());
  }
  const auto found = find_ends(all, ascii_lower(end));
  return !end.empty() && found.size() == 1 && found.front()->path == model.path ? end : model.path;
}

const GgufModel& choose_gguf(
    std::span<const GgufModel> models, std::string_view wanted, std::string_view what
) {
  if (!wanted.empty()) {
    if (const GgufModel* model = find_path(models, wanted)) {
      return *model;
    }
    const auto found = find_ends(models, ascii_lower(without_suffix(wanted)));
    if (found.size() == 1) {
      return *found.front();
    }
    if (found.empty()) {
      fail(ErrorCode::kNotFound, models, what, "no GGUF model is called so");
    }
    fail(ErrorCode::kInvalidArgument, models, what, "several GGUF models are called so");
  }
  if (models.size() == 1) {
    return models.front();
  }
  for (const std::string_view quantization : kPreferred) {
    const auto found = find_ends(models, quantization);
    if (found.size() == 1) {
      return *found.front();
    }
    if (found.size() > 1) {
      break;
    }
  }
  fail(
      models.empty() ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
      models,
      what,
      "holds several GGUF models, say which one"
  );
}

bool has_safetensors(std::span<const std::string> paths) {
  return std::ranges::any_of(paths, [](std::string_view path) {
    return (path.starts_with("model") &&
            (path.ends_with(".safetensors") || path == "model.safetensors.index.json")) ||
           path == "adapter_model.safetensors" || path == "adapters.safetensors" ||
           path == "adapters.npz";
  });
}

}  // namespace saker::hub
