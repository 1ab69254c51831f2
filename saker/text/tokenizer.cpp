// SPDX-License-Identifier: Apache-2.0
#include "saker/text/tokenizer.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/text/rust_bridge.h"
#include "saker/text/vocabulary_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

namespace saker::text {
namespace {

constexpr std::size_t kMaxTokenizerBytes = std::size_t{256} << 20;
constexpr std::string_view kTokenizerFile = "tokenizer.json";

// Ids that belong to the Rust library.
struct RustIds {
  SakerRsIds ids{};

  RustIds() = default;
  RustIds(const RustIds&) = delete;
  RustIds& operator=(const RustIds&) = delete;

  ~RustIds() { saker_rs_ids_free(ids); }

  std::vector<std::int32_t> copied() const {
    const std::span<const std::uint32_t> found(ids.data, ids.size);
    const bool fits = std::ranges::all_of(found, [](std::uint32_t id) {
      return id <= static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max());
    });
    require(fits, ErrorCode::kCorruptData, "the tokenizer gives ids above 2^31 - 1");
    return {found.begin(), found.end()};
  }
};

}  // namespace

Tokenizer::Tokenizer(SakerRsTokenizer* rust)
    : rust_(rust), vocab_size_(static_cast<int>(saker_rs_tokenizer_vocab_size(rust))) {}

Tokenizer::~Tokenizer() {
  saker_rs_tokenizer_free(rust_);
}

std::shared_ptr<const Tokenizer> Tokenizer::parse(std::string_view json, std::string_view what) {
  return parse(json, what, {});
}

std::shared_ptr<const Tokenizer> Tokenizer::parse(
    std::string_view json, std::string_view what, const TokenizerConfig& config
) {
  const std::string others = config.added_tokens.is_null() ? "" : config.added_tokens.dump();
  SakerRsTokenizer* rust = nullptr;
  SakerRsBytes error{};
  const bool ok = saker_rs_tokenizer_new(
      rust_data(json), json.size(), rust_data(others), others.size(), &rust, &error
  );
  check_rust(ok, error, ErrorCode::kCorruptData, what);
  RustTokenizer owner(rust);
  return std::shared_ptr<const Tokenizer>(new Tokenizer(owner.release()));
}

std::shared_ptr<const Tokenizer> Tokenizer::load(const ModelTexts& texts) {
  return load(texts, load_tokenizer_config(texts));
}

std::shared_ptr<const Tokenizer> Tokenizer::load(
    const ModelTexts& texts, const TokenizerConfig& config
) {
  if (!texts.has(kTokenizerFile) && config.kind != nullptr &&
      has_vocabulary_files(texts, *config.kind)) {
    return parse(read_vocabulary_files(texts, *config.kind), texts.shown("vocab.json"), config);
  }
  return parse(texts.read(kTokenizerFile, kMaxTokenizerBytes), texts.shown(kTokenizerFile), config);
}

std::shared_ptr<const Tokenizer> Tokenizer::load_if_present(
    const ModelTexts& texts, const TokenizerConfig& config
) {
  const bool is_there = texts.has(kTokenizerFile) ||
                        (config.kind != nullptr && has_vocabulary_files(texts, *config.kind));
  return is_there ? load(texts, config) : nullptr;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  require_utf8(text, "the text");
  RustIds ids;
  SakerRsBytes error{};
  const bool ok = saker_rs_tokenizer_encode(
      rust_,
      rust_data(text),
      text.size(),
      options.add_special_tokens,
      options.most_tokens,
      &ids.ids,
      &error
  );
  check_rust(ok, error, ErrorCode::kInvalidArgument, "the text cannot be encoded");
  return ids.copied();
}

std::vector<std::int32_t> Tokenizer::encode(const MarkedText& marked, EncodeOptions options) const {
  require_utf8(marked.text, "the text");
  std::vector<SakerRsMark> marks;
  marks.reserve(marked.marks.size());
  std::size_t end = 0;
  for (const auto& mark : marked.marks) {
    require(
        end <= mark.begin && mark.begin <= mark.end && mark.end <= marked.text.size(),
        ErrorCode::kInvalidArgument,
        "a mark has bytes {} to {}, expected some between {} and {}",
        mark.begin,
        mark.end,
        end,
        marked.text.size()
    );
    require_token(has_token(mark.id), mark.id);
    marks.push_back({mark.begin, mark.end, static_cast<std::uint32_t>(mark.id)});
    end = mark.end;
  }
  RustIds ids;
  SakerRsBytes error{};
  const bool ok = saker_rs_tokenizer_encode_marked(
      rust_,
      rust_data(marked.text),
      marked.text.size(),
      marks.data(),
      marks.size(),
      options.add_special_tokens,
      &ids.ids,
      &error
  );
  check_rust(ok, error, ErrorCode::kInvalidArgument, "the text cannot be encoded");
  return ids.copied();
}

