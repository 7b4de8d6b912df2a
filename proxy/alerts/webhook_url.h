// The address of a webhook: whether it may be used, and what of it may be shown. Its path is a
// secret: whoever has it can write there.
#pragma once

#include <string>

namespace sluice {

// What is wrong with it, never showing it; empty: nothing. https://, or http:// to this machine.
std::string webhook_problem(const std::string& url);

// "https://hooks.slack.com/…"
std::string webhook_shown(const std::string& url);

// A line of a configuration as a complaint may show it: as long as before, so that columns stay,
// with stars for what is secret in the address of a webhook.
std::string without_webhook(std::string line);

}  // namespace sluice
