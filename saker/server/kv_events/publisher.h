// SPDX-License-Identifier: Apache-2.0
#pragma once

// Publishes events of the prefix caches of all models. A thread sends them; no model waits for it.

#include "saker/server/kv_events/kv_event.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace saker::server::kv_events {

struct PublisherOptions {
  // Sends a message of three frames. It never waits, and throws nothing.
  std::function<void(const std::string& topic, std::uint64_t number, const std::string& batch)>
      send;
  std::string topic = "{model}";  // "{model}" becomes the model's name.
  EventForm form = EventForm::kMap;
  // Tokens and blocks that wait for the thread. Beyond, a model's blocks are said to be gone.
  std::size_t most_waiting = std::size_t{4} << 20;
};

class Publisher {
 public:
  explicit Publisher(PublisherOptions options);
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  // Sends what waits.
  ~Publisher();

  // From any thread.
  void add(const std::string& model, BlockChange change);

 private:
  using Waiting = std::map<std::string, std::vector<BlockChange>>;

  void run();

  PublisherOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Waiting waiting_;
  std::size_t waiting_size_ = 0;
  bool ends_ = false;
  std::map<std::string, std::uint64_t> numbers_;  // The next message's, by model. The thread's own.
  std::thread thread_;                            // The last member: it uses the others.
};

}  // namespace saker::server::kv_events
