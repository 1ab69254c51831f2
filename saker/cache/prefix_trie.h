// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of many sequences by their tokens: a compressed trie (a radix tree,
// https://en.wikipedia.org/wiki/Radix_tree) under each key. A node's edge is a run of tokens, and
// the node owns exactly the rows of its edge; no two children of a node start with the same token.
// Sequences with a common prefix share its nodes, and with them the memory.
//
// The rows held never exceed the byte budget, each shared block counted once. What has to go is cut
// from the ends of leaves: those that no sequence uses first, then the longest unused, of these the
// deepest and then the largest. Where memory runs out, what throws has changed no rows, or has
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

// Rows that leave the trie, or that are in it: those of the last tokens of `path`.
struct TrieRows {
  std::string_view key;
  std::vector<std::int32_t> path;  // All tokens from the root on, rows->last() of them.
  const SequenceSnapshot& rows;
};

class PrefixTrie {
  struct Node;

 public:
  // Keeps the path to a node from being evicted as long as anything else can go.
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

  // How many of the first tokens have rows.
  std::int64_t match(std::string_view key, TokenSpan tokens) const;
  // The rows of the first match(key, tokens) tokens; none for 0. Marks them as used now.
  std::optional<SequenceSnapshot> find(std::string_view key, TokenSpan tokens);
  // Adds `rows`, the last ones of tokens.size(); rows that are there stay. Nothing happens unless
  // rows.first() <= match(key, tokens). Then evicts down to the budget.
  void insert(std::string_view key, TokenSpan tokens, const SequenceSnapshot& rows);
  // Pins what is held of these tokens.
  Pin pin(std::string_view key, TokenSpan tokens);

  void for_each(const std::function<void(const TrieRows& rows)>& visit) const;

  std::size_t bytes() const { return memory_.bytes(); }

  std::int64_t evictions() const { return evictions_; }

  // Nodes with rows.
  std::size_t node_count() const;

 private:
  using NodePtr = std::shared_ptr<Node>;

  // Where a walk along tokens ended: in the edge of `node`, after `taken` of its tokens.
  struct Place {
    Node* node = nullptr;
    std::int64_t taken = 0;
    std::int64_t length = 0;  // Tokens matched from the root on.
  };

  Place walk(Node& root, TokenSpan tokens) const;
  Node* root(std::string_view key) const;
  Node& make_root(std::string_view key);
  void touch(Node* node);
  // Cuts the edge of `node` after `count` tokens; the lower part stays this node. Returns the upper
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
