// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect/inspect_model.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/load/draft.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/files/quantization.h"
#include "saker/load/files/weight_files.h"
#include "saker/load/gguf/blocks/gguf_types.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/load/gguf/gguf_parts.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/importers/leftover_section.h"
#include "saker/load/inspect/lenient.h"
#include "saker/load/inspect/memory_need.h"
#include "saker/load/inspect/tensor_check.h"
#include "saker/load/inspect/tensor_headers.h"
#include "saker/load/sources/open_imported.h"
#include "saker/load/sources/open_texts.h"
#include "saker/models/detect.h"
#include "saker/models/model.h"
#include "saker/models/tensor_roster.h"
#include "saker/models/token_table.h"
#include "saker/text/chat_template.h"
#include "saker/text/generation_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

std::string describe_quantization(const nn::QuantizationConfig& quantization) {
  if (!quantization.format) {
    return {};
  }
  const kernels::WeightFormat& format = *quantization.format;
  std::string_view mode = "affine";
  switch (format.kind) {
    case kernels::WeightKind::kMxfp4:
      mode = "mxfp4";
      break;
    case kernels::WeightKind::kNvfp4:
      mode = "nvfp4";
      break;
    case kernels::WeightKind::kMxfp8:
      mode = "mxfp8";
      break;
    default:
      break;
  }
  std::string text = fmt::format("{} bits, groups of {}, {}", format.bits, format.group_size, mode);
  if (!quantization.overrides.empty()) {
    const std::size_t count = quantization.overrides.size();
    text += fmt::format(", but {} module{}", count, count == 1 ? "" : "s");
  }
  return text;
}

// The settings that generate and run take from generation_config.json.
std::string describe_sampling(const Json& config) {
  const auto samples = config.find("do_sample");
  std::string text = samples != config.end() && *samples == true ? "" : "greedy";
  for (const char* name :
       {"temperature",
        "top_k",
        "top_p",
        "min_p",
        "typical_p",
        "repetition_penalty",
        "min_new_tokens"}) {
    if (const auto found = config.find(name); found != config.end() && found->is_number()) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, found->dump());
    }
  }
  if (text.empty()) {
    text = "temperature 1";
  }
  const auto suppressed = config.find("suppress_tokens");
  if (suppressed != config.end() && suppressed->is_array() && !suppressed->empty()) {
    text += fmt::format(", {} tokens suppressed", suppressed->size());
  }
  return text;
}

// Damaged files name none.
bool names_a_template(const text::ModelTexts& texts, std::string_view file) {
  Json config;
  try {
    config = texts.has(file) ? texts.read_json(file) : Json();
  } catch (const Error&) {
    return false;
  }
  const auto found = config.find("chat_template");
  return config.is_object() && found != config.end() && !found->empty() &&
         (found->is_string() || found->is_structured());
}

// Looks where text::ChatTemplate looks.
bool has_chat_template(const text::ModelTexts& texts) {
  return texts.has("chat_template.jinja") || !text::additional_chat_templates(texts).empty() ||
         names_a_template(texts, "chat_template.json") ||
         names_a_template(texts, "tokenizer_config.json");
}

ModelSummary summarise_config(const Json& config) {
  ModelSummary model;
  model.model_type = lenient_string(config, "model_type");
  if (const auto names = config.find("architectures");
      names != config.end() && names->is_array() && !names->empty() && names->front().is_string()) {
    model.architecture = names->front().get<std::string>();
  }
  const auto section = config.find("text_config");
  const Json& text = section != config.end() && section->is_object() ? *section : config;
  if (model.architecture.empty()) {
    model.architecture = model.model_type;  // For GGUF, and for configurations without the list.
  }
  model.layers = lenient_int(text, "num_hidden_layers");
  model.hidden_size = lenient_int(text, "hidden_size");
  model.heads = lenient_int(text, "num_attention_heads");
  model.kv_heads = lenient_int(text, "num_key_value_heads");
  if (model.kv_heads == 0) {
    model.kv_heads = model.heads;
  }
  model.vocab_size = lenient_int(text, "vocab_size");
  model.context_length = lenient_int(text, "max_position_embeddings");
  return model;
}

