// SPDX-License-Identifier: Apache-2.0
#pragma once

// TLS by OpenSSL, on bytes: no sockets. A context has the certificate and its key, a session one
// connection. The server's thread only.

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace saker::server::http {

// One connection's TLS.
class TlsSession {
 public:
  // REQUIRES: a session of a server; takes it.
  explicit TlsSession(ssl_st* session);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Takes bytes from the wire and adds what they mean to `plain`. False: the client has ended the
  // session, or broke its rules. An answer on the wire may be due either way.
  bool take(std::string_view bytes, std::string& plain);
  // Encrypts `plain`; returns all bytes that are due on the wire, those of the handshake too.
  // REQUIRES: `plain` is empty before the handshake has ended.
  std::string wire(std::string_view plain);
  // The last bytes for the wire: no more is sent.
  std::string end();

  // The handshake has ended.
  bool is_open() const;

 private:
  ssl_st* ssl_;
};

// A certificate chain and its key, in PEM files that are read again when they change.
class TlsContext {
 public:
  // Throws kInvalidArgument for files that can't be read or do not belong together.
  TlsContext(std::filesystem::path certificate, std::filesystem::path key);

  // A session with the present files. It looks for changes once a second at most. Null without
  // memory.
  std::unique_ptr<TlsSession> session();

  // Reads the files again. Files that can't be used leave the old ones in use, with a line in the
  // log.
  void reload();

 private:
  using Time = std::filesystem::file_time_type;

  struct Times {
    Time certificate;
    Time key;

    bool operator==(const Times&) const = default;
  };

  Times times() const;

  std::filesystem::path certificate_;
  std::filesystem::path key_;
  Times read_;
  std::chrono::steady_clock::time_point looked_ = {};
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace saker::server::http
