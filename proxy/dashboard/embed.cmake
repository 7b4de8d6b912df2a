# cmake -D OUT=assets.cpp -D "FILES=a.js;b.css" -P embed.cmake : writes the files' bytes as C++.
set(type_of.html "text/html; charset=utf-8")
set(type_of.css "text/css; charset=utf-8")
set(type_of.js "text/javascript; charset=utf-8")
set(type_of.svg "image/svg+xml")

set(arrays "")
set(rows "")
set(number 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  get_filename_component(extension ${file} LAST_EXT)
  set(type "${type_of${extension}}")
  if(NOT type)
    message(FATAL_ERROR "${name}: no content type is known for ${extension}")
  endif()
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {\n${bytes}\n};\n")
  string(APPEND rows "    {\"/${name}\", \"${type}\", view(kFile${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE ${OUT} "// Written by embed.cmake.
#include \"proxy/dashboard/assets.h\"

#include <cstddef>

namespace sluice {
namespace {

${arrays}
template <std::size_t N>
std::string_view view(const unsigned char (&bytes)[N]) {
  return {reinterpret_cast<const char*>(bytes), N};
}

}  // namespace

const Asset* find_asset(std::string_view path) {
  static const Asset kAssets[] = {
${rows}  };
  for (const Asset& asset : kAssets)
    if (asset.path == path) return &asset;
  return nullptr;
}

}  // namespace sluice
")
