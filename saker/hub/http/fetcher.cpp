// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/http/fetcher.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/hub/http/http_get.h"
#include "saker/hub/http/receiver.h"
#include "saker/hub/http/web_address.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::hub {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Initializes libcurl once; never undone.
void begin_curl() {
  static const CURLcode failed = curl_global_init(CURL_GLOBAL_DEFAULT);
  require(failed == CURLE_OK, ErrorCode::kUnsupported, "libcurl: {}", curl_easy_strerror(failed));
}

// Keeps a short body, and the head of the last answer.
class TextReceiver final : public Receiver {
 public:
  TextReceiver(std::string_view what, std::size_t limit) : what_(what), limit_(limit) {}

  std::uintmax_t have() const override { return 0; }

  void check(const ResponseHead& head) override { text_.head = head; }

  void begin(std::uintmax_t /*offset*/) override { text_.body.clear(); }

  void write(std::span<const std::byte> bytes) override {
    require(
        bytes.size() <= limit_ - text_.body.size(),
        ErrorCode::kCorruptData,
        "{}: the answer is larger than the {} bytes that are read at most",
        what_,
        limit_
    );
    text_.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  bool is_complete() const override { return true; }

  Fetcher::Text take() { return std::move(text_); }

 private:
  std::string what_;
  std::size_t limit_;
  Fetcher::Text text_;
};

}  // namespace

struct Fetcher::Multi {
  Multi() : handle(curl_multi_init()) {}

  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;

  ~Multi() { curl_multi_cleanup(handle); }

  CURLM* handle;
};

Fetcher::Fetcher(FetcherOptions options)
    : options_(std::move(options)), texts_until_(Clock::now() + options_.text_limit) {
  require(
      origin_of(options_.endpoint).has_value(),
      ErrorCode::kInvalidArgument,
      "the hub's address is {}, expected http://HOST or https://HOST",
      quote(without_user(options_.endpoint))
  );
  begin_curl();
  multi_ = std::make_unique<Multi>();
  require(multi_->handle != nullptr, ErrorCode::kCapacity, "libcurl: out of memory");
}

Fetcher::~Fetcher() {
  drop_all();
}

void Fetcher::drop_all() {
  for (const auto& get : gets_) {
    if (get->is_running()) {
      curl_multi_remove_handle(multi_->handle, get->easy());
    }
  }
  gets_.clear();
}

void Fetcher::start(std::string_view path, std::string_view what, Receiver& receiver) {
  gets_.push_back(
      std::make_unique<HttpGet>(options_, contact_, std::string(path), std::string(what), receiver)
  );
}

void Fetcher::wake() noexcept {
  curl_multi_wakeup(multi_->handle);
}

// Begins transfers that are due; gives up those that can't begin.
void Fetcher::start_due() {
  const auto now = Clock::now();
  for (const auto& get : gets_) {
    if (get->is_due(now)) {
      get->begin();
      curl_multi_add_handle(multi_->handle, get->easy());
    }
  }
}

std::vector<Finished> Fetcher::wait(milliseconds limit) {
  const std::stop_callback woken(options_.stop, [this] { wake(); });
  require(!options_.stop.stop_requested(), ErrorCode::kCancelled, "interrupted");
  start_due();
  int running = 0;
  curl_multi_perform(multi_->handle, &running);
  std::vector<Finished> finished = take_results();
  if (!finished.empty()) {
    return finished;
  }
  for (const auto& get : gets_) {
    if (!get->is_running()) {
      const auto rest = std::chrono::duration_cast<milliseconds>(get->due() - Clock::now());
      limit = std::clamp(rest + milliseconds(1), milliseconds(0), limit);
    }
  }
  curl_multi_poll(multi_->handle, nullptr, 0, static_cast<int>(limit.count()), nullptr);
  curl_multi_perform(multi_->handle, &running);
  return take_results();
}

std::vector<Finished> Fetcher::take_results() {
  std::vector<Finished> finished;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_->handle, &left)) {
    if (message->msg != CURLMSG_DONE) {
      continue;
    }
    const CURLcode code = message->data.result;
    CURL* const easy = message->easy_handle;
    const auto get = std::find_if(gets_.begin(), gets_.end(), [&](const auto& candidate) {
      return candidate->easy() == easy;
    });
    curl_multi_remove_handle(multi_->handle, easy);
    Finished result{.receiver = &(*get)->receiver(), .error = nullptr};
    try {
      if (!(*get)->end(code)) {
        continue;
      }
    } catch (...) {
      result.error = std::current_exception();
    }
    gets_.erase(get);
    finished.push_back(std::move(result));
  }
  return finished;
}

Fetcher::Text Fetcher::get(std::string_view path, std::string_view what, std::size_t limit) {
  TextReceiver receiver(what, limit);
  const std::array wanted{
      Wanted{.path = std::string(path), .what = std::string(what), .receiver = &receiver}
  };
  get_all(wanted, 1);
  return receiver.take();
}

void Fetcher::get_all(std::span<const Wanted> wanted, int parallel) {
  constexpr milliseconds kLongestWait{1000};
  std::size_t started = 0;
  std::size_t done = 0;
  try {
    while (done < wanted.size()) {
      for (; started < wanted.size() && std::cmp_less(started - done, parallel); ++started) {
        start(wanted[started].path, wanted[started].what, *wanted[started].receiver);
      }
      require_time_for_texts();
      const auto left = std::chrono::ceil<milliseconds>(texts_until_ - Clock::now());
      for (const Finished& finished : wait(std::clamp(left, milliseconds(1), kLongestWait))) {
        if (finished.error) {
          std::rethrow_exception(finished.error);
        }
        ++done;
      }
    }
  } catch (...) {
    drop_all();  // The receivers end with the caller.
    throw;
  }
}

void Fetcher::require_time_for_texts() const {
  const auto late = std::ranges::find_if(gets_, [&](const auto& get) {
    return std::max(Clock::now(), get->due()) >= texts_until_;
  });
  if (late == gets_.end()) {
    return;
  }
  const HttpGet& get = **late;
  throw Error(
      ErrorCode::kCapacity,
      fmt::format(
          "{}: the hub has not told what the model holds within {} s{}",
          get.what(),
          std::chrono::duration<double>(options_.text_limit).count(),
          get.last_failure().empty() ? "" : fmt::format(" ({})", get.last_failure())
      )
  );
}

}  // namespace saker::hub
