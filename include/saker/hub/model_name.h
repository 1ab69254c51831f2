// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of models on the Hugging Face hub, of their revisions and files. Names come from outside
// and become parts of paths and addresses, so anything that is not plainly a name is refused.

#include <optional>
#include <string>
#include <string_view>

namespace saker::hub {

// The default revision.
inline constexpr std::string_view kMainRevision = "main";

// A model at a revision: "org/name", "name", "org/name@revision"; or one GGUF model of it:
// "org/name:Q4_K_M", "org/name:path/to/model.gguf@revision".
struct ModelName {
  std::string repo;
  std::string revision = {};  // A branch, tag or commit; empty if not given.
  std::string file = {};      // The GGUF model, see saker/hub/gguf_choice.h; empty: no choice.

  bool operator==(const ModelName&) const = default;
};

// Empty when `text` can't be the name of a model. Names may begin with "hf.co/" or
// "huggingface.co/". They may also be addresses of a model's pages or files there, with or without
// https://: .../tree/REVISION, .../blob/REVISION/FILE.gguf, .../resolve/... Addresses below the
// environment's endpoint are accepted too.
std::optional<ModelName> parse_model_name(std::string_view text);

// As parse_model_name, but throws kInvalidArgument, which explains names.
ModelName require_model_name(std::string_view text);

// The end of an error message about a text that is no name: what names look like.
std::string name_hint(std::string_view text);

// The form that messages and commands show; parse_model_name accepts it.
std::string to_string(const ModelName& name);

// One part of a repo id, or the name of a snapshot: letters, digits, '.', '-', '_', at most 96.
bool is_plain_name(std::string_view name);

// A branch ("main", "refs/pr/1"), tag or commit: relative, without "..", at most 255 bytes.
bool is_revision(std::string_view name);

// 40 lower-case hexadecimal digits.
bool is_commit(std::string_view name);

// The SHA-256 or git SHA-1 of a file, in lower-case hexadecimal digits.
bool is_digest(std::string_view name);

// True for a text that may follow the colon: a file's path or the end of its name, without ':' and
// '@'.
bool is_file_choice(std::string_view text);

// A file's path in a repository: relative, of plain parts (no "", "." and ".."), without control
// characters and backslashes, at most 1024 bytes.
bool is_file_path(std::string_view path);

}  // namespace saker::hub
