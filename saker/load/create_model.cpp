// SPDX-License-Identifier: Apache-2.0
#include "saker/load/create_model.h"

#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/utf8.h"
#include "saker/load/files/model_dir.h"
#include "saker/text/chat_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

// Maximum files of one folder; checkpoints have hundreds.
constexpr std::size_t kMaxFiles = 10'000;
// Subfolders that belong to a model.
constexpr std::array<std::string_view, 4> kFolders{
    "adapter", "additional_chat_templates", "draft", "drafter"
};

// Resolves links: files of the hub's cache are links to blobs.
void link_file(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  const fs::path file = fs::canonical(from, failed);
  if (!failed) {
    fs::create_hard_link(file, to, failed);
  }
  if (failed) {
    failed.clear();
    fs::copy_file(from, to, failed);
  }
  require(
      !failed, ErrorCode::kCapacity, "{}: cannot be copied: {}", quote_path(from), failed.message()
  );
}

// Regular files only, except hidden ones.
void link_files(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::create_directories(to, failed);
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(from, failed)) {
    std::error_code unknown;
    if (entry.path().filename().native().starts_with('.') || !entry.is_regular_file(unknown)) {
      continue;
    }
    require(
        ++count <= kMaxFiles,
        ErrorCode::kCapacity,
        "{}: more than {} files, expected a model folder",
        quote_path(from),
        kMaxFiles
    );
    link_file(entry.path(), to / entry.path().filename());
  }
  require(
      !failed, ErrorCode::kNotFound, "{}: cannot be read: {}", quote_path(from), failed.message()
  );
}

void link_model(const fs::path& from, const fs::path& to) {
  config_of(open_model_dir(from));
  link_files(from, to);
  for (const std::string_view name : kFolders) {
    std::error_code ignored;
    if (fs::is_directory(from / name, ignored)) {
      link_files(from / name, to / name);
    }
  }
}

void write_text(const fs::path& path, std::string_view text) {
  AtomicFile file(path);  // Replaces a link without touching its target.
  file.write(text);
  file.commit();
}

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// True if the text is a Go template: fields begin with a dot, and statements stand where Jinja has
// expressions.
bool is_go_template(std::string_view text) {
  for (auto at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at + 2)) {
    auto rest = text.substr(at + 2);
    rest.remove_prefix(rest.starts_with('-') ? 1 : 0);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    const auto end = std::ranges::find_if_not(rest, is_word_character);
    const std::string_view word = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    if (rest.starts_with('.') || rest.starts_with('$') || word == "if" || word == "range" ||
        word == "with" || word == "else" || word == "end") {
      return true;
    }
  }
  return false;
}

void set_template(const fs::path& folder, const std::string& text, CreateReport& report) {
  if (is_go_template(text)) {
    require(
        text::ChatTemplate::load(folder).has_value(),
        ErrorCode::kUnsupported,
        "TEMPLATE: got one of Go's templates, expected Jinja, since the model has no chat template "
        "of its own"
    );
    report.warnings.emplace_back(
        "TEMPLATE is one of Go's templates: the model's own chat template is used instead"
    );
    return;
  }
  try {
    text::ChatTemplate(text).render({{{"role", "user"}, {"content", "question"}}});
  } catch (const Error& error) {
    // An error that the template raises may be about this conversation only.
    require(
        error.code() != ErrorCode::kCorruptData,
        ErrorCode::kCorruptData,
        "TEMPLATE: {}",
        error.what()
    );
  }
  std::error_code ignored;
  fs::remove_all(folder / "additional_chat_templates", ignored);
  write_text(folder / "chat_template.jinja", text);
}

void take_adapter(const fs::path& from, const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder / "adapter", ignored);
  if (fs::is_directory(from, ignored)) {
    link_files(from, folder / "adapter");
    return;
  }
  fs::create_directories(folder / "adapter", ignored);
  link_file(from, folder / "adapter" / "adapter.gguf");
}

ModelSettings merged(ModelSettings settings, const CreatePlan& plan) {
  const Modelfile& file = plan.file;
  settings.from = file.from;
  settings.system = file.system.value_or(settings.system);
  settings.options.update(plan.options);
  settings.has_adapter = settings.has_adapter || !plan.adapter.empty();
  if (!file.messages.empty()) {
    settings.messages = Json::array();
    for (const Modelfile::Message& message : file.messages) {
      settings.messages.push_back({{"role", message.role}, {"content", message.content}});
    }
  }
  return settings;
}

}  // namespace

CreateReport create_model(const CreatePlan& plan) {
  const fs::path from = find_named(plan.file.from, plan.beside);
  ConvertOptions convert = plan.convert;
  if (!plan.file.draft.empty()) {
    convert.draft = find_named(plan.file.draft, plan.beside);
  }
  CreateReport report;
  const NewModel model;
  const fs::path folder = model.path();
  std::error_code ignored;
  if (convert.quantize || convert.dequantize || convert.dtype || !convert.draft.empty() ||
      !fs::is_directory(from, ignored)) {
    report.warnings = convert_model(from, folder, convert).warnings;
    if (fs::is_directory(from / "adapter", ignored)) {
      link_files(from / "adapter", folder / "adapter");
    }
  } else {
    link_model(from, folder);
  }
  if (!plan.adapter.empty()) {
    take_adapter(plan.adapter, folder);
  }
  if (plan.file.chat_template) {
    set_template(folder, *plan.file.chat_template, report);
  }
  if (!plan.file.licenses.empty()) {
    write_text(folder / "LICENSE", fmt::format("{}\n", fmt::join(plan.file.licenses, "\n\n")));
  }
  write_settings(folder, merged(read_settings(from), plan));
  report.path = model.place(plan.name);
  return report;
}

}  // namespace saker::load
