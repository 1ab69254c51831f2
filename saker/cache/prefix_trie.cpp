// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/prefix_trie.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace saker::cache {
namespace {

// Most rows that one eviction cuts from a leaf; a longer edge loses only its end.
constexpr std::int64_t kCutRows = 1024;

std::int64_t common_length(TokenSpan a, TokenSpan b) {
  const auto count = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin()).first -
         a.begin();
}

// Counts all blocks of the rows, or none if memory runs out.
void add_blocks(const SequenceSnapshot& rows, SharedBytes& memory) {
  std::size_t added = 0;
  try {
    rows.for_each_block([&](const kernels::KvBlock& block) {
      memory.add(block);
      ++added;
    });
  } catch (...) {
    rows.for_each_block([&](const kernels::KvBlock& block) {
      if (added > 0) {
        memory.remove(block);
        --added;
      }
    });
    throw;
  }
}

}  // namespace

struct PrefixTrie::Node {
  std::string_view key;              // Key of the root's entry.
  Node* parent = nullptr;            // Null for a root.
  std::int64_t first = 0;            // Position of the edge's first token.
  std::vector<std::int32_t> tokens;  // The edge; only a root has none.
  std::optional<SequenceSnapshot> rows;
  std::map<std::int32_t, NodePtr> children;  // By the first token of their edge.
  std::uint64_t used = 0;
  int pins = 0;

  std::int64_t last() const { return first + static_cast<std::int64_t>(tokens.size()); }

  std::vector<std::int32_t> path() const {
    std::vector<std::int32_t> result(static_cast<std::size_t>(last()));
    for (const Node* node = this; node->parent != nullptr; node = node->parent) {
      std::ranges::copy(node->tokens, result.begin() + node->first);
    }
    return result;
  }
};

PrefixTrie::Pin::Pin(std::shared_ptr<Node> node) : node_(std::move(node)) {
  ++node_->pins;
}

PrefixTrie::Pin::Pin(Pin&& other) noexcept : node_(std::move(other.node_)) {}

PrefixTrie::Pin& PrefixTrie::Pin::operator=(Pin&& other) noexcept {
  std::swap(node_, other.node_);
  return *this;
}

PrefixTrie::Pin::~Pin() {
  if (node_ != nullptr) {
    --node_->pins;
  }
}

PrefixTrie::PrefixTrie(std::size_t byte_budget, Evicted evicted)
    : byte_budget_(byte_budget), evicted_(std::move(evicted)) {}

PrefixTrie::~PrefixTrie() {
  // Leaf by leaf, so a long path does not become a deep recursion of destructors.
  for (const auto& [key, top] : roots_) {
    Node* node = top.get();
    while (node != top.get() || !node->children.empty()) {
      if (!node->children.empty()) {
        node = node->children.begin()->second.get();
      } else {
        node = node->parent;
        node->children.erase(node->children.begin());
      }
    }
  }
}

PrefixTrie::Node* PrefixTrie::root(std::string_view key) const {
  const auto found = roots_.find(key);
  return found == roots_.end() ? nullptr : found->second.get();
}

PrefixTrie::Node& PrefixTrie::make_root(std::string_view key) {
  if (Node* top = root(key)) {
    return *top;
  }
  const auto place = roots_.emplace(std::string(key), std::make_shared<Node>()).first;
  place->second->key = place->first;
  return *place->second;
}

PrefixTrie::Place PrefixTrie::walk(Node& root, TokenSpan tokens) const {
  Place place{&root, 0, 0};
  while (place.taken == static_cast<std::int64_t>(place.node->tokens.size())) {
    const TokenSpan rest = tokens.subspan(static_cast<std::size_t>(place.length));
    const auto child =
        rest.empty() ? place.node->children.end() : place.node->children.find(rest.front());
    if (child == place.node->children.end()) {
      return place;
    }
    place.node = child->second.get();
    place.taken = common_length(place.node->tokens, rest);
    place.length += place.taken;
  }
  return place;
}

