// SPDX-License-Identifier: Apache-2.0
#include "saker/text/tokenizer_config.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

namespace saker::text {
namespace {

constexpr std::array<std::string_view, 7> kNames{
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"
};
// Per file: a broken list of thousands needs only a few lines.
constexpr std::size_t kMaxWarnings = 3;

// Tokens by name, in order of first appearance.
class NamedTokens {
 public:
  void set(const std::string& name, Json token) {
    const auto [found, is_new] = places_.emplace(name, tokens_.size());
    if (is_new) {
      tokens_.emplace_back(name, std::move(token));
    } else {
      tokens_[found->second].second = std::move(token);
    }
  }

  const std::vector<std::pair<std::string, Json>>& list() const { return tokens_; }

 private:
  std::vector<std::pair<std::string, Json>> tokens_;
  std::map<std::string, std::size_t> places_;
};

// The special tokens that files name, and those without names.
struct Special {
  std::map<std::string, Json, std::less<>> standard;  // Null: none, whatever the class says.
  NamedTokens described;  // Other names with flags or in special_tokens_map.json; they come first.
  NamedTokens plain;      // The remaining other names.
  std::vector<Json> extra;
};

class Warnings {
 public:
  explicit Warnings(std::vector<std::string>& lines) : lines_(lines) {}

  // `file` is the name for messages.
  void add(
      const std::string& file, std::string_view key, const Json& got, std::string_view expected
  ) {
    if (++count_[file] <= kMaxWarnings) {
      add(fmt::format(
          "{}: {}: got {}, expected {}: left out", file, key, describe_json(got), expected
      ));
    }
  }

  void add(std::string line) { lines_.push_back(std::move(line)); }

  void finish() {
    for (const auto& [file, count] : count_) {
      if (count > kMaxWarnings) {
        add(fmt::format("{}: {} more like these", file, count - kMaxWarnings));
      }
    }
  }

 private:
  std::vector<std::string>& lines_;
  std::map<std::string, std::size_t> count_;
};

bool is_standard(std::string_view name) {
  return std::ranges::find(kNames, name) != kNames.end();
}

// A token in Tokenizer's form, from its text or from an object that describes it; null for others.
Json token_of(const Json& value) {
  if (value.is_string()) {
    return {{"content", value}, {"plain", true}};
  }
  const auto content = value.is_object() ? value.find("content") : value.end();
  if (content == value.end() || !content->is_string()) {
    return nullptr;
  }
  Json token = {{"content", *content}};
  for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized", "special"}) {
    if (const auto found = value.find(flag); found != value.end() && !found->is_null()) {
      if (!found->is_boolean()) {
        return nullptr;
      }
      token[flag] = *found;
    }
  }
  return token;
}

// transformers marks the tokens that it writes as AddedToken. Other objects come from older
// programs, which had only special tokens here.
Json special_of(const Json& value) {
  Json token = token_of(value);
  if (token.is_object() && value.is_object()) {
    const bool is_typed = value.contains("__type");
    token[is_typed ? "typed" : "special"] = true;
  }
  return token;
}

std::optional<std::int64_t> id_of(std::string_view text) {
  std::int64_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool is_id = error == std::errc() && end == text.data() + text.size() && id >= 0 &&
                     id <= std::numeric_limits<std::int32_t>::max();
  return is_id ? std::optional(id) : std::nullopt;
}

class ConfigReader {
 public:
  explicit ConfigReader(const ModelTexts& texts) : texts_(texts), warnings_(config_.warnings) {}

  TokenizerConfig read() {
    const Json json = open("tokenizer_config.json", config_.damage);
    const TokenizerClass& kind = tokenizer_class(texts_, json);
    config_.kind = &kind;
    collect(json);
    if (const auto listed = json.find("added_tokens_decoder");
        listed != json.end() && !listed->is_null()) {
      list(*listed);
    } else {
      with_own_ = true;
      collect_map();
      list_added();
    }
    apply(kind);
    build(kind, json);
    read_settings(json);
    warnings_.finish();
    return std::move(config_);
  }