TextPair Tokenizer::encode_pair(std::string_view first, std::string_view second) const {
  require_utf8(first, "the first text");
  require_utf8(second, "the second text");
  RustIds ids;
  RustIds places;
  SakerRsBytes error{};
  const bool ok = saker_rs_tokenizer_encode_pair(
      rust_,
      rust_data(first),
      first.size(),
      rust_data(second),
      second.size(),
      &ids.ids,
      &places.ids,
      &error
  );
  check_rust(ok, error, ErrorCode::kInvalidArgument, "the texts cannot be encoded");
  TextPair pair;
  const std::vector<std::int32_t> found = places.copied();
  pair.ids = ids.copied();
  const auto is_second = [](std::int32_t place) { return place % 2 == 1; };
  const auto begin = std::ranges::find_if(found, is_second);
  pair.second_begin = static_cast<int>(begin - found.begin());
  pair.second_end =
      static_cast<int>(std::find_if_not(begin, found.end(), is_second) - found.begin());
  std::ranges::transform(found, std::back_inserter(pair.types), [](std::int32_t place) {
    return place / 2;
  });
  return pair;
}

void Tokenizer::require_token(bool exists, std::int32_t id) const {
  require(
      exists,
      ErrorCode::kInvalidArgument,
      "token id {} has no token, expected one of the vocabulary's {} tokens",
      id,
      vocab_size_
  );
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, DecodeOptions options) const {
  for (const auto id : ids) {
    require_token(has_token(id), id);
  }
  SakerRsBytes text{};
  SakerRsBytes error{};
  const bool ok = saker_rs_tokenizer_decode(
      rust_,
      reinterpret_cast<const std::uint32_t*>(ids.data()),  // Same representation: none is negative.
      ids.size(),
      options.skip_special_tokens,
      &text,
      &error
  );
  check_rust(ok, error, ErrorCode::kInvalidArgument, "the tokens cannot be decoded");
  return take_string(text);
}

std::optional<std::int32_t> Tokenizer::token_id(std::string_view piece) const {
  std::uint32_t id = 0;
  if (!saker_rs_tokenizer_token_id(rust_, rust_data(piece), piece.size(), &id) ||
      id > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max())) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(id);
}

std::string Tokenizer::token_bytes(std::int32_t id) const {
  if (id < 0) {
    return {};
  }
  SakerRsBytes bytes{};
  SakerRsBytes error{};
  const bool ok = saker_rs_tokenizer_bytes(rust_, static_cast<std::uint32_t>(id), &bytes, &error);
  check_rust(ok, error, ErrorCode::kInternal, "the token cannot be read");
  return take_string(bytes);
}

std::optional<std::string> Tokenizer::find_piece(std::int32_t id) const {
  if (id < 0) {
    return std::nullopt;
  }
  bool found = false;
  SakerRsBytes piece{};
  SakerRsBytes error{};
  const bool ok =
      saker_rs_tokenizer_piece(rust_, static_cast<std::uint32_t>(id), &found, &piece, &error);
  check_rust(ok, error, ErrorCode::kInternal, "the token cannot be read");
  std::string text = take_string(piece);
  return found ? std::optional(std::move(text)) : std::nullopt;
}

std::string Tokenizer::token_piece(std::int32_t id) const {
  auto piece = find_piece(id);
  require_token(piece.has_value(), id);
  return *std::move(piece);
}

bool Tokenizer::has_token(std::int32_t id) const {
  return find_piece(id).has_value();
}

std::string Tokenizer::moved_tokens() const {
  SakerRsBytes text{};
  SakerRsBytes error{};
  check_rust(
      saker_rs_tokenizer_moved(rust_, &text, &error), error, ErrorCode::kInternal, "added tokens"
  );
  const std::string moved = take_string(text);
  return moved.empty() ? moved : "added tokens: " + moved;
}

bool Tokenizer::is_special(std::int32_t id) const {
  return id >= 0 && saker_rs_tokenizer_is_special(rust_, static_cast<std::uint32_t>(id));
}

}  // namespace saker::text
