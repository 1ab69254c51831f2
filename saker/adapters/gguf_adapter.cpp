// SPDX-License-Identifier: Apache-2.0
// Adapters of llama.cpp. Its file names the base's modules as models in GGUF do. An embedding has
// `lora_a` as [V, R], a row per token. Norms may be beside the pairs; llama.cpp skips them.
#include "saker/adapters/source_parts.h"
#include "saker/base/blake2b.h"
#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/blocks/gguf_types.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_names.h"
#include "saker/load/gguf/gguf_parts.h"
#include "saker/load/gguf/gguf_two_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::adapters {
namespace {

namespace gguf = load::gguf;

constexpr std::string_view kWeightSuffix = ".weight";
constexpr std::string_view kAlphaKey = "adapter.lora.alpha";

// Throws unless the key has this text.
void expect_text(
    const gguf::Header& header, std::string_view key, std::string_view expected, ErrorCode code
) {
  const auto text = header.string(key);
  require(
      text == expected,
      code,
      "{}: '{}' is {}, expected {}",
      header.what(),
      key,
      text ? quote(*text) : "missing",
      quote(expected)
  );
}

void check_kind(const gguf::Header& header) {
  require(
      header.string("general.architecture") != "controlvector",
      ErrorCode::kUnsupported,
      "{}: is a control vector, expected a LoRA adapter",
      header.what()
  );
  expect_text(header, "general.type", "adapter", ErrorCode::kInvalidArgument);
  expect_text(header, "adapter.type", "lora", ErrorCode::kUnsupported);
  constexpr std::string_view kInvocation = "adapter.alora.invocation_tokens";
  require(
      !header.has(kInvocation),
      ErrorCode::kUnsupported,
      "{}: has '{}': an adapter that begins at such tokens (aLoRA) can't be run",
      header.what(),
      kInvocation
  );
}

// 0 is refused: it stands for a scale of 1 in llama.cpp, and for 0 elsewhere.
double read_alpha(const gguf::Header& header) {
  const auto alpha = header.number(kAlphaKey);
  require(
      alpha && std::isfinite(*alpha) && *alpha != 0.0,
      ErrorCode::kCorruptData,
      "{}: '{}' is {}, expected a finite number other than 0",
      header.what(),
      kAlphaKey,
      alpha ? fmt::format("{}", *alpha) : "missing"
  );
  return *alpha;
}

struct GgufPlace {
  std::string_view weight;  // The base's tensor.
  bool is_down = false;
};

std::optional<GgufPlace> gguf_place_of(std::string_view name) {
  constexpr std::string_view kDown = ".lora_a";
  constexpr std::string_view kUp = ".lora_b";
  for (const auto suffix : {kDown, kUp}) {
    if (name.ends_with(suffix)) {
      return GgufPlace{name.substr(0, name.size() - suffix.size()), suffix == kDown};
    }
  }
  return std::nullopt;
}

template <typename Names>
std::optional<std::string_view> folder_name(const Names& names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &gguf::ModuleNames::gguf);
  return found != names.end() ? std::optional(found->ours) : std::nullopt;
}

// The module of one of the base's tensors; empty for tensors of other names.
std::optional<std::string> folder_module(const gguf::Family& family, std::string_view weight) {
  if (!weight.ends_with(kWeightSuffix)) {
    return std::nullopt;
  }
  const auto module = weight.substr(0, weight.size() - kWeightSuffix.size());
  if (const auto role = family.two_kinds ? gguf::two_kinds_role(weight) : std::nullopt) {
    return role->name.substr(0, role->name.size() - kWeightSuffix.size());
  }
  if (const auto layer = numbered_name(module, "blk.")) {
    const auto name = folder_name(gguf::kLayerModules, layer->rest);
    return name ? std::optional(fmt::format("model.layers.{}.{}", layer->number, *name))
                : std::nullopt;
  }
  const auto name = folder_name(gguf::kModelModules, module);
  return name ? std::optional(std::string(*name)) : std::nullopt;
}

