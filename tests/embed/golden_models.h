// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tiny models of tests/golden/embedding, and what sentence-transformers computed with them
// (tools/make_embedding_goldens.py).

#include "saker/base/json/json.h"
#include "saker/embed/pooled_rows.h"
#include "saker/load/checkpoint.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace saker::embed {

struct GoldenModel {
  explicit GoldenModel(const std::string& name)
      : path(std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/embedding" / name),
        golden(read_json_file(path / "golden.json")),
        loaded(load::load_checkpoint(path)),
        tokens(golden.at("tokens").get<std::vector<std::vector<std::int32_t>>>()) {
    for (const std::vector<std::int32_t>& ids : tokens) {
      if (!ids.empty()) {
        sequences.emplace_back(ids);
      }
    }
  }

  const models::Model& model() const { return *loaded.model; }

  // The vectors of `sequences`.
  std::vector<std::vector<float>> vectors(const std::string& key) const {
    std::vector<std::vector<float>> result;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (!tokens[i].empty()) {
        result.push_back(golden.at(key).at(i).get<std::vector<float>>());
      }
    }
    return result;
  }

  std::filesystem::path path;
  Json golden;
  load::LoadedCheckpoint loaded;
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<TokenSpan> sequences;
};

inline void expect_near(
    const std::vector<std::vector<float>>& got,
    const std::vector<std::vector<float>>& wanted,
    float tolerance
) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), wanted[i].size());
    for (std::size_t at = 0; at < got[i].size(); ++at) {
      EXPECT_NEAR(got[i][at], wanted[i][at], tolerance) << "row " << i << ", element " << at;
    }
  }
}

}  // namespace saker::embed