// Records why loading would fail; only the first reason.
template <typename Check>
void check(Inspection& result, const Check& body) {
  try {
    body();
  } catch (const Error& error) {
    if (result.reason.empty()) {
      result.reason = error.what();
    }
  }
}

void check_runs_alone(const Json& config, std::span<const std::string> tensors) {
  const std::string_view draft = draft_kind(config, tensors);
  require(
      draft.empty(), ErrorCode::kUnsupported, "{}: runs beside its model only, as --draft", draft
  );
}

// Refuses weights in dtypes without arithmetic. Other tensors may have any dtype, as long as
// nothing needs them. `has_table`: the model's table of tokens is looked for elsewhere.
void check_dtypes(const Headers& headers, bool has_table) {
  for (const auto& [name, entry] : headers) {
    has_table = has_table || models::is_token_table_weight(name);
    require(
        !name.ends_with(".weight") || (entry.dtype && entry.dtype != DType::kFloat8E4M3),
        ErrorCode::kUnsupported,
        "tensor {} has dtype {}, which can't be loaded",
        quote(name),
        entry.dtype_name
    );
  }
  require(has_table, ErrorCode::kCorruptData, "[embed_tokens.weight] tensor is missing");
}

struct ModelHeaders {
  Headers headers;
  ModelTensors read;
};

// All tensors that loading takes; records why it would fail.
ModelHeaders read_headers(const fs::path& path, const Json& config, Inspection& result) {
  ModelHeaders all;
  WeightFiles files;
  check(result, [&] { files = find_weight_files(path); });
  for (const fs::path& file : files.paths) {
    add_file(result, all.headers, file);
  }
  if (files.paths.empty()) {
    return all;
  }
  check(result, [&] {
    all.read = read_model_tensors(path);
    check_complete(all.read, config);
  });
  result.warnings = all.read.warnings;
  for (const fs::path& file : files.unlisted) {
    const auto is_taken = [&](const auto& entry) {
      const auto from = all.read.file_of.find(entry.first);
      return from != all.read.file_of.end() && from->second == file;
    };
    if (std::ranges::find(std::views::values(all.read.file_of), file) !=
        std::views::values(all.read.file_of).end()) {
      Headers more;
      add_file(result, more, file);
      std::erase_if(more, std::not_fn(is_taken));
      all.headers.merge(more);
    }
  }
  return all;
}

// The input of the judgement.
struct Evidence {
  const Json& config;  // With a known model type if there is a roster.
  const Headers& headers;
  const std::optional<models::TensorRoster>& roster;
  const Headers& stored;  // As they are in memory.
};

// Checks that all tensors exist in their shapes, and computes the memory that they need.
void judge(Inspection& result, const Evidence& evidence, std::optional<int> kv_bits) {
  const auto& [config, headers, roster, stored] = evidence;
  check(result, [&, &tensors = headers] {
    if (roster) {
      check_tensors(*roster, tensors);
    }
  });
  result.runnable = result.reason.empty();
  if (kv_bits) {
    check(result, [&, &json = config, &tensors = headers] {
      result.caches = model_caches(json, tensors, *kv_bits);
    });
  }
  if (result.runnable && roster) {
    const auto caches = model_caches(config, headers, kv_bits.value_or(kernels::kUnquantizedBits));
    result.memory = memory_need(*roster, stored, caches, *result.model);
  }
  result.runnable = result.reason.empty();
}

}  // namespace

