// SPDX-License-Identifier: Apache-2.0
#include "saker/load/foreign/modelfile.h"

#include "saker/base/error.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"
#include "saker/load/model_dir.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <system_error>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSpace = " \t\r";
constexpr std::string_view kTriple = "\"\"\"";
constexpr std::array<std::string_view, 8> kIgnored{
    "LICENSE", "MESSAGE", "PARAMETER", "PARSER", "RENDERER", "REQUIRES", "SYSTEM", "TEMPLATE"
};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return result;
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
    const auto line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    line_number_ += 1;
    return line;
  }

  void take(std::string_view line) {
    const auto space = line.find_first_of(kSpace);
    const std::string name = upper(line.substr(0, space));
    const auto value =
        space == std::string_view::npos ? std::string_view() : trimmed(line.substr(space));
    if (name == "FROM") {
      set(result_.from, name, value);
    } else if (name == "DRAFT") {
      set(result_.draft, name, value);
    } else {
      ignore(name, value);
    }
  }

  void set(std::string& member, std::string_view name, std::string_view value) const {
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    require(!value.empty(), ErrorCode::kCorruptData, "{}: {} names nothing", where(), name);
    require(member.empty(), ErrorCode::kCorruptData, "{}: a second {}", where(), name);
    member = value;
  }

  void ignore(const std::string& name, std::string_view value) {
    require(
        name != "ADAPTER",
        ErrorCode::kUnsupported,
        "{}: ADAPTER is not taken from here; convert --adapter DIR --fuse writes a model with one",
        where()
    );
    require(
        std::ranges::find(kIgnored, std::string_view(name)) != kIgnored.end(),
        ErrorCode::kCorruptData,
        "{}: {} is no instruction of a Modelfile",
        where(),
        quote(name)
    );
    if (std::ranges::find(result_.ignored, name) == result_.ignored.end()) {
      result_.ignored.push_back(name);
    }
    skip_text(value);
  }

  // The lines of a text that opens in `value` and does not close there.
  void skip_text(std::string_view value) {
    const auto open = value.find(kTriple);
    if (open == std::string_view::npos ||
        value.find(kTriple, open + kTriple.size()) != std::string_view::npos) {
      return;
    }
    const std::string begun = where();
    while (!rest_.empty()) {
      if (next_line().find(kTriple) != std::string_view::npos) {
        return;
      }
    }
    throw Error(ErrorCode::kCorruptData, fmt::format("{}: the text has no closing \"\"\"", begun));
  }

  std::string where() const { return fmt::format("{}, line {}", what_, line_number_); }

  std::string_view rest_;
  std::string_view what_;
  std::size_t line_number_ = 0;
  Modelfile result_;
};

fs::path find_model(const std::string& name, const fs::path& beside) {
  std::error_code ignored;
  const fs::path near = beside / name;
  if (name.find('\0') == std::string::npos &&
      (fs::is_directory(near, ignored) ||
       (name.ends_with(".gguf") && fs::is_regular_file(near, ignored)))) {
    return near;
  }
  return resolve_model(name);
}

}  // namespace

Modelfile parse_modelfile(std::string_view text, std::string_view what) {
  return Parser(text, what).run();
}

ModelfileFolders read_modelfile(const fs::path& path) {
  const std::string text = read_file(path, kMaxModelfileBytes);
  Modelfile parsed = parse_modelfile(text, quote_path(path));
  const fs::path beside = path.parent_path();
  return {
      .from = find_model(parsed.from, beside),
      .draft = parsed.draft.empty() ? fs::path() : find_model(parsed.draft, beside),
      .ignored = std::move(parsed.ignored),
  };
}

}  // namespace saker::load
