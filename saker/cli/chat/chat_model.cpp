// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/chat_model.h"

#include "saker/base/characters/printable.h"
#include "saker/base/error.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/inspect/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace saker::cli {
namespace {

// Reads headers only. Empty if inspection fails, since the model has loaded anyway.
std::optional<load::Inspection> look_at(const std::filesystem::path& path) {
  try {
    return load::inspect(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string name_of(const engine::ModelFacts& facts) {
  if (!facts.requested.empty()) {
    const std::filesystem::path requested(facts.requested);
    const bool is_path = requested.is_absolute() || facts.requested.ends_with(".gguf");
    return printable_line(is_path ? facts.path.filename().string() : facts.requested);
  }
  return "the bundled demo model";
}

std::string count_text(std::int64_t parameters) {
  constexpr double kMillion = 1e6;
  const auto millions = static_cast<double>(parameters) / kMillion;
  return millions < 1000 ? fmt::format("{:.0f}M parameters", millions)
                         : fmt::format("{:.1f}B parameters", millions / 1000);
}

std::string size_text(std::uintmax_t bytes) {
  const auto megabytes = static_cast<double>(bytes) / 1e6;
  return megabytes < 1000 ? fmt::format("{:.0f} MB", megabytes)
                          : fmt::format("{:.1f} GB", megabytes / 1000);
}

std::string context_text(std::int64_t context) {
  return context > 0 ? fmt::format("context {}", context) : "no limit of context";
}

}  // namespace

std::string describe_sampling(const sample::SamplingOptions& options) {
  const sample::SamplingOptions none;
  std::vector<std::string> parts;
  const auto add = [&](std::string_view name, auto value, auto off) {
    if (value != off) {
      parts.push_back(fmt::format("{} {}", name, value));
    }
  };
  if (options.temperature > 0.0) {
    parts.push_back(fmt::format("temperature {}", options.temperature));
    add("top_p", options.top_p, none.top_p);
    add("top_k", options.top_k, none.top_k);
    add("min_p", options.min_p, none.min_p);
    add("typical_p", options.typical_p, none.typical_p);
    add("top_n_sigma", options.top_n_sigma, none.top_n_sigma);
    add("xtc_probability", options.xtc_probability, none.xtc_probability);
    add("dynatemp_range", options.dynatemp_range, none.dynatemp_range);
  } else {
    parts.emplace_back("greedy");
  }
  add("repetition_penalty", options.repetition_penalty, none.repetition_penalty);
  add("presence_penalty", options.presence_penalty, none.presence_penalty);
  add("frequency_penalty", options.frequency_penalty, none.frequency_penalty);
  add("dry_multiplier", options.dry_multiplier, none.dry_multiplier);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string banner(const ChatModel& model) {
  const engine::ModelFacts& facts = model.engine->facts();
  std::vector<std::string> parts{name_of(facts), facts.model_type};
  if (const auto seen = look_at(facts.path); seen && seen->model) {
    if (seen->parameters > 0) {
      parts.push_back(count_text(seen->parameters));
    }
    parts.push_back(size_text(seen->file_bytes));
    const std::string& quantization = seen->model->quantization;
    parts.push_back(quantization.empty() ? "not quantized" : printable_line(quantization));
  }
  parts.push_back(context_text(facts.context_length));
  std::string line = fmt::format("{}\n", fmt::join(parts, " · "));
  line += fmt::format(
      "sampling: {}; draft: {}\n", describe_sampling(model.defaults.sampling), facts.drafter
  );
  return line;
}

std::string model_facts(const ChatModel& model) {
  const engine::ModelFacts& facts = model.engine->facts();
  std::string text;
  const auto add = [&text](std::string_view name, const std::string& value) {
    if (!value.empty()) {
      text += fmt::format("  {:<13} {}\n", name, printable_line(value));
    }
  };
  add("model", name_of(facts));
  add("path", facts.path.string());
  add("architecture", facts.model_type);
  if (const auto seen = look_at(facts.path); seen && seen->model) {
    add("size", fmt::format("{}, {}", count_text(seen->parameters), size_text(seen->file_bytes)));
    const std::string& quantization = seen->model->quantization;
    add("quantization", quantization.empty() ? "none" : quantization);
  }
  add("context", facts.context_length > 0 ? fmt::format("{} tokens", facts.context_length) : "");
  add("draft", facts.drafter);
  return text;
}

}  // namespace saker::cli
