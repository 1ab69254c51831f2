// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/serialized.h"

#include "saker/base/characters/letter_case.h"
#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cache/serialized_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

// Kinds by name: first the name that we write, then names of other runtimes.
constexpr auto kKinds = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"KVCache", "KVCache"},
    {"ConcatenateKVCache", "KVCache"},
    {"KVCacheSimple", "KVCache"},
    {"StandardKvCache", "KVCache"},
    {"RotatingKVCache", "RotatingKVCache"},
    {"RotatingKvCache", "RotatingKVCache"},
    {"ChunkedKVCache", "ChunkedKVCache"},
    {"ChunkedKvCache", "ChunkedKVCache"},
    {"QuantizedKVCache", "QuantizedKVCache"},
    {"StandardQuantizedKvCache", "QuantizedKVCache"},
    {"QuantizedRotatingKVCache", "QuantizedRotatingKVCache"},
    {"CacheList", "CacheList"},
    {"BatchKVCache", "BatchKVCache"},
    {"BatchKvCache", "BatchKVCache"},
    {"BatchRotatingKVCache", "BatchRotatingKVCache"},
    {"BatchRotatingKvCache", "BatchRotatingKVCache"},
    {"ArraysCache", "ArraysCache"},
    {"MambaCache", "MambaCache"},
});

// "KVCache (or ConcatenateKVCache, KVCacheSimple), RotatingKVCache (or RotatingKvCache), ..."
std::string known_kinds() {
  std::vector<std::string> kinds;
  for (const auto& [name, kind] : kKinds) {
    if (name == kind) {
      kinds.emplace_back(name);
    } else {
      const bool first = !kinds.back().ends_with(')');
      kinds.back().resize(kinds.back().size() - (first ? 0 : 1));
      kinds.back() += fmt::format("{}{})", first ? " (or " : ", ", name);
    }
  }
  return fmt::format("{}", fmt::join(kinds, ", "));
}

}  // namespace

std::string_view canonical_kind(std::string_view name) {
  const auto* const found =
      std::ranges::find(kKinds, name, [](const auto& row) { return row.first; });
  if (found == kKinds.end()) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("cache kind {} is not known, expected one of {}", quote(name), known_kinds())
    );
  }
  return found->second;
}

std::int64_t meta_integer(std::string_view text, std::string_view what) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(
      error == std::errc() && end == text.data() + text.size(),
      ErrorCode::kCorruptData,
      "{} is {}, expected an integer of 32 bits",
      what,
      quote(text)
  );
  return value;
}

bool meta_bool(std::string_view text, std::string_view what) {
  const std::string lower = ascii_lower(text.substr(0, 6));
  require(
      lower == "true" || lower == "false",
      ErrorCode::kCorruptData,
      "{} is {}, expected true or false",
      what,
      quote(text)
  );
  return lower == "true";
}

std::vector<std::int64_t> meta_integers(
    std::string_view text, std::size_t limit, std::string_view what
) {
  std::vector<std::int64_t> values;
  if (text.empty()) {
    return values;
  }
  const auto count = static_cast<std::size_t>(std::ranges::count(text, ',')) + 1;
  require(
      count <= limit,
      ErrorCode::kCorruptData,
      "{} has {} values, expected at most {}",
      what,
      count,
      limit
  );
  values.reserve(count);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    values.push_back(meta_integer(text.substr(begin, end - begin), what));
    begin = end + 1;
  }
  return values;
}

std::vector<SerializedCache> split_cache_list(SerializedCache list) {
  require_data(!list.meta.empty(), list, "no meta values, expected the number of children first");
  const std::int64_t count = integer(list, 0, "number of children");
  require_data(
      count >= 0 && std::cmp_less_equal(count, (list.meta.size() - 1) / 3),
      list,
      fmt::format("{} children in {} meta values", count, list.meta.size())
  );
  std::vector<SerializedCache> children;
  std::size_t meta = 1;
  std::size_t state = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    require_data(list.meta.size() - meta >= 3, list, fmt::format("child {} is cut off", i));
    const std::int64_t states = integer(list, meta + 1, "a child's arrays");
    const std::int64_t metas = integer(list, meta + 2, "a child's meta values");
    SerializedCache child;
    child.kind = canonical_kind(list.meta[meta]);
    meta += 3;
    require_data(
        states >= 0 && std::cmp_less_equal(states, list.state.size() - state) && metas >= 0 &&
            std::cmp_less_equal(metas, list.meta.size() - meta),
        list,
        fmt::format(
            "child {} has {} arrays and {} meta values, which are not there", i, states, metas
        )
    );
    const auto state_at = list.state.begin() + static_cast<std::ptrdiff_t>(state);
    const auto meta_at = list.meta.begin() + static_cast<std::ptrdiff_t>(meta);
    std::move(state_at, state_at + states, std::back_inserter(child.state));
    std::move(meta_at, meta_at + metas, std::back_inserter(child.meta));
    state += static_cast<std::size_t>(states);
    meta += static_cast<std::size_t>(metas);
    children.push_back(std::move(child));
  }
  require_data(
      meta == list.meta.size() && state == list.state.size(),
      list,
      fmt::format(
          "{} meta values and {} arrays belong to no child",
          list.meta.size() - meta,
          list.state.size() - state
      )
  );
  return children;
}