Inspection inspect_model(const fs::path& path, std::optional<int> kv_bits, Weights weights) {
  Inspection result;
  result.kind = PathKind::kModel;
  const ModelDir dir = open_model_dir(path);
  const Json config = read_json_file(*dir.config);
  require(
      config.is_object(),
      ErrorCode::kCorruptData,
      "{}: is {}, expected an object",
      quote_path(*dir.config),
      describe_json(config)
  );
  result.model = summarise_config(config);
  auto [headers, read] = read_headers(path, config, result);
  const importers::PlainConfig plain = importers::without_leftover(config, read);
  if (!plain.warning.empty()) {
    result.warnings.push_back(plain.warning);
  }
  std::optional<importers::ImportedModel> other;
  nn::QuantizationConfig quantization;
  check(result, [&] {
    require(
        weights == Weights::kThere || !importers::is_imported(path),
        ErrorCode::kUnsupported,
        "its weights are quantized by another tool: whether they can be read shows when they are "
        "there"
    );
    other = importers::open_imported(path);
    quantization = parse_quantization(other ? other->config : plain.config);
  });
  result.model->quantization = describe_quantization(quantization);
  const auto generation = text::read_generation_config(path);
  result.model->sampling = describe_sampling(generation.values);
  result.model->has_tokenizer = dir.tokenizer.has_value();
  result.model->has_chat_template = has_chat_template(dir.path);

  const auto of_draft =
      std::erase_if(headers, [](const auto& entry) { return is_of_draft(entry.first); });
  if (of_draft > 0) {
    result.warnings.push_back(fmt::format("{} tensors are a draft's and not counted", of_draft));
  }
  result.metadata.clear();
  add_totals(result, headers);
  if (other) {
    headers = lazy_headers(*other);
    result.warnings = other->notes;
  }
  Json named = other ? other->config : plain.config;
  std::optional<models::TensorRoster> roster;
  const auto keys = std::views::keys(headers);
  const std::vector<std::string> names(keys.begin(), keys.end());
  check(result, [&] {
    check_runs_alone(config, names);
    auto detected = models::detect_architecture(named, names);
    roster = models::tensor_roster(detected.config);
    named = std::move(detected.config);
    if (!detected.warning.empty()) {
      result.warnings.push_back(std::move(detected.warning));
    }
  });
  result.parameters = count_parameters(headers, quantization, roster);
  check(result, [&] { check_dtypes(headers, models::is_encoder(named)); });
  judge(result, {named, headers, roster, headers}, kv_bits);
  std::ranges::copy(generation.warnings, std::back_inserter(result.warnings));
  return result;
}

namespace {

// The file's types, and those of its matrices with codes: "Q4_K (12), Q6_K (2)".
std::string add_types(Inspection& result, const gguf::Header& header) {
  std::map<std::string_view, int> codes;
  result.dtypes.clear();
  for (const gguf::TensorEntry& entry : header.tensors) {
    const std::string_view name = gguf::facts_of(entry.type).name;
    DTypeTotal& total = result.dtypes[std::string(name)];
    total.tensors += 1;
    total.elements += entry.element_count;
    total.bytes += entry.end - entry.begin;
    codes[name] += gguf::plain_dtype(entry.type) ? 0 : 1;
  }
  std::string text;
  for (const auto& [name, count] : codes) {
    if (count > 0) {
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name, count);
    }
  }
  return text;
}

}  // namespace

Inspection inspect_gguf(const fs::path& path, std::optional<int> kv_bits, Weights weights) {
  Inspection result;
  result.kind = PathKind::kModel;
  const auto values = weights == Weights::kThere ? gguf::Values::kThere : gguf::Values::kToCome;
  const importers::ImportedModel model = gguf::open_gguf(path, values);
  result.model = summarise_config(model.config);
  const auto quantization = parse_quantization(model.config);
  const text::ModelTexts texts = texts_of(model, path);
  result.model->sampling = describe_sampling(text::read_generation_config(texts).values);
  result.model->has_tokenizer = texts.has("tokenizer.json");
  result.model->has_chat_template = has_chat_template(texts);
  const gguf::JoinedParts joined = gguf::open_parts(path);
  for (const gguf::Part& part : joined.parts) {
    result.file_bytes += part.bytes.size();
    result.files.push_back(part.mapped->path());
  }
  const Headers headers = lazy_headers(model);
  add_totals(result, headers);
  result.model->quantization = add_types(result, joined.header);
  std::optional<models::TensorRoster> roster;
  check(result, [&] { roster = models::tensor_roster(model.config); });
  result.parameters = count_parameters(headers, quantization, roster);
  // A CPU reads the file's blocks.
  const auto stored = kernels::on_cpu() ? gguf::open_gguf_blocks(path, values).model : model;
  result.warnings = stored.notes;
  judge(result, {model.config, headers, roster, lazy_headers(stored)}, kv_bits);
  return result;
}

}  // namespace saker::load
