// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/modelfile.h"

#include "saker/base/characters/letter_case.h"
#include "saker/base/error.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"
#include "saker/load/files/model_dir.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <system_error>
#include <utility>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSpace = " \t\r";
constexpr std::string_view kTriple = "\"\"\"";
// Instructions for Ollama's server, about reading prompts and answers; here the chat template
// decides.
constexpr std::array<std::string_view, 3> kOfServers{"PARSER", "RENDERER", "REQUIRES"};
constexpr std::array<std::string_view, 3> kRoles{"system", "user", "assistant"};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view what) : rest_(text), what_(what) {}

  Modelfile run() {
    while (!rest_.empty()) {
      const auto line = trimmed(next_line());
      if (!line.empty() && line.front() != '#') {
        take(line);
      }
    }
    require(
        !result_.from.empty(), ErrorCode::kCorruptData, "{}: has no FROM that names a model", what_
    );
    return std::move(result_);
  }

 private:
  std::string_view next_line() {
    const auto end = rest_.find('\n');
    auto line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    line_number_ += 1;
    return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
  }

  // The first word, and the text behind it.
  static std::pair<std::string_view, std::string_view> split(std::string_view line) {
    const auto space = line.find_first_of(kSpace);
    return {
        line.substr(0, space),
        space == std::string_view::npos ? std::string_view() : trimmed(line.substr(space))
    };
  }

  void take(std::string_view line) {
    const auto [word, value] = split(line);
    const std::string name = ascii_upper(word);
    if (name == "FROM") {
      set(result_.from, name, value);
    } else if (name == "DRAFT") {
      set(result_.draft, name, value);
    } else if (name == "ADAPTER") {
      set(result_.adapter, name, value);
    } else if (name == "PARAMETER") {
      take_parameter(value);
    } else if (name == "MESSAGE") {
      take_message(value);
    } else if (name == "SYSTEM") {
      result_.system = text_value(value);
    } else if (name == "TEMPLATE") {
      result_.chat_template = text_value(value);
    } else if (name == "LICENSE") {
      result_.licenses.push_back(text_value(value));
    } else {
      require(
          std::ranges::find(kOfServers, std::string_view(name)) != kOfServers.end(),
          ErrorCode::kCorruptData,
          "{}: {} is no instruction of a Modelfile",
          where(),
          quote(name)
      );
    }
    if (std::ranges::find(result_.instructions, name) == result_.instructions.end()) {
      result_.instructions.push_back(name);
    }
  }

  void set(std::string& member, std::string_view name, std::string_view value) const {
    value = unquoted(value);
    require(!value.empty(), ErrorCode::kCorruptData, "{}: {} names nothing", where(), name);
    require(member.empty(), ErrorCode::kCorruptData, "{}: a second {}", where(), name);
    member = value;
  }

  static std::string_view unquoted(std::string_view value) {
    return value.size() >= 2 && value.front() == '"' && value.back() == '"'
               ? value.substr(1, value.size() - 2)
               : value;
  }

  void take_parameter(std::string_view text) {
    const auto [name, value] = split(text);
    require(
        !name.empty() && !value.empty(),
        ErrorCode::kCorruptData,
        "{}: PARAMETER, expected a name and a value",
        where()
    );
    std::string read =
        value.starts_with(kTriple) ? text_value(value) : std::string(unquoted(value));
    result_.parameters.push_back({std::string(name), std::move(read)});
  }

  void take_message(std::string_view text) {
    const auto [role, content] = split(text);
    require(
        std::ranges::find(kRoles, role) != kRoles.end(),
        ErrorCode::kCorruptData,
        "{}: MESSAGE {}, expected system, user or assistant",
        where(),
        quote(role)
    );
    result_.messages.push_back({std::string(role), text_value(content)});
  }

  // A text; if it begins with quotes it ends at the closing ones, maybe lines later.
  std::string text_value(std::string_view first) {
    const std::string_view quotes = first.starts_with(kTriple) ? kTriple
                                    : first.starts_with('"')   ? kTriple.substr(0, 1)
                                                               : std::string_view();
    if (quotes.empty()) {
      return std::string(first);
    }
    const std::string begun = where();
    std::string text(first);
    while (true) {
      const auto last = text.find_last_not_of(kSpace) + 1;
      if (last >= 2 * quotes.size() && std::string_view(text).substr(0, last).ends_with(quotes)) {
        return text.substr(quotes.size(), last - 2 * quotes.size());
      }
      require(
          !rest_.empty(), ErrorCode::kCorruptData, "{}: the text has no closing {}", begun, quotes
      );
      text += '\n';
      text += next_line();
    }
  }

  std::string where() const { return fmt::format("{}, line {}", what_, line_number_); }

  std::string_view rest_;
  std::string_view what_;
  std::size_t line_number_ = 0;
  Modelfile result_;
};

}  // namespace

Modelfile parse_modelfile(std::string_view text, std::string_view what) {
  return Parser(text, what).run();
}

fs::path find_named(const std::string& name, const fs::path& beside) {
  std::error_code ignored;
  const fs::path near = beside / name;
  if (name.find('\0') == std::string::npos &&
      (fs::is_directory(near, ignored) ||
       (name.ends_with(".gguf") && fs::is_regular_file(near, ignored)))) {
    return near;
  }
  return resolve_model(name);
}

ModelfileFolders read_modelfile(const fs::path& path) {
  const std::string text = read_file(path, kMaxModelfileBytes);
  Modelfile parsed = parse_modelfile(text, quote_path(path));
  require(
      parsed.adapter.empty(),
      ErrorCode::kUnsupported,
      "{}: ADAPTER is not taken from here; convert --adapter DIR --fuse writes a model with one",
      quote_path(path)
  );
  const fs::path beside = path.parent_path();
  std::erase_if(parsed.instructions, [](const std::string& name) {
    return name == "FROM" || name == "DRAFT";
  });
  return {
      .from = find_named(parsed.from, beside),
      .draft = parsed.draft.empty() ? fs::path() : find_named(parsed.draft, beside),
      .ignored = std::move(parsed.instructions),
  };
}

}  // namespace saker::load