 private:
  // An empty object if the file is missing. `damage` gets the error, if any.
  Json open(std::string_view file, std::string& damage) {
    if (!texts_.has(file)) {
      return Json::object();
    }
    try {
      Json json = texts_.read_json(file);
      require(
          json.is_object(),
          ErrorCode::kCorruptData,
          "{}: got {}, expected an object",
          texts_.shown(file),
          describe_json(json)
      );
      return json;
    } catch (const Error& error) {
      damage = error.what();
      warnings_.add(damage + ": left out");
    }
    return Json::object();
  }

  void name_all(const Json& object, const std::string& file) {
    for (const auto& [key, value] : object.items()) {
      Json token = special_of(value);
      if (token.is_null()) {
        warnings_.add(file, key, value, "a token");
      } else {
        special_.plain.set(key, std::move(token));
      }
    }
  }

  // Takes one of the lists without names: a list, or an object that does give names.
  void take_list(std::string_view key, const Json& value, const std::string& file) {
    if (value.is_object()) {
      name_all(value, file);
      return;
    }
    if (!value.is_array()) {
      warnings_.add(file, key, value, "a list of tokens");
      return;
    }
    for (const Json& item : value) {
      Json token = special_of(item);
      if (token.is_null()) {
        warnings_.add(file, key, item, "a token");
      } else {
        special_.extra.push_back(std::move(token));
      }
    }
  }

  // Takes tokenizer_config.json.
  void collect(const Json& json) {
    const std::string file = texts_.shown("tokenizer_config.json");
    for (const auto& [key, value] : json.items()) {
      if (!key.ends_with("_token") || value.is_boolean()) {
        continue;
      }
      Json token = special_of(value);
      if (is_standard(key) && (value.is_null() || !token.is_null())) {
        special_.standard[key] = std::move(token);
      } else if (is_standard(key)) {
        warnings_.add(file, key, value, "a token");
      } else if (!token.is_null()) {
        (value.is_string() ? special_.plain : special_.described).set(key, std::move(token));
      }
    }
    const auto extra = json.find("extra_special_tokens");
    const auto older = json.find("additional_special_tokens");
    const bool has_extra = extra != json.end() && !extra->is_null() && !extra->empty();
    if (has_extra) {
      take_list(extra.key(), *extra, file);
    }
    if (older != json.end() && !older->is_null() && (!has_extra || extra->is_object())) {
      take_list(older.key(), *older, file);
    }
    has_list_ = (extra != json.end() && !extra->is_object()) || older != json.end();
  }

  // Takes special_tokens_map.json, whose values win.
  void collect_map() {
    std::string damage;
    const Json json = open("special_tokens_map.json", damage);
    const std::string file = texts_.shown("special_tokens_map.json");
    for (const auto& [key, value] : json.items()) {
      Json token = special_of(value);
      if (!key.ends_with("_token") || (token.is_null() && !value.is_null())) {
        if (is_standard(key)) {
          warnings_.add(file, key, value, "a token");
        }
        continue;
      }
      if (is_standard(key)) {
        special_.standard[key] = std::move(token);
      } else if (!token.is_null()) {
        special_.described.set(key, std::move(token));
      }
    }
    listed_extra_ = special_.extra.size();
    const auto extra = json.find("extra_special_tokens");
    if (extra != json.end() && !extra->is_null()) {
      take_list(extra.key(), *extra, file);
      listed_extra_ = special_.extra.size();
      has_list_ = has_list_ || extra->is_array();
    }
    const auto older = json.find("additional_special_tokens");
    if (older != json.end() && !older->is_null() && !has_list_) {
      take_list(older.key(), *older, file);  // Too late for added_tokens.json.
    }
  }

  void list(const Json& decoder) {
    const std::string file = texts_.shown("tokenizer_config.json");
    if (!decoder.is_object()) {
      warnings_.add(file, "added_tokens_decoder", decoder, "an object");
      with_own_ = true;
      return;
    }
    for (const auto& [key, value] : decoder.items()) {
      const auto id = id_of(key);
      Json token = value.is_object() ? token_of(value) : Json();
      if (!id) {
        warnings_.add(file, "added_tokens_decoder", key, "a token id");
      } else if (token.is_null()) {
        warnings_.add(file, "added_tokens_decoder." + key, value, "a token with its flags");
      } else {
        listed_.push_back(Json::array({*id, std::move(token)}));
      }
    }
  }

