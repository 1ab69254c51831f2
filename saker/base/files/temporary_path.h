// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names for files that do not have their final name yet, and what makes names durable. They hold 64 random bits, so that nobody
// can create them beforehand and processes do not collide, in whichever containers they run.

#include <filesystem>

namespace saker {

// ".<name>.<16 hexadecimal digits>.tmp" beside `path`; a very long <name> is left out.
std::filesystem::path temporary_path(const std::filesystem::path& path);

// Makes a new folder, so that nothing in it is another's. Throws kNotFound, naming `shown`, if it
// cannot be made or the name exists.
void make_new_folder(const std::filesystem::path& path, const std::filesystem::path& shown);

// Makes the names in a folder durable; empty: the current folder. Some file systems cannot; files are whole anyway.
void sync_folder(const std::filesystem::path& folder);

}  // namespace saker
