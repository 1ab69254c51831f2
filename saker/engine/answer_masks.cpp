// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/answer_masks.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/text/continued_message.h"
#include "saker/text/detokenizer.h"
#include "saker/text/output/call_grammar.h"
#include "saker/text/output/output_parser.h"
#include "saker/text/output/tool.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::engine {

namespace {

constexpr std::size_t kWordBits = 32;

// By kind: the option's name, for messages.
constexpr std::array<std::string_view, 3> kNames{"json_schema", "regex", "grammar"};

void set_bit(std::span<std::uint32_t> bits, std::int32_t token, bool value) {
  const auto index = static_cast<std::size_t>(token);
  if (token < 0 || index / kWordBits >= bits.size()) {
    return;
  }
  const std::uint32_t bit = std::uint32_t{1} << (index % kWordBits);
  std::uint32_t& word = bits[index / kWordBits];
  word = value ? word | bit : word & ~bit;
}

// The reasoning before the content of an answer to messages.
class Reasoning {
 public:
  Reasoning(
      const text::Tokenizer& tokenizer,
      const text::OutputFormat& format,
      std::string_view prompt_end,
      text::Begun begun,
      bool may_open,
      int budget
  )
      : tokenizer_(&tokenizer),
        parser_(format, prompt_end, {}, {.begun = begun}),
        detokenizer_(tokenizer),
        content_opener_(tokenizer.token_id(format.content_open)),
        budget_(budget) {
    if (may_open && begun == text::Begun::kNothing && !is_free()) {
      for (const std::string_view marker : text::opening_markers(format)) {
        if (const auto id = tokenizer.token_id(marker)) {
          openers_.push_back(*id);
        }
      }
    }
  }

  bool is_free() const { return parser_.is_before_content(); }

  // Tokens that may open reasoning or content now.
  std::span<const std::int32_t> openers() const { return openers_; }

  // The only token that may come now, if the budget is spent.
  std::optional<std::int32_t> forced() {
    if (forced_.empty() && budget_ != kNoTokenLimit && spent_ >= budget_ && parser_.is_thinking()) {
      forced_ = tokenizer_->encode(parser_.reasoning_close(), {.add_special_tokens = false});
      std::ranges::reverse(forced_);
    }
    return forced_.empty() ? std::nullopt : std::optional(forced_.back());
  }

  // The rest of the tokens that close the reasoning, if the budget is spent.
  std::vector<std::int32_t> closing() {
    return forced() ? std::vector<std::int32_t>(forced_.rbegin(), forced_.rend())
                    : std::vector<std::int32_t>();
  }

  // Takes a token of the reasoning, or one that opens it.
  void accept(std::int32_t token) {
    const bool was_free = is_free();
    spent_ += parser_.is_thinking() ? 1 : 0;
    if (!forced_.empty()) {
      forced_.pop_back();
    }
    openers_.clear();
    parser_.push(detokenizer_.add(token));
    if (was_free && !is_free() && content_opener_) {
      openers_.push_back(*content_opener_);
    }
  }

 private:
  const text::Tokenizer* tokenizer_;
  text::OutputParser parser_;
  text::Detokenizer detokenizer_;
  std::optional<std::int32_t> content_opener_;
  std::vector<std::int32_t> openers_;
  std::vector<std::int32_t> forced_;  // What closes the reasoning, last token first.
  int budget_;
  int spent_ = 0;
};

class AnswerMask final : public sample::TokenMask {
 public:
  AnswerMask(
      const text::Tokenizer& tokenizer,
      std::optional<text::Constraint> constraint,
      std::optional<Reasoning> reasoning,
      std::vector<std::int32_t> ignored_ends
  )
      : tokenizer_(&tokenizer),
        constraint_(std::move(constraint)),
        reasoning_(std::move(reasoning)),
        ignored_ends_(std::move(ignored_ends)) {}

  bool fill(std::span<std::uint32_t> bits) override {
    if (const auto token = reasoning_ ? reasoning_->forced() : std::nullopt) {
      std::ranges::fill(bits, 0);
      set_bit(bits, *token, true);
      return false;
    }
    if (!constraint_ || (reasoning_ && reasoning_->is_free())) {
      std::ranges::fill(bits, ~std::uint32_t{0});
      return true;
    }
    const bool may_end = constraint_->fill(bits);
    for (const std::int32_t end : ignored_ends_) {
      set_bit(bits, end, false);
    }
    if (reasoning_) {
      for (const std::int32_t opener : reasoning_->openers()) {
        set_bit(bits, opener, true);
      }
    }
    return may_end;
  }

  std::vector<std::int32_t> forced() override {
    if (reasoning_ && (reasoning_->is_free() || !reasoning_->openers().empty())) {
      return reasoning_->closing();
    }
    const std::string bytes = constraint_ ? constraint_->forced_bytes() : std::string();
    const std::string known = bytes.substr(0, find_invalid_utf8(bytes).value_or(bytes.size()));
    if (known.empty()) {
      return {};
    }
    auto ids = tokenizer_->encode(text::MarkedText{known, {}}, {.add_special_tokens = false});
    // Some tokenizers add a blank to what begins a text.
    return tokenizer_->decode(ids) == known ? ids : std::vector<std::int32_t>();
  }

