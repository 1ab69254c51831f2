// SPDX-License-Identifier: Apache-2.0
#pragma once

// The digests that name a hub file: SHA-256 of large ones (git LFS), git's SHA-1 of a blob, that is
// of "blob SIZE" with a NUL and then the bytes, of the others.

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
  // Of `size` bytes.
  Digest(DigestKind kind, std::uintmax_t size);

  void add(std::span<const std::byte> bytes);
  // In lower-case hexadecimal digits; nothing may be added after it.
  std::string finish();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const;
  };

  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace saker::hub