std::int64_t PrefixTrie::match(std::string_view key, TokenSpan tokens) const {
  Node* top = root(key);
  return top == nullptr ? 0 : walk(*top, tokens).length;
}

void PrefixTrie::touch(Node* node) {
  ++clock_;
  for (; node != nullptr; node = node->parent) {
    node->used = clock_;
  }
}

std::optional<SequenceSnapshot> PrefixTrie::find(std::string_view key, TokenSpan tokens) {
  Node* top = root(key);
  if (top == nullptr) {
    return std::nullopt;
  }
  const Place place = walk(*top, tokens);
  if (place.length == 0) {
    return std::nullopt;
  }
  touch(place.node);
  std::vector<const Node*> path;
  for (const Node* node = place.node; node->parent != nullptr; node = node->parent) {
    path.push_back(node);
  }
  std::optional<SequenceSnapshot> rows = path.back()->rows;
  for (auto node = std::next(path.rbegin()); node != path.rend(); ++node) {
    rows = rows->joined(*(*node)->rows);
  }
  return rows->slice(0, place.length);
}

void PrefixTrie::insert(std::string_view key, TokenSpan tokens, const SequenceSnapshot& rows) {
  assert(rows.last() == static_cast<std::int64_t>(tokens.size()));
  if (match(key, tokens) < rows.first()) {
    return;
  }
  const Place place = walk(make_root(key), tokens);
  touch(place.node);
  if (place.length == rows.last()) {
    return;
  }
  Node* parent = place.node;
  if (place.taken < static_cast<std::int64_t>(parent->tokens.size())) {
    parent = &split(*parent, place.taken);
  }
  const TokenSpan rest = tokens.subspan(static_cast<std::size_t>(place.length));
  const SequenceSnapshot added = rows.slice(place.length, rows.last());
  if (parent->parent != nullptr && parent->children.empty()) {
    extend(*parent, rest, added);
  } else {
    add_child(*parent, rest, added);
  }
  evict();
}

PrefixTrie::Pin PrefixTrie::pin(std::string_view key, TokenSpan tokens) {
  Node* top = root(key);
  const Place place = top == nullptr ? Place{} : walk(*top, tokens);
  if (place.length == 0) {
    return {};
  }
  return Pin(place.node->parent->children.at(place.node->tokens.front()));
}

void PrefixTrie::set_rows(Node& node, std::optional<SequenceSnapshot> rows) {
  // Adds the new rows before removing the old ones, so shared blocks stay counted.
  if (rows) {
    add_blocks(*rows, memory_);
  }
  if (node.rows) {
    node.rows->for_each_block([&](const kernels::KvBlock& block) { memory_.remove(block); });
  }
  node.rows = std::move(rows);
}

PrefixTrie::Node& PrefixTrie::split(Node& node, std::int64_t count) {
  const std::int64_t border = node.first + count;
  const auto cut = node.tokens.begin() + count;
  NodePtr& slot = node.parent->children.at(node.tokens.front());
  auto upper = std::make_shared<Node>();
  upper->key = node.key;
  upper->parent = node.parent;
  upper->first = node.first;
  upper->tokens.assign(node.tokens.begin(), cut);
  upper->used = node.used;
  upper->children.emplace(*cut, slot);
  SequenceSnapshot lower_rows = node.rows->slice(border, node.last());
  set_rows(*upper, node.rows->slice(node.first, border));
  try {
    set_rows(node, std::move(lower_rows));
  } catch (...) {
    set_rows(*upper, std::nullopt);
    throw;
  }
  node.tokens.erase(node.tokens.begin(), cut);
  node.first = border;
  node.parent = upper.get();
  slot = upper;
  return *upper;
}

void PrefixTrie::extend(Node& leaf, TokenSpan tokens, const SequenceSnapshot& rows) {
  leaf.tokens.reserve(leaf.tokens.size() + tokens.size());
  set_rows(leaf, leaf.rows->joined(rows));
  leaf.tokens.insert(leaf.tokens.end(), tokens.begin(), tokens.end());
}