  bool accept(std::int32_t token) override {
    if (!constraint_) {
      reasoning_->accept(token);
      return true;
    }
    if (reasoning_) {
      const auto openers = reasoning_->openers();
      if (reasoning_->is_free() || std::ranges::find(openers, token) != openers.end()) {
        reasoning_->accept(token);
        return true;
      }
      reasoning_.reset();
    }
    return constraint_->accept(token);
  }

 private:
  const text::Tokenizer* tokenizer_;
  // At least one of the two is there.
  std::optional<text::Constraint> constraint_;
  std::optional<Reasoning> reasoning_;
  std::vector<std::int32_t> ignored_ends_;
};

// Calls are forced, or arguments have to fit a schema.
bool needs_call_grammar(const Request& request) {
  if (!request.prompt.messages || request.output.constraint) {
    return false;
  }
  switch (request.output.tool_choice.use) {
    case ToolUse::kNone:
      return false;
    case ToolUse::kRequired:
    case ToolUse::kNamed:
      return true;
    case ToolUse::kAuto:
      break;
  }
  const auto tools = text::read_tools(request.prompt.tools.value_or(nullptr));
  return std::ranges::any_of(tools, &text::Tool::is_strict);
}

}  // namespace

std::unique_ptr<sample::TokenMask> AnswerMasks::make(
    const Request& request, std::span<const std::int32_t> prompt
) {
  const bool has_budget =
      request.output.reasoning_budget != kNoTokenLimit && request.prompt.messages;
  const bool calls = needs_call_grammar(request);
  if (!request.output.constraint && !has_budget && !calls) {
    return nullptr;
  }
  const text::Begun begun = request.prompt.messages && request.prompt.continues_last
                                ? text::continued_part(*request.prompt.messages)
                                : text::Begun::kNothing;
  require(
      !request.output.constraint || begun != text::Begun::kContent,
      ErrorCode::kUnsupported,
      "an answer whose content is continued can't have a constraint"
  );
  const text::Tokenizer& tokenizer = prompts_->tokenizer_for_text();
  std::optional<text::Constraint> constraint;
  if (request.output.constraint) {
    const auto kind = static_cast<std::size_t>(request.output.constraint->kind);
    constraint.emplace(
        trie(tokenizer),
        static_cast<text::ConstraintKind>(kind),
        request.output.constraint->text,
        kNames.at(kind)
    );
  } else if (calls) {
    constraint = call_constraint(request, tokenizer);
  }
  std::optional<Reasoning> reasoning;
  const bool has_own_reasoning =
      calls && prompts_->output_format().channels != text::ChannelUse::kNone;
  if (request.prompt.messages && !has_own_reasoning) {
    const auto end = prompt.last(std::min(prompt.size(), text::kPromptEndTokens));
    reasoning.emplace(
        tokenizer,
        prompts_->output_format(),
        tokenizer.decode(end),
        begun,
        request.prompt.think.value_or(true),
        request.output.reasoning_budget
    );
  }
  return std::make_unique<AnswerMask>(
      tokenizer,
      std::move(constraint),
      std::move(reasoning),
      request.output.ignore_eos ? prompts_->eos_tokens() : std::vector<std::int32_t>()
  );
}

text::Constraint AnswerMasks::call_constraint(
    const Request& request, const text::Tokenizer& tokenizer
) {
  const ToolChoice& choice = request.output.tool_choice;
  std::vector<text::Tool> tools = text::read_tools(request.prompt.tools.value_or(nullptr));
  if (choice.use == ToolUse::kNamed) {
    std::erase_if(tools, [&](const text::Tool& tool) { return tool.name != choice.name; });
    require(
        !tools.empty(),
        ErrorCode::kInvalidArgument,
        "tool_choice: got {:?}, expected a tool of the request",
        choice.name
    );
  }
  require(
      !tools.empty(),
      ErrorCode::kInvalidArgument,
      "tool_choice: got required, expected tools with it"
  );
  text::CallGrammarOptions options{
      .is_forced = choice.use != ToolUse::kAuto, .is_parallel = choice.is_parallel
  };
  const auto make = [&] {
    return text::Constraint(
        trie(tokenizer),
        text::ConstraintKind::kGrammar,
        text::call_grammar(prompts_->output_format(), tools, tokenizer, options),
        "tools"
    );
  };
  const bool has_strict = std::ranges::any_of(tools, &text::Tool::is_strict);
  try {
    return make();
  } catch (const Error& error) {
    if (has_strict || error.code() != ErrorCode::kInvalidArgument) {
      throw;
    }
    // Schemas that nobody promised to keep: any object will do.
    options.reads_schemas = false;
    return make();
  }
}

const text::TokenTrie& AnswerMasks::trie(const text::Tokenizer& tokenizer) {
  const std::scoped_lock lock(mutex_);
  if (!trie_) {
    trie_.emplace(tokenizer, prompts_->eos_tokens());
  }
  return *trie_;
}

}  // namespace saker::engine
