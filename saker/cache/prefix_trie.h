// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of many sequences by their tokens: a compressed trie (a radix tree,
// https://en.wikipedia.org/wiki/Radix_tree) under each key. A node's edge is a run of tokens, and
// the node owns exactly the rows of its edge. No two children of a node start with the same token.
// Sequences with a common prefix share its nodes, and thus their memory.
//
// The rows never exceed the byte budget; a shared block counts once. Eviction cuts rows from the
// ends of leaves. Leaves that no sequence uses go first, then the least recently used, then the
// deepest, then the largest. If memory runs out, a member that throws has changed no rows, or has
// evicted some. Threading: one thread.

#include "saker/cache/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cache {

using TokenSpan = std::span<const std::int32_t>;

// Rows that leave the trie or are in it: the rows of the last tokens of `path`.
struct TrieRows {
  std::string_view key;
  std::vector<std::int32_t> path;  // All rows->last() tokens from the root on.
  const SequenceSnapshot& rows;
};

class PrefixTrie {
  struct Node;

 public:
  // Protects the path to a node from eviction as long as anything else can go.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept;
    Pin& operator=(Pin&& other) noexcept;
    ~Pin();

   private:
    friend class PrefixTrie;
    explicit Pin(std::shared_ptr<Node> node);
    std::shared_ptr<Node> node_;
  };

  // Called with rows just before they are evicted.
  using Evicted = std::function<void(const TrieRows& rows)>;

  PrefixTrie(std::size_t byte_budget, Evicted evicted);
  PrefixTrie(const PrefixTrie&) = delete;
  PrefixTrie& operator=(const PrefixTrie&) = delete;
  ~PrefixTrie();

  // Number of leading tokens that have rows.
  std::int64_t match(std::string_view key, TokenSpan tokens) const;
  // The rows of the first match(key, tokens) tokens, which now count as used; none if 0.
  std::optional<SequenceSnapshot> find(std::string_view key, TokenSpan tokens);
  // Adds `rows`, which end at tokens.size(); existing rows stay. Does nothing unless rows.first()
  // <= match(key, tokens). Then evicts down to the budget.
  void insert(std::string_view key, TokenSpan tokens, const SequenceSnapshot& rows);
  // Evicts the end of one leaf; false if there is none.
  bool evict_one();
  // Pins the rows of these tokens that are held.
  Pin pin(std::string_view key, TokenSpan tokens);

  void for_each(const std::function<void(const TrieRows& rows)>& visit) const;

  std::size_t bytes() const { return memory_.bytes(); }

  std::int64_t evictions() const { return evictions_; }

  // Number of nodes with rows.
  std::size_t node_count() const;

 private:
  using NodePtr = std::shared_ptr<Node>;

  // End of a walk along tokens: in the edge of `node`, after `taken` of its tokens.
  struct Place {
    Node* node = nullptr;
    std::int64_t taken = 0;
    std::int64_t length = 0;  // Tokens matched from the root on.
  };

  Place walk(Node& root, TokenSpan tokens) const;
  Node* root(std::string_view key) const;
  Node& make_root(std::string_view key);
  void touch(Node* node);
  // Cuts the edge of `node` after `count` tokens. This node stays the lower part; returns the upper
  // one.
  Node& split(Node& node, std::int64_t count);
  void extend(Node& leaf, TokenSpan tokens, const SequenceSnapshot& rows);
  void add_child(Node& parent, TokenSpan tokens, const SequenceSnapshot& rows);
  void set_rows(Node& node, std::optional<SequenceSnapshot> rows);
  void evict();
  Node* next_victim() const;
  void cut_end(Node& leaf);
  void remove(Node& leaf);
  void merge_with_child(Node& node);

  std::size_t byte_budget_;
  Evicted evicted_;
  std::map<std::string, NodePtr, std::less<>> roots_;
  SharedBytes memory_;
  std::uint64_t clock_ = 0;
  std::int64_t evictions_ = 0;
};

}  // namespace saker::cache
