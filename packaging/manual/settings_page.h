// sluice.toml(5): made from conf/sluice.toml, whose comments say what each setting means and whose
// values a test holds against the defaults.
#pragma once

#include <string>
#include <string_view>

namespace sluice::manual {

std::string settings_page(std::string_view conf);

}  // namespace sluice::manual
