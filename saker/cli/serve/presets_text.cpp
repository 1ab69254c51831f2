// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/serve/presets_text.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/io/output.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

using Lines = std::map<std::string, std::size_t, std::less<>>;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 20;

std::string below(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

std::string below(const std::string& path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

// Characters of a text; counts the lines that were read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* line) : at_(at), line_(line) {}

  reference operator*() const { return *at_; }

  CountingIterator& operator++() {
    *line_ += *at_ == '\n' ? 1 : 0;
    ++at_;
    return *this;
  }

  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }

  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* line_;
};

// Notes the line of each key and of each item of a JSON text.
class JsonLines : public nlohmann::json_sax<Json> {
 public:
  JsonLines(const std::size_t& line, Lines& lines) : line_(line), lines_(lines) {}

  bool null() override { return item(); }

  bool boolean(bool /*value*/) override { return item(); }

  bool number_integer(number_integer_t /*value*/) override { return item(); }

  bool number_unsigned(number_unsigned_t /*value*/) override { return item(); }

  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return item(); }

  bool string(string_t& /*value*/) override { return item(); }

  bool binary(binary_t& /*value*/) override { return item(); }

  bool start_object(std::size_t /*size*/) override { return open(false); }

  bool start_array(std::size_t /*size*/) override { return open(true); }

  bool end_object() override { return close(); }

  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    next_ = below(open_.back().path, name);
    lines_.emplace(next_, line_);
    return true;
  }

  bool parse_error(
      std::size_t /*at*/, const std::string& /*token*/, const Json::exception& /*error*/
  ) override {
    return false;
  }

 private:
  struct Open {
    std::string path;
    bool is_list;
    std::size_t items;
  };

  bool item() {
    if (!open_.empty() && open_.back().is_list) {
      Open& list = open_.back();
      next_ = below(list.path, list.items++);
      lines_.emplace(next_, line_);
    }
    return true;
  }

  bool open(bool is_list) {
    item();
    open_.push_back({next_, is_list, 0});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::size_t& line_;
  Lines& lines_;
  std::string next_;  // The value's path.
  std::vector<Open> open_;
};

// A TOML text as JSON, with the lines of its members.
class TomlReader {
 public:
  TomlReader(const std::string& name, Lines& lines) : name_(name), lines_(lines) {}

  Json read(std::string_view text) {
    try {
      const toml::table table = toml::parse(text);
      return object(table, "");
    } catch (const toml::parse_error& error) {
      fail(error.source().begin, error.description());
    }
  }

 private:
  [[noreturn]] void fail(const toml::source_position& at, std::string_view what) const {
    throw Error(
        ErrorCode::kCorruptData, fmt::format("{}:{}:{}: {}", name_, at.line, at.column, what)
    );
  }

  // Tables are sorted by name; the first model is the one of requests without a name.
  Json object(const toml::table& table, const std::string& path) {
    std::vector<std::pair<const toml::key*, const toml::node*>> members;
    for (const auto& [key, node] : table) {
      members.emplace_back(&key, &node);
    }
    std::ranges::sort(members, {}, [](const auto& member) {
      const toml::source_position& at = member.first->source().begin;
      return std::tuple(at.line, at.column);
    });
    Json result = Json::object();
    for (const auto& [key, node] : members) {
      const std::string member = below(path, key->str());
      lines_.emplace(member, key->source().begin.line);
      result[std::string(key->str())] = value(*node, member);
    }
    return result;
  }

  Json value(const toml::node& node, const std::string& path) {
    if (const toml::table* table = node.as_table()) {
      return object(*table, path);
    }
    if (const toml::array* list = node.as_array()) {
      Json items = Json::array();
      for (const toml::node& item : *list) {
        const std::string member = below(path, items.size());
        lines_.emplace(member, item.source().begin.line);
        items.push_back(value(item, member));
      }
      return items;
    }
    if (const auto text = node.value_exact<std::string>()) {
      return *text;
    }
    if (const auto flag = node.value_exact<bool>()) {
      return *flag;
    }
    if (const auto whole = node.value_exact<std::int64_t>()) {
      return *whole;
    }
    if (const auto number = node.value_exact<double>()) {
      return *number;
    }
    fail(node.source().begin, path + ": expected a text, a number, true, false, a list or a table");
  }

  const std::string& name_;
  Lines& lines_;
};

}  // namespace

PresetsText::PresetsText(const std::filesystem::path& file) : name_(quote_path(file)) {
  std::error_code failed;
  require(
      std::filesystem::file_size(file, failed) <= kMostBytes || failed,
      ErrorCode::kCorruptData,
      "{}: larger than the {} bytes that presets may have",
      name_,
      kMostBytes
  );
  const std::string text = read_text(file);
  if (file.extension() == ".toml") {
    json_ = TomlReader(name_, lines_).read(text);
    return;
  }
  json_ = parse_json(text, name_, RepeatedKeys::kRefuse);
  std::size_t line = 1;
  JsonLines reader(line, lines_);
  const char* end = text.data() + text.size();
  Json::sax_parse(CountingIterator(text.data(), &line), CountingIterator(end, &line), &reader);
}

std::string PresetsText::located(std::string_view member, std::string_view message) const {
  std::string_view path = member;
  auto found = lines_.find(path);
  while (found == lines_.end() && !path.empty()) {
    const std::size_t end = path.find_last_of(".[");
    path = path.substr(0, end == std::string_view::npos ? 0 : end);
    found = lines_.find(path);
  }
  return found == lines_.end() ? fmt::format("{}: {}", name_, message)
                               : fmt::format("{}:{}: {}", name_, found->second, message);
}

}  // namespace saker::cli
