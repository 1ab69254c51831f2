// SPDX-License-Identifier: Apache-2.0
#pragma once

// The digests that name a hub file. Large files (git LFS) have SHA-256. Others have git's SHA-1 of
// a blob: the digest of "blob SIZE", a NUL and the bytes.

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace saker::hub {

enum class DigestKind : std::uint8_t { kSha256, kGitBlob };

class Digest {
 public:
  // For exactly `size` bytes.
  Digest(DigestKind kind, std::uintmax_t size);

  void add(std::span<const std::byte> bytes);
  // The digest in lower-case hexadecimal digits; nothing may be added after it.
  std::string finish();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const;
  };

  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace saker::hub
