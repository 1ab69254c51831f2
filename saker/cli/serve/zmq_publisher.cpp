// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/serve/zmq_publisher.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <dlfcn.h>

#include <array>
#include <bit>
#include <cstddef>
#include <string_view>
#include <utility>

namespace saker::cli {
namespace {

// The constants of zmq.h that we use; they are part of the library's ABI 5.
constexpr int kPub = 1;
constexpr int kSendMore = 2;
constexpr int kDontWait = 1;
constexpr int kLinger = 17;
constexpr int kSendHighWater = 23;
constexpr int kLastEndpoint = 32;

constexpr int kMostMessages = 100'000;  // For one subscriber.
constexpr int kLingerMs = 1000;         // For the last messages.

#ifdef __APPLE__
constexpr const char* kLibrary = "libzmq.5.dylib";
#else
constexpr const char* kLibrary = "libzmq.so.5";
#endif

class Library {
 public:
  Library() : handle_(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
    require(
        handle_ != nullptr,
        ErrorCode::kUnsupported,
        "--kv-events: ZeroMQ's library is missing ({}): apt-get install libzmq5",
        kLibrary
    );
  }

  template <typename Function>
  Function* find(const char* name) const {
    void* const found = dlsym(handle_, name);
    require(found != nullptr, ErrorCode::kUnsupported, "{}: there is no {}", kLibrary, name);
    return std::bit_cast<Function*>(found);
  }

 private:
  void* handle_;  // It stays: its threads may.
};

}  // namespace

class ZmqPublisher::Impl {
 public:
  explicit Impl(const std::string& endpoint)
      : send_(library_.find<int(void*, const void*, std::size_t, int)>("zmq_send")),
        close_(library_.find<int(void*)>("zmq_close")),
        end_(library_.find<int(void*)>("zmq_ctx_term")),
        option_(library_.find<int(void*, int, void*, std::size_t*)>("zmq_getsockopt")) {
    const auto set = library_.find<int(void*, int, const void*, std::size_t)>("zmq_setsockopt");
    context_ = library_.find<void*()>("zmq_ctx_new")();
    socket_ = context_ == nullptr ? nullptr
                                  : library_.find<void*(void*, int)>("zmq_socket")(context_, kPub);
    require(socket_ != nullptr, ErrorCode::kCapacity, "--kv-events: no socket of ZeroMQ");
    for (const auto& [name, value] :
         {std::pair(kLinger, kLingerMs), std::pair(kSendHighWater, kMostMessages)}) {
      set(socket_, name, &value, sizeof(value));
    }
    if (library_.find<int(void*, const char*)>("zmq_bind")(socket_, endpoint.c_str()) != 0) {
      const int failed = library_.find<int()>("zmq_errno")();
      const std::string reason = library_.find<const char*(int)>("zmq_strerror")(failed);
      close();
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format(
              "--kv-events: can't listen at {}: {}; expected an endpoint such as tcp://*:5557",
              quote(endpoint),
              reason
          )
      );
    }
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() { close(); }

  std::string endpoint() const {
    std::array<char, 1024> text{};
    std::size_t size = text.size();
    return option_(socket_, kLastEndpoint, text.data(), &size) == 0 ? text.data() : "";
  }

  void send(std::string_view bytes, bool has_more) {
    send_(socket_, bytes.data(), bytes.size(), has_more ? kSendMore | kDontWait : kDontWait);
  }

 private:
  void close() {
    close_(socket_);
    end_(context_);
  }

  Library library_;
  int (*send_)(void*, const void*, std::size_t, int);
  int (*close_)(void*);
  int (*end_)(void*);
  int (*option_)(void*, int, void*, std::size_t*);
  void* context_ = nullptr;
  void* socket_ = nullptr;
};

ZmqPublisher::ZmqPublisher(const std::string& endpoint) : impl_(std::make_unique<Impl>(endpoint)) {}

ZmqPublisher::~ZmqPublisher() = default;

std::string ZmqPublisher::endpoint() const {
  return impl_->endpoint();
}

void ZmqPublisher::send(const std::string& topic, std::uint64_t number, const std::string& body) {
  constexpr int kBits = 8;
  std::string big_endian;
  for (int shift = 64 - kBits; shift >= 0; shift -= kBits) {
    big_endian.push_back(static_cast<char>(number >> shift & 0xFFU));
  }
  impl_->send(topic, true);
  impl_->send(big_endian, true);
  impl_->send(body, false);
}

}  // namespace saker::cli
