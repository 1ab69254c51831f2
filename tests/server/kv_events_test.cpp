// SPDX-License-Identifier: Apache-2.0
#include "saker/base/json/json.h"
#include "saker/server/kv_events/kv_event.h"
#include "saker/server/kv_events/publisher.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace saker::server::kv_events {
namespace {

BlockChange stored() {
  return {
      .what = BlockChange::What::kStored,
      .hashes = {0xFFFFFFFFFFFFFFFF},
      .parent = 7,
      .tokens = std::vector<std::int32_t>(64, 9)
  };
}

TEST(KvEvents, AreVllmsMaps) {
  const BlockChange removed{.what = BlockChange::What::kRemoved, .hashes = {1, 2}};
  const Json batch = Json::from_msgpack(event_batch({stored(), removed, {}}, EventForm::kMap, 1.5));
  EXPECT_EQ(batch[0], 1.5);
  EXPECT_EQ(batch[2], 0);
  const Json& first = batch[1][0];
  EXPECT_EQ(first["type"], "BlockStored");
  EXPECT_EQ(first["block_hashes"][0].get<std::uint64_t>(), 0xFFFFFFFFFFFFFFFF);
  EXPECT_EQ(first["parent_block_hash"], 7);
  EXPECT_EQ(first["token_ids"].size(), 64U);
  EXPECT_EQ(first["block_size"], 64);
  EXPECT_TRUE(first["lora_name"].is_null());
  EXPECT_EQ(first["extra_keys"], Json::array({nullptr}));
  EXPECT_EQ(
      batch[1][1], (Json{{"type", "BlockRemoved"}, {"block_hashes", {1, 2}}, {"medium", "GPU"}})
  );
  EXPECT_EQ(batch[1][2], (Json{{"type", "AllBlocksCleared"}}));
}

TEST(KvEvents, OldRoutersGetArrays) {
  const Json batch = Json::from_msgpack(event_batch({stored(), {}}, EventForm::kArray, 1.5));
  EXPECT_EQ(batch[1][0][0], "BlockStored");
  EXPECT_EQ(batch[1][0][2], 7);
  EXPECT_EQ(batch[1][0][4], 64);
  EXPECT_EQ(batch[1][1], Json::array({"AllBlocksCleared"}));
}

TEST(KvEvents, EachModelHasItsTopicAndNumbers) {
  std::vector<std::tuple<std::string, std::uint64_t, Json>> sent;
  {
    PublisherOptions options;
    options.send = [&](const std::string& topic, std::uint64_t number, const std::string& batch) {
      sent.emplace_back(topic, number, Json::from_msgpack(batch));
    };
    options.topic = "kv@here@{model}";
    options.most_waiting = 200;
    Publisher publisher(std::move(options));
    publisher.add("b", {});
    for (int i = 0; i < 100; ++i) {
      publisher.add("a", stored());
    }
  }
  std::uint64_t next = 0;
  for (const auto& [topic, number, batch] : sent) {
    if (topic == "kv@here@a") {
      EXPECT_EQ(number, next++);
      EXPECT_LE(batch[1].size(), 4U);
    } else {
      EXPECT_EQ(topic, "kv@here@b");
      EXPECT_EQ(number, 0U);
    }
  }
  EXPECT_GE(next, 1U);
}

}  // namespace
}  // namespace saker::server::kv_events
