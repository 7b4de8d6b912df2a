// The files of the dashboard, compiled into the program by embed.cmake. Constant: any thread.
#pragma once

#include <string_view>

namespace sluice {

struct Asset {
  std::string_view path;  // "/app.js"
  std::string_view type;
  std::string_view bytes;
};

const Asset* find_asset(std::string_view path);  // null: there is none

}  // namespace sluice
