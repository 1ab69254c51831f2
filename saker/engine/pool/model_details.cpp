// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/pool/model_details.h"

#include "saker/base/error.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/inspect/inspect.h"
#include "saker/load/sources/open_texts.h"
#include "saker/text/chat_template.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <system_error>

namespace saker::engine {
namespace {

void try_to_read(const ModelDetails& details, const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    spdlog::warn("{}: {}", details.path.string(), error.what());
  }
}

// The dtype of most bytes: "bf16".
std::string main_dtype(const load::Inspection& found) {
  const auto most = std::ranges::max_element(found.dtypes, {}, [](const auto& entry) {
    return entry.second.bytes;
  });
  return most == found.dtypes.end() ? std::string() : most->first;
}

std::int64_t modified_time(const std::filesystem::path& file) {
  struct stat found{};
  return stat(file.c_str(), &found) == 0 ? static_cast<std::int64_t>(found.st_mtime) : 0;
}

void read_files(ModelDetails& details) {
  const load::Inspection found = load::inspect(details.path);
  details.parameters = found.parameters;
  details.file_bytes = found.file_bytes;
  for (const std::filesystem::path& file : found.files) {
    details.modified = std::max(details.modified, modified_time(file));
  }
  if (found.model) {
    details.model_type = found.model->model_type;
    details.context_length = found.model->context_length;
    details.vocab_size = found.model->vocab_size;
    details.hidden_size = found.model->hidden_size;
    details.quantization = found.model->quantization;
  }
  if (details.quantization.empty()) {
    details.quantization = main_dtype(found);
  }
}

void read_texts(ModelDetails& details) {
  const auto chat = text::ChatTemplate::load(load::open_texts(details.path));
  if (chat) {
    details.chat_template = chat->source();
    details.takes_tools = chat->capabilities().takes_tools;
    details.switches_thinking = chat->switches_thinking();
  }
}

}  // namespace

ModelDetails read_model_details(const std::filesystem::path& model) {
  ModelDetails details;
  details.path = load::resolve_model(model.string());
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(details.path, ignored);
  details.format = is_folder ? "safetensors" : "gguf";
  details.embeds = is_folder && std::filesystem::exists(details.path / "modules.json", ignored);
  try_to_read(details, [&] { read_files(details); });
  try_to_read(details, [&] { read_texts(details); });
  return details;
}

}  // namespace saker::engine
