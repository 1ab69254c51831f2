// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/pull_plan.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace saker::hub {
namespace {

using testing::expect_error;
using Paths = std::vector<std::string>;

std::vector<RemoteFile> files(Paths paths) {
  std::sort(paths.begin(), paths.end());
  std::vector<RemoteFile> found;
  for (const std::string& path : paths) {
    found.push_back({.path = path, .size = 1, .digest = std::string(40, 'a')});
  }
  return found;
}

Paths paths_of(const std::vector<RemoteFile>& files) {
  Paths paths;
  for (const RemoteFile& file : files) {
    paths.push_back(file.path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Paths small(const Paths& paths, const Paths& patterns = {}) {
  return paths_of(choose_small_files(files(paths), patterns));
}

constexpr const char* kIndexName = "model.safetensors.index.json";

Paths weights(const Paths& paths, std::string_view index = "") {
  return paths_of(choose_weights(files(paths), [&](const RemoteFile&) {
    return std::string(index);
  }));
}

TEST(PullPlan, SmallFilesOfModelFolders) {
  EXPECT_EQ(
      small({"config.json", "model.safetensors", "README.md", "x/config.json", "draft/config.json"}
      ),
      (Paths{"config.json", "draft/config.json"})
  );
  EXPECT_EQ(
      small({"model.safetensors", "adapters/a/adapter_config.json", "adapters/a/b/config.json"}),
      (Paths{"adapters/a/adapter_config.json"})
  );
  EXPECT_EQ(small({"model.safetensors", "draft/tokenizer.json"}), Paths{});
  EXPECT_EQ(
      small({"model.safetensors", "a/b.txt", "c.txt"}, {"*.txt"}), (Paths{"a/b.txt", "c.txt"})
  );
}

// Modules of sentence-transformers come with the model, and with nothing else.
TEST(PullPlan, ModulesBesideTheModel) {
  EXPECT_EQ(
      small({
          "1_Pooling/config.json",
          "2_Dense/config.json",
          "2_Dense/model.safetensors",
          "2_Dense/pytorch_model.bin",
          "config.json",
          "config_sentence_transformers.json",
          "model.safetensors",
          "modules.json",
          "onnx/config.json",
          "x/2_Dense/config.json",
          "_Dense/config.json",
          "2/config.json",
      }),
      (Paths{
          "1_Pooling/config.json",
          "2_Dense/config.json",
          "2_Dense/model.safetensors",
          "config.json",
          "config_sentence_transformers.json",
          "modules.json",
      })
  );
}

TEST(PullPlan, Weights) {
  EXPECT_EQ(weights({"model.safetensors", "model-1.safetensors"}), (Paths{"model.safetensors"}));
  EXPECT_EQ(
      weights({"model-1.safetensors", "model-2.safetensors", "other.safetensors", "model.bin"}),
      (Paths{"model-1.safetensors", "model-2.safetensors"})
  );
  EXPECT_EQ(
      weights({"adapters.safetensors", "adapter_config.json"}), (Paths{"adapters.safetensors"})
  );
  EXPECT_EQ(
      weights(
          {"model.safetensors.index.json", "a.safetensors", "b.safetensors", "model.safetensors"},
          R"({"weight_map": {"x": "a.safetensors", "y": "a.safetensors"}})"
      ),
      (Paths{"a.safetensors"})
  );
  EXPECT_EQ(weights({"draft/model.safetensors"}), Paths{});
  EXPECT_EQ(
      weights({"draft/config.json", "draft/model.safetensors"}), (Paths{"draft/model.safetensors"})
  );
}

TEST(PullPlan, StaleIndexes) {
  const char* const index =
      R"({"weight_map": {"x": "model-1-of-9.safetensors", "y": "mtp.safetensors"}})";
  EXPECT_EQ(
      weights({"model-1-of-2.safetensors", "model-2-of-2.safetensors", kIndexName}, index),
      (Paths{"model-1-of-2.safetensors", "model-2-of-2.safetensors"})
  );
  EXPECT_EQ(
      weights({"model-1-of-9.safetensors", kIndexName}, index), (Paths{"model-1-of-9.safetensors"})
  );
  EXPECT_EQ(weights({"model.safetensors", kIndexName}, "{"), (Paths{"model.safetensors"}));
}

TEST(PullPlan, IndexesThatLie) {
  const Paths paths{"model.safetensors.index.json", "config.json"};
  for (const char* index :
       {"",
        "[]",
        "{}",
        R"({"weight_map": []})",
        R"({"weight_map": {"x": 1}})",
        R"({"weight_map": {"x": "../a"}})",
        R"({"weight_map": {"x": "none"}})"}) {
    SCOPED_TRACE(index);
    expect_error(ErrorCode::kCorruptData, {"model.safetensors.index.json"}, [&] {
      weights(paths, index);
    });
  }
}

TEST(PullPlan, SaysWhatIsThereInstead) {
  expect_error(ErrorCode::kUnsupported, {"2 files", "'a.gguf'", "--include"}, [] {
    small({"a.gguf", "config.json"});
  });
  expect_error(ErrorCode::kUnsupported, {"0 files"}, [] { small({}); });
  EXPECT_EQ(small({"a.gguf", "config.json"}, {"a.*"}), (Paths{"a.gguf", "config.json"}));
}

TEST(PullPlan, OneGgufModel) {
  const auto chosen = [](const Paths& paths, const ModelName& name, const Paths& patterns = {}) {
    return choose_files(files(paths), name, patterns);
  };
  const Paths gguf{"config.json", "x-Q8_0.gguf", "x-Q4_K_M.gguf", "y.txt"};
  EXPECT_EQ(chosen(gguf, {"org/name"}).gguf, "x-Q4_K_M.gguf");
  EXPECT_EQ(paths_of(chosen(gguf, {"org/name"}).files), (Paths{"x-Q4_K_M.gguf"}));
  const ModelName named{"org/name", "", "Q8_0"};
  EXPECT_EQ(paths_of(chosen(gguf, named, {"*.txt"}).files), (Paths{"x-Q8_0.gguf", "y.txt"}));
  // Safetensors come first, and patterns choose by themselves.
  const Paths both{"config.json", "model.safetensors", "x-Q8_0.gguf"};
  EXPECT_EQ(paths_of(chosen(both, {"org/name"}).files), (Paths{"config.json"}));
  EXPECT_EQ(chosen(both, named).gguf, "x-Q8_0.gguf");
  EXPECT_EQ(chosen(gguf, {"org/name"}, {"*Q8*"}).gguf, "");
  expect_error(ErrorCode::kNotFound, {"org/name:F16", ":Q8_0", ":Q4_K_M"}, [&] {
    chosen(gguf, {"org/name", "", "F16"});
  });
  expect_error(ErrorCode::kUnsupported, {"org/name holds no", "pickles", "never read"}, [&] {
    chosen({"config.json", "pytorch_model.bin"}, {"org/name"});
  });
}

}  // namespace
}  // namespace saker::hub
