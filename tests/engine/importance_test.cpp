// SPDX-License-Identifier: Apache-2.0
// A model's importance matrix as a file, through the engine.
#include "saker/engine/measures/importance.h"

#include "saker/base/error.h"
#include "saker/load/checkpoint.h"
#include "saker/load/export/imatrix_file.h"
#include "saker/score/importance.h"

#include "tests/engine/model_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace saker::engine {
namespace {

using saker::testing::expect_error;

std::vector<std::int32_t> some_tokens(int count) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back((i * 37 + i * i) % 60);
  }
  return tokens;
}

TEST(WriteImportance, WritesTheSumsOfTheModel) {
  const ModelFolder folder("qwen3_moe");
  const testing::TemporaryDir dir;
  const auto tokens = some_tokens(100);
  const auto loaded =
      load::load_checkpoint(std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/qwen3_moe");
  const auto expected = score::measure_importance(*loaded.model, tokens, {.chunk = 40});
  for (const EngineOptions& options :
       {EngineOptions{.threads = 1}, EngineOptions{.threads = 3, .prefill_step = 7}}) {
    const auto engine = folder.load(options);
    const auto path = dir.path() / "a.gguf";
    const auto report = write_importance(
        *engine, {.tokens = tokens, .chunk = 40}, {.path = path, .dataset = "text.txt"}
    );
    EXPECT_EQ(report.chunks, 2);
    EXPECT_EQ(report.tokens, 80);
    EXPECT_EQ(report.entries, static_cast<std::int64_t>(expected.modules.size()));
    EXPECT_GT(report.experts, 0);
    const auto file = load::gguf::read_imatrix(path);
    EXPECT_EQ(file.chunk_count, 2U);
    EXPECT_EQ(file.chunk_size, 40U);
    EXPECT_EQ(file.datasets, std::vector<std::string>{"text.txt"});
    EXPECT_EQ(file.entries.size(), expected.modules.size());
    // GGUF files cannot describe this model's router, so that names stay the folder's.
    for (const std::string module :
         {"model.layers.0.self_attn.v_proj", "model.layers.2.mlp.switch_mlp.down_proj"}) {
      const auto& squares = *expected.modules.at(module);
      const auto& entry = file.entries.at(module + ".weight");
      EXPECT_EQ(entry.sums, std::vector<float>(squares.sums.begin(), squares.sums.end())) << module;
      EXPECT_EQ(entry.counts, std::vector<float>(squares.counts.begin(), squares.counts.end()));
    }
  }
}

TEST(WriteImportance, LeavesNoFileBehindAFailure) {
  const ModelFolder folder("llama");
  const testing::TemporaryDir dir;
  const auto engine = folder.load();
  const auto path = dir.path() / "a.gguf";
  expect_error(ErrorCode::kInvalidArgument, {"at least one chunk"}, [&] {
    write_importance(*engine, {.tokens = some_tokens(10), .chunk = 40}, {.path = path});
  });
  const auto stop = [](std::int64_t, std::int64_t) { throw Error(ErrorCode::kCancelled, "stop"); };
  expect_error(ErrorCode::kCancelled, {"stop"}, [&] {
    write_importance(
        *engine, {.tokens = some_tokens(50), .chunk = 40, .progress = stop}, {.path = path}
    );
  });
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  expect_error(ErrorCode::kNotFound, {"nowhere"}, [&] {
    write_importance(
        *engine,
        {.tokens = some_tokens(50), .chunk = 40},
        {.path = dir.path() / "nowhere" / "a.gguf"}
    );
  });
}

}  // namespace
}  // namespace saker::engine