void PrefixTrie::add_child(Node& parent, TokenSpan tokens, const SequenceSnapshot& rows) {
  auto child = std::make_shared<Node>();
  child->key = parent.key;
  child->parent = &parent;
  child->first = parent.last();
  child->tokens.assign(tokens.begin(), tokens.end());
  child->used = parent.used;
  const auto place = parent.children.emplace(tokens.front(), child).first;
  try {
    set_rows(*child, rows);
  } catch (...) {
    parent.children.erase(place);
    throw;
  }
}

void PrefixTrie::evict() {
  while (bytes() > byte_budget_ && evict_one()) {
  }
}

bool PrefixTrie::evict_one() {
  Node* victim = next_victim();
  if (victim == nullptr) {
    return false;
  }
  cut_end(*victim);
  ++evictions_;
  return true;
}

PrefixTrie::Node* PrefixTrie::next_victim() const {
  const auto goes_first = [](const Node& a, const Node& b) {
    if ((a.pins > 0) != (b.pins > 0)) {
      return a.pins == 0;
    }
    if (a.used != b.used) {
      return a.used < b.used;
    }
    return a.last() != b.last() ? a.last() > b.last() : a.tokens.size() > b.tokens.size();
  };
  Node* victim = nullptr;
  std::vector<Node*> open;
  open.reserve(roots_.size());
  for (const auto& [key, top] : roots_) {
    open.push_back(top.get());
  }
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    for (const auto& [token, child] : node->children) {
      open.push_back(child.get());
    }
    const bool is_leaf = node->parent != nullptr && node->children.empty();
    if (is_leaf && (victim == nullptr || goes_first(*node, *victim))) {
      victim = node;
    }
  }
  return victim;
}

void PrefixTrie::cut_end(Node& leaf) {
  const std::int64_t border = (leaf.last() - kCutRows) / kernels::kPageRows * kernels::kPageRows;
  const bool whole = border <= leaf.first;
  if (evicted_) {
    const auto gone = whole ? *leaf.rows : leaf.rows->slice(border, leaf.last());
    evicted_({leaf.key, leaf.path(), gone});
  }
  if (whole) {
    remove(leaf);
    return;
  }
  set_rows(leaf, leaf.rows->slice(leaf.first, border));
  leaf.tokens.resize(static_cast<std::size_t>(border - leaf.first));
}

void PrefixTrie::remove(Node& leaf) {
  Node& parent = *leaf.parent;
  set_rows(leaf, std::nullopt);
  parent.children.erase(parent.children.find(leaf.tokens.front()));  // Destroys the leaf.
  if (parent.parent == nullptr && parent.children.empty()) {
    roots_.erase(roots_.find(parent.key));
  } else if (parent.parent != nullptr && parent.children.size() == 1 && parent.pins == 0) {
    merge_with_child(parent);
  }
}

void PrefixTrie::merge_with_child(Node& node) {
  // The child stays, because pins point to it.
  const NodePtr child = node.children.begin()->second;
  child->tokens.reserve(node.tokens.size() + child->tokens.size());
  set_rows(*child, node.rows->joined(*child->rows));
  child->first = node.first;
  child->tokens.insert(child->tokens.begin(), node.tokens.begin(), node.tokens.end());
  child->parent = node.parent;
  set_rows(node, std::nullopt);
  NodePtr& slot = node.parent->children.at(node.tokens.front());
  slot = child;  // Destroys the node.
}

void PrefixTrie::for_each(const std::function<void(const TrieRows& rows)>& visit) const {
  std::vector<const Node*> open;
  open.reserve(roots_.size());
  for (const auto& [key, top] : roots_) {
    open.push_back(top.get());
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const auto& [token, child] : node->children) {
      open.push_back(child.get());
    }
    if (node->rows) {
      visit({node->key, node->path(), *node->rows});
    }
  }
}

std::size_t PrefixTrie::node_count() const {
  std::size_t count = 0;
  for_each([&](const TrieRows&) { ++count; });
  return count;
}

}  // namespace saker::cache
