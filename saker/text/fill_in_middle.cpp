// SPDX-License-Identifier: Apache-2.0
#include "saker/text/fill_in_middle.h"

#include <algorithm>
#include <array>
#include <span>

namespace saker::text {
namespace {

// The tokens of a family of models, in the order in which the prompt has them.
struct MiddleTokens {
  std::string_view before;
  std::string_view after;
  std::string_view middle;  // Empty: the answer follows at once.
  bool begins_with_after = false;
};

constexpr std::array<MiddleTokens, 6> kFamilies{{
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},        // Qwen, CodeGemma, Granite
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},              // StarCoder
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},              // SantaCoder
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},        // DeepSeek
    {"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", true},  // Seed-Coder
    {"[PREFIX]", "[SUFFIX]", "", true},                            // Codestral
}};

// Tokens before a repository's name and before each of its files.
struct FileTokens {
  std::string_view repository;
  std::string_view file;
};

constexpr std::array<FileTokens, 2> kFileTokens{{
    {"<|repo_name|>", "<|file_sep|>"},  // Qwen
    {"<repo_name>", "<file_sep>"},      // StarCoder
}};

void add_token(MarkedText& prompt, const Tokenizer& tokenizer, std::string_view name) {
  if (!name.empty()) {
    prompt.add_token(name, *tokenizer.token_id(name));
  }
}

void add_files(MarkedText& prompt, const Tokenizer& tokenizer, std::span<const FileText> files) {
  if (files.empty()) {
    return;
  }
  const auto* const found = std::ranges::find_if(kFileTokens, [&](const FileTokens& tokens) {
    return tokenizer.token_id(tokens.repository).has_value() &&
           tokenizer.token_id(tokens.file).has_value();
  });
  if (found == kFileTokens.end()) {
    for (const FileText& file : files) {
      prompt.add("\n\n--- snippet ---\n\n" + file.text);
    }
    prompt.add("\n\n");
    return;
  }
  add_token(prompt, tokenizer, found->repository);
  prompt.add("project\n");
  for (const FileText& file : files) {
    add_token(prompt, tokenizer, found->file);
    prompt.add(file.name + "\n" + file.text);
    prompt.add(file.text.ends_with('\n') ? "" : "\n");
  }
  add_token(prompt, tokenizer, found->file);
  prompt.add("file\n");
}

}  // namespace

std::optional<MarkedText> fill_in_middle_prompt(
    const Tokenizer& tokenizer,
    std::string_view before,
    std::string_view after,
    std::span<const FileText> files
) {
  const auto has = [&](std::string_view token) {
    return token.empty() || tokenizer.token_id(token).has_value();
  };
  const auto found = std::ranges::find_if(kFamilies, [&](const MiddleTokens& family) {
    return has(family.before) && has(family.after) && has(family.middle);
  });
  if (found == kFamilies.end()) {
    return std::nullopt;
  }
  MarkedText prompt;
  add_files(prompt, tokenizer, files);
  const auto add = [&](std::string_view token, std::string_view text) {
    add_token(prompt, tokenizer, token);
    prompt.add(text);
  };
  if (found->begins_with_after) {
    add(found->after, after);
    add(found->before, before);
  } else {
    add(found->before, before);
    add(found->after, after);
  }
  add_token(prompt, tokenizer, found->middle);
  return prompt;
}

}  // namespace saker::text