SerializedCache join_cache_list(const std::vector<SerializedCache>& children) {
  SerializedCache list;
  list.kind = "CacheList";
  list.meta.push_back(fmt::to_string(children.size()));
  for (const SerializedCache& child : children) {
    list.meta.push_back(child.kind);
    list.meta.push_back(fmt::to_string(child.state.size()));
    list.meta.push_back(fmt::to_string(child.meta.size()));
    list.meta.insert(list.meta.end(), child.meta.begin(), child.meta.end());
    list.state.insert(list.state.end(), child.state.begin(), child.state.end());
  }
  return list;
}

std::vector<SerializedCache> in_lists(std::vector<SerializedCache> caches, int per_layer) {
  const auto has_pages = [](const SerializedCache& cache) { return cache.pages.has_value(); };
  if (per_layer == 1 || std::ranges::any_of(caches, has_pages)) {
    return caches;
  }
  std::vector<SerializedCache> lists;
  for (auto next = caches.begin(); next != caches.end(); next += per_layer) {
    lists.push_back(join_cache_list({next, next + per_layer}));
  }
  return lists;
}

std::vector<SerializedCache> without_lists(std::vector<SerializedCache> layers) {
  std::vector<SerializedCache> caches;
  for (SerializedCache& layer : layers) {
    if (layer.kind != "CacheList") {
      caches.push_back(std::move(layer));
      continue;
    }
    for (SerializedCache& child : split_cache_list(std::move(layer))) {
      caches.push_back(std::move(child));
    }
  }
  return caches;
}

SlotLayout slot_layout(const std::vector<std::string>& meta, std::size_t state_count) {
  SlotLayout layout;
  if (meta.empty() || (meta.size() == 1 && meta[0].empty())) {
    layout.slots = state_count;
    for (std::size_t i = 0; i < state_count; ++i) {
      layout.present.push_back(static_cast<std::int64_t>(i));
    }
    return layout;
  }
  require(
      meta.size() >= 2 && meta.size() <= 4,
      ErrorCode::kCorruptData,
      "ArraysCache: got {} meta values, expected 2 to 4",
      meta.size()
  );
  const std::int64_t slots = meta_integer(meta[0], "ArraysCache: number of slots");
  require(
      slots >= 0 && std::cmp_less_equal(slots, kMaxCacheSlots),
      ErrorCode::kCorruptData,
      "ArraysCache: {} slots, expected at most {}",
      slots,
      kMaxCacheSlots
  );
  layout.slots = static_cast<std::size_t>(slots);
  layout.present = meta_integers(meta[1], layout.slots, "ArraysCache: slots that are set");
  std::int64_t next = 0;
  for (const std::int64_t slot : layout.present) {
    require(
        slot >= next && slot < slots,
        ErrorCode::kCorruptData,
        "ArraysCache: slot {} is set, expected rising numbers below {}",
        slot,
        slots
    );
    next = slot + 1;
  }
  require(
      layout.present.size() == state_count,
      ErrorCode::kCorruptData,
      "ArraysCache: {} arrays for {} slots that are set",
      state_count,
      layout.present.size()
  );
  if (meta.size() > 2 && !meta[2].empty()) {
    layout.left_padding = meta_integers(meta[2], kMaxCacheSlots, "ArraysCache: left_padding");
  }
  if (meta.size() > 3 && !meta[3].empty()) {
    layout.lengths = meta_integers(meta[3], kMaxCacheSlots, "ArraysCache: lengths");
  }
  return layout;
}

}  // namespace saker::cache
