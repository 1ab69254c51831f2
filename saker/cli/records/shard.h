// SPDX-License-Identifier: Apache-2.0
#pragma once

// A share of a file's records: `--shard I/N` gives the records of a file to N runs, each record to
// one of them. The record's id decides, so that a record stays where it is when others come or go.

#include "saker/base/json/json.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace saker::cli {

inline constexpr int kMostShards = 1 << 20;

struct Shard {
  int index = 0;
  int count = 1;

  // `id`: null or discarded without one. `number`: the record's place in its file, from 0.
  bool holds(const Json& id, std::int64_t number) const;
  // "2/8"
  std::string text() const;

  bool operator==(const Shard&) const = default;
};

// The index of the shard among `count` that holds a record. Never changes between versions: the
// checksum of the id's JSON text, or of its number in digits, modulo `count`.
int shard_of(const Json& id, std::int64_t number, int count);

// Reads "I/N" with 0 <= I < N; empty for other texts.
std::optional<Shard> read_shard(std::string_view text);

// Adds --shard.
CLI::Option* add_shard_option(CLI::App& command, Shard& shard);

}  // namespace saker::cli