Tensor tensor_of(const gguf::Part& part, const gguf::TensorEntry& entry) {
  const std::byte* data = part.bytes.data() + entry.begin;
  if (const auto dtype = gguf::plain_dtype(entry.type)) {
    return {
        .dtype = *dtype,
        .shape = entry.shape,
        .data = std::shared_ptr<const std::byte>(part.mapped, data),
        .release = [mapped = part.mapped,
                    begin = entry.begin,
                    length = entry.end - entry.begin] { mapped->release(begin, length); },
    };
  }
  std::vector<float> values(static_cast<std::size_t>(entry.element_count));
  gguf::to_floats(entry.type, data, values.size(), values.data());
  return float_tensor(entry.shape, std::move(values));
}

// Reads the tensors of one file.
class GgufReader {
 public:
  explicit GgufReader(gguf::JoinedParts joined)
      : joined_(std::move(joined)), family_(gguf::family_of(joined_.header)) {}

  AdapterSource read() {
    const double alpha = read_alpha(header());
    source_.format = AdapterFormat::kGguf;
    source_.base_type = family_.model_type;
    source_.config = Json::object();
    for (const gguf::TensorEntry& entry : header().tensors) {
      add(entry);
    }
    for (auto& [path, module] : source_.modules) {
      check_low_rank(module.name, *module.low_rank);
      const auto rank = static_cast<double>(module.low_rank->up.shape.at(1));
      module.low_rank->scale = static_cast<float>(alpha / rank);
    }
    require(
        !source_.modules.empty(),
        ErrorCode::kCorruptData,
        "{}: holds no low-rank matrices",
        header().what()
    );
    if (norms_ > 0) {
      source_.warnings.push_back(fmt::format(
          "{}: {} {} of norms and not used",
          header().what(),
          norms_,
          norms_ == 1 ? "tensor is" : "tensors are"
      ));
    }
    return std::move(source_);
  }

 private:
  const gguf::Header& header() const { return joined_.header; }

  void add(const gguf::TensorEntry& entry) {
    const auto place = gguf_place_of(entry.name);
    if (!place && entry.name.ends_with("_norm.weight")) {
      ++norms_;
      return;
    }
    require(
        !place || !place->weight.ends_with("_exps.weight"),
        ErrorCode::kUnsupported,
        "{}: [{}] a change of all experts of a layer can't be run",
        header().what(),
        entry.name
    );
    const auto path = place ? folder_module(family_, place->weight) : std::nullopt;
    require(
        path.has_value(),
        ErrorCode::kUnsupported,
        "{}: [{}] is no tensor of a LoRA adapter for architecture {} that can be run",
        header().what(),
        entry.name,
        family_.name
    );
    ModuleSource& module = source_.modules[std::string(module_name(*path))];
    module.name = *path;
    if (!module.low_rank) {
      module.low_rank = LowRank{.down = {}, .up = {}, .bias = {}, .magnitude = {}};
      module.low_rank->embedding = place->weight.ends_with("token_embd.weight");
      module.low_rank->rotated_pairs =
          family_.rotated_pairs && (path->ends_with(".q_proj") || path->ends_with(".k_proj"));
    }
    Tensor& matrix = place->is_down ? module.low_rank->down : module.low_rank->up;
    matrix = checked_tensor(entry.name, tensor_of(joined_.parts[entry.part], entry), 2);
  }

  gguf::JoinedParts joined_;
  const gguf::Family& family_;
  AdapterSource source_;
  std::size_t norms_ = 0;
};

}  // namespace

AdapterSource read_gguf_adapter(const std::filesystem::path& file) {
  gguf::JoinedParts joined = gguf::open_parts(file);
  check_kind(joined.header);
  Blake2b hash;
  for (const gguf::Part& part : joined.parts) {
    hash.add(part.bytes);
  }
  AdapterSource source = GgufReader(std::move(joined)).read();
  source.identity = hash.hex();
  source.dir = file;
  return source;
}

}  // namespace saker::adapters
