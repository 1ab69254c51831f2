// SPDX-License-Identifier: Apache-2.0
// Any bytes as what servers answer to a GET, one answer after the other, each with a zero byte
// behind it: through libcurl, as a list, as a file of a model or as a range of one. The GET ends
// with a body that its receiver took in order, or with a typed error. The first byte chooses who
// receives, the second how much of the file is there.
#include "saker/base/error.h"
#include "saker/hub/blob_download.h"
#include "saker/hub/http/http_get.h"
#include "saker/hub/http/receiver.h"
#include "saker/hub/repo_cache.h"

#include "tests/fuzz/input.h"
#include "tests/support/temporary_dir.h"
#include <curl/curl.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv is POSIX's.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace {

namespace hub = saker::hub;

using saker::fuzz::expect;

constexpr std::uintmax_t kFileBytes = 64;

// Bytes in order, as a list has them.
class Text final : public hub::Receiver {
 public:
  // `wanted`: bytes behind those that are there, alone; none: all.
  Text(std::uintmax_t have, std::optional<std::uintmax_t> wanted) : have_(have) {
    if (wanted) {
      end_ = have + *wanted;
    }
  }

  std::uintmax_t have() const override { return have_; }

  std::optional<std::uintmax_t> wanted_end() const override { return end_; }

  void check(const hub::ResponseHead& head) override { expect(head.status >= 200); }

  void begin(std::uintmax_t offset) override {
    expect(offset == 0 || offset == have_);
    expect(!wrote_);  // The head of an answer ends once.
    have_ = offset;
    begun_ = true;
  }

  void write(std::span<const std::byte> bytes) override {
    expect(begun_);
    have_ += bytes.size();
    expect(!end_ || have_ <= *end_);
    wrote_ = true;
  }

  void next_answer() {
    begun_ = false;
    wrote_ = false;
  }

  bool is_complete() const override { return !end_ || have_ == *end_; }

 private:
  std::uintmax_t have_;
  std::optional<std::uintmax_t> end_;
  bool begun_ = false;  // In this answer, also below.
  bool wrote_ = false;
};

// A server in this thread, on a socket of the file system: curl connects, and just before it sends
// its request the whole answer is sent.
class Server {
 public:
  Server() : path_((dir_.path() / "socket").string()) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    expect(path_.size() < sizeof(address.sun_path));
    path_.copy(address.sun_path, path_.size());
    expect(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    expect(::listen(listener_, 4) == 0);
  }

  const char* path() const { return path_.c_str(); }

  void prepare(std::string_view answer) { answer_ = answer; }

  // What is longer than the system's buffer is cut.
  void send() {
    connection_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    ::send(connection_, answer_.data(), answer_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    ::shutdown(connection_, SHUT_WR);
  }

  // Also connections that ended before a request was due.
  void close() {
    do {
      ::close(connection_);
      connection_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    } while (connection_ >= 0);
  }

 private:
  saker::testing::TemporaryDir dir_;
  std::string path_;
  std::string_view answer_;
  int listener_ = -1;
  int connection_ = -1;
};

int send_answer(
    void* server, char* /*ip*/, char* /*local_ip*/, int /*port*/, int /*local_port*/
) {
  static_cast<Server*>(server)->send();
  return CURL_PREREQFUNC_OK;
}

// One answer, whatever address it is asked from. True when the GET has ended.
bool answer(hub::HttpGet& get, std::string_view text) {
  static Server server;
  server.prepare(text);
  get.begin();
  CURL* const easy = get.easy();
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, server.path());
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, send_answer);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, &server);
  curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT, 5L);
  const CURLcode code = curl_easy_perform(easy);
  server.close();
  return get.end(code);
}

template <typename Next>
void run(hub::Receiver& receiver, saker::fuzz::Input& input, const Next& next) {
  hub::FetcherOptions options;
  options.endpoint = "http://127.0.0.1:9";
  options.token = "secret";
  hub::Contact contact;
  hub::HttpGet get(options, contact, "/api/models/a/b", "fuzz", receiver);
  constexpr int kMax = 16;  // With pauses that are left out here a GET ends by itself later.
  for (int i = 0; i < kMax && !answer(get, input.text()); ++i) {
    next();
  }
}

void run_file(std::uintmax_t have, saker::fuzz::Input& input) {
  static const saker::testing::TemporaryDir dir;
  const hub::RepoCache repo(dir.path(), "a/b");
  hub::RemoteFile file{
      .path = "model.safetensors",
      .size = kFileBytes,
      .digest = std::string(64, 'd'),
      .kind = hub::DigestKind::kSha256
  };
  repo.make_folders();
  dir.write(
      std::filesystem::relative(repo.part(file.digest), dir.path()).string(),
      std::string(std::min(have, kFileBytes), 'x')
  );
  hub::BlobDownload download(repo, std::move(file), std::string(40, 'c'), [] {});
  download.begin_turn();
  run(download, input, [] {});
  expect(download.have() <= kFileBytes);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  expect(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
  return ::setenv("SSL_CERT_FILE", "/dev/null", 1);  // TLS ends before it begins.
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  saker::fuzz::Input input(data, size);
  const unsigned kind = input.byte();
  const bool is_file = kind % 2 == 1;
  const bool is_range = kind % 4 == 2;
  const std::uintmax_t have = input.byte();
  try {
    if (is_file) {
      run_file(have, input);
    } else {
      constexpr std::uintmax_t kWanted = 16;
      Text text(have, is_range ? std::optional(kWanted) : std::nullopt);
      run(text, input, [&] { text.next_answer(); });
    }
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
