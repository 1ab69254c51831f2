# SPDX-License-Identifier: Apache-2.0
# Writes a C++ file with texts: cmake -D FOLDER=... -D OUT=... -P embed_files.cmake
# The texts are raw string literals, which every compiler reads fast. Large ones are compressed by gzip.
set(names
    highlight.js kHighlightJs index.html kIndexHtml katex.js kKatexJs licenses.txt kLicensesTxt
    policy.txt kPolicyTxt
)
set(compressed_names pdf.js kPdfJs pdf.worker.js kPdfWorkerJs)
set(code "#include \"saker/server/page/files.h\"\n\nnamespace saker::server::page {\n\n")
while(names)
  list(POP_FRONT names file constant)
  file(READ "${FOLDER}/${file}" text)
  if("${text}" MATCHES "\\)saker_page\"")
    message(FATAL_ERROR "${file} has the mark that ends a literal")
  endif()
  string(APPEND code "static constexpr char ${constant}Text[] = R\"saker_page(${text})saker_page\";\n")
  string(APPEND code "constinit const std::string_view ${constant}(${constant}Text, sizeof(${constant}Text) - 1);\n")
endwhile()
while(compressed_names)
  list(POP_FRONT compressed_names file constant)
  set(compressed "${OUT}.gz")
  file(
    ARCHIVE_CREATE OUTPUT "${compressed}" PATHS "${FOLDER}/${file}"
    FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9
  )
  file(READ "${compressed}" bytes HEX)
  file(REMOVE "${compressed}")
  # The head has the time, which would make each build another one.
  string(SUBSTRING "${bytes}" 0 8 head)
  string(SUBSTRING "${bytes}" 16 -1 rest)
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${head}00000000${rest}")
  string(APPEND code "static constexpr char ${constant}Bytes[] = \"${bytes}\";\n")
  string(APPEND code "constinit const std::string_view ${constant}(${constant}Bytes, sizeof(${constant}Bytes) - 1);\n")
endwhile()
string(APPEND code "\n}  // namespace saker::server::page\n")
file(WRITE "${OUT}" "${code}")
