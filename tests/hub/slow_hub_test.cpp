// SPDX-License-Identifier: Apache-2.0
// What a hub that answers slowly, later or strangely can do.
#include "saker/base/error.h"
#include "saker/hub/http/fetcher.h"

#include "tests/support/expect_error.h"
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace saker::hub {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using testing::expect_error;

bool send_all(int connection, std::string_view bytes) {
  return ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

// A server on this machine that gives one connection at a time to a function.
class Server {
 public:
  using Answer = std::function<void(int connection, int number, const std::stop_token& stop)>;

  explicit Server(Answer answer)
      : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }

  ~Server() {
    thread_.request_stop();
    thread_.join();
    ::close(listener_);
  }

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string address() const { return fmt::format("http://127.0.0.1:{}", port_); }

  int connections() const { return connections_; }

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd waiting{.fd = listener_, .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 20) != 1) {
        continue;
      }
      const int connection = ::accept(listener_, nullptr, nullptr);
      std::string request(4096, '\0');
      if (::recv(connection, request.data(), request.size(), 0) > 0) {
        answer_(connection, ++connections_, stop);
      }
      ::close(connection);
    }
  }

  const Answer answer_;
  const int listener_;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::jthread thread_;
};

// A byte at a time, 100 a second, for as long as somebody listens.
void drip(int connection, std::string_view head, const std::stop_token& stop) {
  bool listening = send_all(connection, head);
  while (listening && !stop.stop_requested()) {
    std::this_thread::sleep_for(milliseconds(10));
    listening = send_all(connection, "x");
  }
}

FetcherOptions options_for(const Server& server, milliseconds limit) {
  FetcherOptions options;
  options.endpoint = server.address();
  options.timeout = std::chrono::seconds(1);
  options.text_limit = limit;
  return options;
}

constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";

TEST(SlowHub, TextsHaveADeadline) {
  for (const std::string_view head :
       {kHead, std::string_view("HTTP/1.1 200 OK\r\nx: "), std::string_view("HTTP/1.1 200 ")}) {
    const Server server([&](int connection, int /*number*/, const std::stop_token& stop) {
      drip(connection, head, stop);
    });
    Fetcher fetcher(options_for(server, milliseconds(1500)));
    const auto begin = Clock::now();
    expect_error(ErrorCode::kCapacity, {"org/model", "within 1.5 s"}, [&] {
      fetcher.get("/api", "org/model", 1 << 20);
    });
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
    // All texts together.
    expect_error(ErrorCode::kCapacity, {"within 1.5 s"}, [&] {
      fetcher.get("/api", "org/model", 1 << 20);
    });
  }
}

TEST(SlowHub, ALaterAnswerThanTheDeadlineIsNotWaitedFor) {
  const Server server([](int connection, int /*number*/, const std::stop_token& /*stop*/) {
    send_all(
        connection,
        "HTTP/1.1 503 Busy\r\nRetry-After: 299\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
  });
  Fetcher fetcher(options_for(server, std::chrono::seconds(60)));
  const auto begin = Clock::now();
  expect_error(ErrorCode::kCapacity, {"within 60 s", "HTTP 503"}, [&] {
    fetcher.get("/api", "org/model", 1 << 20);
  });
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
}

TEST(SlowHub, BelowAKilobyteASecondIsTriedAgain) {
  const Server server([](int connection, int number, const std::stop_token& stop) {
    if (number == 1) {
      drip(connection, kHead, stop);
    } else {
      send_all(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]");
    }
  });
  Fetcher fetcher(options_for(server, std::chrono::seconds(60)));
  EXPECT_EQ(fetcher.get("/api", "org/model", 1 << 20).body, "[]");
  EXPECT_EQ(server.connections(), 2);
}

TEST(SlowHub, ATooLongHeadIsNoShortageOfMemory) {
  const Server server([](int connection, int /*number*/, const std::stop_token& /*stop*/) {
    const std::string line = "x: " + std::string(2'000'000, 'y');
    send_all(connection, "HTTP/1.1 200 OK\r\n" + line);
  });
  Fetcher fetcher(options_for(server, milliseconds(5000)));
  try {
    fetcher.get("/api", "org/model", 1 << 20);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(std::string_view(error.what()).find("Out of memory"), std::string_view::npos)
        << error.what();
  }
}

// libcurl 7.83 to 8.2 adds such a line to the last header of the request before, which it has freed
// when one handle makes both.
TEST(SlowHub, AHeadMayBeginWithAContinuation) {
  const Server server([](int connection, int number, const std::stop_token& /*stop*/) {
    constexpr std::string_view kEnd = "Content-Length: 2\r\nConnection: close\r\n\r\n[]";
    send_all(
        connection,
        number == 1 ? "HTTP/1.1 302 Found\r\nLocation: /b\r\n" + std::string(kEnd)
                    : "HTTP/1.1 200 OK\r\n x:" + std::string(200, 'x') + "\r\n" + std::string(kEnd)
    );
  });
  Fetcher fetcher(options_for(server, std::chrono::seconds(60)));
  try {  // Later versions leave the blanks out.
    EXPECT_EQ(fetcher.get("/api", "org/model", 1 << 20).body, "[]");
  } catch (const Error& error) {
    EXPECT_EQ(std::string_view(error.what()).find("org/model: "), 0) << error.what();
  }
  EXPECT_EQ(server.connections(), 2);
}

}  // namespace
}  // namespace saker::hub
