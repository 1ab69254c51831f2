// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/tokenizer_merges.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace saker::load::gguf {
namespace {

// As when files are read (gguf_tokenizer.cpp): a score has to hold every rank exactly.
constexpr std::size_t kMostMerges = std::size_t{1} << 21;
constexpr std::size_t kLongestPiece = 512;
// A limit for the sum of squares of pieces' sizes, which is the time to read each at each of its
// cuts. Real vocabularies have 2^24.
constexpr std::size_t kMostCutBytes = std::size_t{1} << 31;

std::optional<PiecePair> pair_of(const Json& merge) {
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const auto space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return PiecePair{text.substr(0, space), text.substr(space + 1)};
    }
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    return PiecePair{merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  return std::nullopt;
}

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

struct RankSpan {
  std::size_t first = 0;
  std::size_t last = 0;
};

using Spans = std::unordered_map<std::string, RankSpan>;

Spans spans_of(std::span<const PiecePair> merges) {
  Spans spans;
  spans.reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    spans.emplace(merges[rank].left + merges[rank].right, RankSpan{rank, rank}).first->second.last =
        rank;
  }
  return spans;
}

// The order of merges with equal scores, here and in transformers: by the sizes of both parts, in
// bytes or characters.
bool is_order_of_equals(std::span<const PiecePair> merges) {
  const auto falls = [&](auto size) {
    return std::ranges::is_sorted(merges, std::ranges::greater(), [&](const PiecePair& merge) {
      return std::pair(size(merge.left), size(merge.right));
    });
  };
  return falls([](const std::string& text) { return text.size(); }) ||
         falls([](const std::string& text) { return characters_of(text); });
}

// The rank of the first merge that makes each piece. Pieces whose merges alternate have the same.
std::unordered_map<std::string, std::size_t> first_ranks(std::span<const PiecePair> merges) {
  const Spans spans = spans_of(merges);
  std::unordered_map<std::string, std::size_t> ranks;
  ranks.reserve(spans.size());
  for (std::size_t begin = 0; begin < merges.size();) {
    std::size_t end = begin;
    bool alternates = false;
    for (std::size_t rank = begin; rank <= end; ++rank) {
      const auto span = spans.find(merges[rank].left + merges[rank].right);
      end = std::max(end, span->second.last);
      alternates = alternates || span->second.first != begin;
      ranks.emplace(span->first, begin);
    }
    require(
        !alternates || is_order_of_equals(merges.subspan(begin, end + 1 - begin)),
        ErrorCode::kUnsupported,
        "tokenizer.json: merges {} to {} make pieces in turn, which scores of pieces cannot say",
        begin,
        end
    );
    begin = end + 1;
  }
  return ranks;
}

[[noreturn]] void refuse_way(std::string_view left, std::string_view right) {
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "tokenizer.json: {} and {} make a piece and are no merge, which scores of pieces cannot "
          "say",
          quote(left),
          quote(right)
      )
  );
}

// Scores allow every way to make a piece of two others, so that each has to be a merge.
void check_ways(std::span<const PiecePair> merges, std::span<const std::string_view> pieces) {
  std::unordered_map<std::string_view, std::size_t> ids;
  ids.reserve(pieces.size());
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    ids.emplace(pieces[id], id);
  }
  const auto key = [&](std::size_t left, std::size_t right) {
    return left * pieces.size() + right;
  };
  std::unordered_set<std::size_t> listed;
  listed.reserve(merges.size());
  for (const PiecePair& merge : merges) {
    const auto left = ids.find(merge.left);
    const auto right = ids.find(merge.right);
    if (left != ids.end() && right != ids.end()) {
      listed.insert(key(left->second, right->second));
    }
  }
  std::size_t cut_bytes = 0;
  for (const std::string_view piece : pieces) {
    cut_bytes += piece.size() <= kLongestPiece ? piece.size() * piece.size() : 0;
    require(
        cut_bytes <= kMostCutBytes,
        ErrorCode::kUnsupported,
        "tokenizer.json: too many long pieces to find all ways that make them"
    );
    const std::size_t end = piece.size() <= kLongestPiece ? piece.size() : 0;
    for (std::size_t cut = 1; cut < end; ++cut) {
      const auto left = begins_character(piece[cut]) ? ids.find(piece.substr(0, cut)) : ids.end();
      const auto right = left != ids.end() ? ids.find(piece.substr(cut)) : ids.end();
      if (right != ids.end() && !listed.contains(key(left->second, right->second))) {
        refuse_way(piece.substr(0, cut), piece.substr(cut));
      }
    }
  }
}

}  // namespace

std::vector<PiecePair> read_merges(const Json& model) {
  const Json* list = find_member(model, "merges");
  require(
      list != nullptr && list->is_array() && list->size() <= kMostMerges,
      ErrorCode::kCorruptData,
      "tokenizer.json: merges is {}, expected a list of at most {} pairs",
      list != nullptr ? describe_json(*list) : "missing",
      kMostMerges
  );
  std::vector<PiecePair> merges;
  merges.reserve(list->size());
  for (const Json& item : *list) {
    auto merge = pair_of(item);
    if (!merge) {  // Only then the item is described.
      throw Error(
          ErrorCode::kCorruptData,
          fmt::format(
              "tokenizer.json: merge {} is {}, expected two pieces",
              merges.size(),
              describe_json(item)
          )
      );
    }
    merges.push_back(std::move(*merge));
  }
  return merges;
}

std::vector<float> piece_scores(
    std::span<const PiecePair> merges, std::span<const std::string_view> pieces
) {
  const auto ranks = first_ranks(merges);
  check_ways(merges, pieces);
  const auto lowest = -static_cast<float>(merges.size());
  std::vector<float> scores;
  scores.reserve(pieces.size());
  for (const std::string_view piece : pieces) {
    const auto rank = ranks.find(std::string(piece));
    scores.push_back(rank != ranks.end() ? -static_cast<float>(rank->second) : lowest);
  }
  return scores;
}

}  // namespace saker::load::gguf
