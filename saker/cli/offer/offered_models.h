// SPDX-License-Identifier: Apache-2.0
#pragma once

// Models that a person may want to chat with: those of this machine, and well-known ones on the
// hub that fit its memory.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace saker::cli {

struct OfferedModel {
  std::string model;   // As `MODEL` names it.
  std::string source;  // "hub cache", "named", "ollama", "LM Studio"; what it is, of one to fetch.
  std::uintmax_t bytes = 0;
};

// Named ones first, then those of the hub cache, of ollama and of LM Studio. Models of the hub
// cache that give vectors instead of text are left out.
std::vector<OfferedModel> models_here();

// The largest ones of a short list that fit into `memory_bytes`, the largest first, and its least.
std::vector<OfferedModel> models_to_fetch(std::size_t memory_bytes);

}  // namespace saker::cli