  // Takes added_tokens.json: texts and ids.
  void list_added() {
    std::string damage;
    const Json json = open("added_tokens.json", damage);
    std::set<std::string> special;
    const auto count = [&](const Json& token) {
      if (!token.is_null() && !token.contains("typed")) {
        special.insert(token.at("content").get<std::string>());
      }
    };
    for (const auto& [name, token] : special_.standard) {
      count(token);
    }
    for (std::size_t i = 0; i < listed_extra_; ++i) {
      count(special_.extra[i]);
    }
    for (const auto& [text, id] : json.items()) {
      if (!id.is_number_integer() || !id_of(id.dump())) {
        warnings_.add(texts_.shown("added_tokens.json"), quote(text), id, "a token id");
        continue;
      }
      const bool is_special = special.contains(text);
      listed_.push_back(Json::array(
          {id, Json({{"content", text}, {"special", is_special}, {"normalized", !is_special}})}
      ));
    }
  }

  void apply(const TokenizerClass& kind) {
    for (const auto& [name, text] : kind.defaults) {
      special_.standard.try_emplace(std::string(name), Json({{"content", text}, {"plain", true}}));
    }
  }

  void build(const TokenizerClass& kind, const Json& json) {
    Json named = Json::array();
    for (const std::string_view name : kNames) {
      const auto found = special_.standard.find(name);
      if (found != special_.standard.end() && !found->second.is_null()) {
        named.push_back(found->second);
        config_.special_tokens[found->first] = found->second.at("content");
      }
    }
    NamedTokens others = special_.described;
    for (const auto& [name, token] : special_.plain.list()) {
      others.set(name, token);
    }
    for (const auto& [name, token] : others.list()) {
      named.push_back(token);
      config_.special_tokens[name] = token.at("content");
    }
    config_.added_tokens = {
        {"listed", std::move(listed_)},
        {"with_own", with_own_},
        {"only_listed", kind.builds_anew},
        {"named", std::move(named)},
        {"extra", std::move(special_.extra)},
        {"plain_specials", kind.plain_specials},
        {"split_special_tokens", boolean(json, "split_special_tokens")},
    };
    if (kind.sets_prefix_space && json_has(json, "add_prefix_space")) {
      config_.added_tokens["add_prefix_space"] = boolean(json, "add_prefix_space");
    }
  }

  bool boolean(const Json& json, const char* key) {
    const auto found = json.find(key);
    if (found == json.end() || found->is_null() || found->is_boolean()) {
      return found != json.end() && found->is_boolean() && found->get<bool>();
    }
    warnings_.add(texts_.shown("tokenizer_config.json"), key, *found, "true or false");
    return false;
  }

  void read_settings(const Json& json) {
    config_.add_bos_token = boolean(json, "add_bos_token");
    config_.add_eos_token = boolean(json, "add_eos_token");
    if (const auto found = json.find("chat_template"); found != json.end()) {
      config_.chat_template = *found;
    }
    if (const auto found = json.find("response_template"); found != json.end()) {
      config_.response_template = *found;
    }
  }

  const ModelTexts& texts_;
  TokenizerConfig config_;
  Warnings warnings_;
  Special special_;
  std::vector<Json> listed_;  // Pairs of id and token.
  bool with_own_ = false;
  bool has_list_ = false;         // A list of special tokens without names.
  std::size_t listed_extra_ = 0;  // Listed tokens that are special in added_tokens.json.
};

}  // namespace

std::optional<std::string> TokenizerConfig::special_token(const std::string& name) const {
  const auto found = special_tokens.find(name);
  return found == special_tokens.end() ? std::nullopt : std::optional(found->second);
}

TokenizerConfig load_tokenizer_config(const ModelTexts& texts) {
  return ConfigReader(texts).read();
}

}  // namespace saker::text
