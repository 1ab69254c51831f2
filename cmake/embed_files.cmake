# SPDX-License-Identifier: Apache-2.0
# Writes a C++ file with texts: cmake -D FOLDER=... -D OUT=... -P embed_files.cmake
# The texts are raw string literals, which every compiler reads fast.
set(names
    highlight.js kHighlightJs index.html kIndexHtml katex.js kKatexJs licenses.txt kLicensesTxt
    policy.txt kPolicyTxt
)
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
string(APPEND code "\n}  // namespace saker::server::page\n")
file(WRITE "${OUT}" "${code}")
