// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/serve/presets_file.h"

#include "saker/base/error.h"

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

class PresetsFile : public ::testing::Test {
 protected:
  std::vector<ModelPreset> read(const std::string& name, const std::string& text) const {
    return read_presets(folder_.write(name, text));
  }

  // The error without the folder.
  std::string mistake(const std::string& name, const std::string& text) const {
    try {
      read(name, text);
    } catch (const Error& error) {
      std::string message = error.what();
      const std::string folder = folder_.path().string() + "/";
      const std::size_t at = message.find(folder);
      return at == std::string::npos ? message : message.erase(at, folder.size());
    }
    return "";
  }

  testing::TemporaryDir folder_;
};

constexpr const char* kToml = R"(# Models of the team.
[defaults]
batch = 4
keep_alive = "10m"
sampling = { temperature = 0.5, top_p = 0.9 }

[models.writer]
model = "writer"
pinned = true

[models."coder-2.5"]
model = "Qwen/Qwen2.5-Coder-1.5B-Instruct"
aliases = ["gpt-4o", "small"]
batch = 2
context = 1024
prefix_cache = "16M"
prefill_step = 64
fast_prefill = true
sampling.temperature = 0.1
)";

constexpr const char* kJson = R"({
  "defaults": {"batch": 4, "keep_alive": "10m", "sampling": {"temperature": 0.5, "top_p": 0.9}},
  "models": {
    "writer": {"model": "writer", "pinned": true},
    "coder-2.5": {"model": "Qwen/Qwen2.5-Coder-1.5B-Instruct", "aliases": ["gpt-4o", "small"], "batch": 2, "context": 1024,
      "prefix_cache": "16M", "prefill_step": 64, "fast_prefill": true, "sampling": {"temperature": 0.1}}
  }
})";

TEST_F(PresetsFile, TomlAndJsonSayTheSame) {
  for (const auto& [name, text] :
       {std::pair("models.toml", kToml), std::pair("models.json", kJson)}) {
    SCOPED_TRACE(name);
    std::filesystem::create_directory(folder_.path() / "writer");
    const std::vector<ModelPreset> presets = read(name, text);
    ASSERT_EQ(presets.size(), 2U);
    const ModelPreset& writer = presets[0];  // The first of the file.
    EXPECT_EQ(writer.names, std::vector<std::string>{"writer"});
    EXPECT_EQ(writer.model, (folder_.path() / "writer").string());
    EXPECT_TRUE(writer.is_pinned);
    EXPECT_EQ(writer.batch, 4);
    EXPECT_EQ(writer.keep_alive, engine::KeepAlive(600'000));
    EXPECT_EQ(writer.preset.sampling.at("temperature"), 0.5);
    EXPECT_FALSE(writer.fast_prefill);
    const ModelPreset& coder = presets[1];
    EXPECT_EQ(coder.names, (std::vector<std::string>{"coder-2.5", "gpt-4o", "small"}));
    EXPECT_EQ(coder.model, "Qwen/Qwen2.5-Coder-1.5B-Instruct");
    EXPECT_EQ(coder.batch, 2);
    EXPECT_EQ(coder.prefix_cache, std::size_t{16} << 20);
    EXPECT_EQ(coder.prefill_step, 64);
    EXPECT_EQ(coder.fast_prefill, true);
    EXPECT_EQ(coder.preset.context, 1024);
    EXPECT_EQ(coder.preset.sampling.at("temperature"), 0.1);
    EXPECT_EQ(coder.preset.sampling.at("top_p"), 0.9);
  }
}

TEST_F(PresetsFile, MistakesNameFileLineAndMember) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"[models.a]\nmodel = \"\"\nbatches = 3\n", "3: models.a.batches: there is no such member"},
      {"[models.a]\nmodel = \"\"\nbatch = 0\n",
       "3: models.a.batch: expected an integer from 1 to 1024"},
      {"[models.\"b.5\"]\n\nmodel = 5\n", "3: models.b.5.model: expected a string"},
      {"\n[models.a]\nbatch = 1\n", "2: models.a.model"},
      {"[models.a]\nmodel = \"\"\nkv_bits = 5\n", "3: models.a.kv_bits: expected 4, 8, 16 or 32"},
      {"[models.a]\nmodel = \"\"\n[models.a.sampling]\nheat = 1\n", "3: models.a.sampling: "},
      {"[models.a]\nmodel = \"\"\nprefix_cache = \"much\"\n",
       "3: models.a.prefix_cache: expected bytes"},
      {"[models.a]\nmodel = \"\"\nkeep_alive = \"soon\"\n", "3: models.a.keep_alive: "},
      {"[models.a]\nmodel = \"\"\naliases = [\n  \"b\",\n  5,\n]\n", "3: models.a.aliases: "},
      {"[models.a]\nmodel = \"\"\nadapters.x = \"/no/such\"\n", "3: models.a.adapters.x: "},
      {"[defaults]\nbatch = \"a\"\n[models.a]\nmodel = \"\"\n",
       "2: defaults.batch: expected an integer"},
      {"[defaults]\naliases = [\"a\"]\n[models.a]\nmodel = \"\"\n",
       "2: defaults.aliases: belongs to one model"},
      {"[models.a]\nmodel = \"\"\n[other]\n", "3: other: there is no such member"},
      {"[models]\n", "1: models: there are no models"},
      {"[models.a]\nmodel = 1979-05-27\n", "2:9: models.a.model: expected a text"},
      {"[models.a]\nmodel = \"\"\nmodel = \"\"\n", "3:"},
      {"models = 5\n", "1: models: expected an object"},
      {"[models.a]\nmodel = \n", "2:"},
  };
  for (const auto& [text, says] : mistakes) {
    const std::string got = mistake("m.toml", text);
    EXPECT_NE(got.find("m.toml"), std::string::npos) << text << "\n" << got;
    EXPECT_NE(got.find(":" + says), std::string::npos) << text << "\n" << got;
    EXPECT_EQ(got.find('\n'), std::string::npos) << got;
  }
}

TEST_F(PresetsFile, MistakesInJsonHaveLinesToo) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"{\"models\": {\n\"a\": {\"model\": \"\",\n\"batch\": 0}}}", ":3: models.a.batch: "},
      {"{\"models\": {\"x\": {\"model\": \"\", \"aliases\": [[], {}, \"b\"]},\n\"a\": {}}}",
       ":1: models.x.aliases"},
      {"{\"models\": {\n\"a\": {}}}", ":2: models.a.model"},
      {"{\n\"models\": {}}", ":2: models: there are no models"},
      {"{\"models\": {\"a\": {\"model\": \"\"}, \"a\": {\"model\": \"\"}}}", "m.json"},
      {"[]", ": expected an object, got a list"},
      {"{}", ": models"},
      {"", "m.json"},
  };
  for (const auto& [text, says] : mistakes) {
    const std::string got = mistake("m.json", text);
    EXPECT_NE(got.find("m.json"), std::string::npos) << text << "\n" << got;
    EXPECT_NE(got.find(says), std::string::npos) << text << "\n" << got;
  }
}

}  // namespace
}  // namespace saker::cli
