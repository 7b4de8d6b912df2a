#include "policy/robots.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace sluice {
namespace {

constexpr std::size_t kMaxAgents = 1000;
constexpr std::size_t kMaxAgentSize = 64;
constexpr std::size_t kMaxUserAgent = 512;  // what is looked at of it

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\f\v";
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// RFC 9309 §2.2.1: a product token is letters, "_" and "-"; digits are seen, too.
bool is_token_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// Seconds, fractions allowed. What is no such number says nothing.
std::optional<Duration> delay_of(std::string_view text) {
  double seconds = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(seconds) ||
      seconds < 0) {
    return std::nullopt;
  }
  const double most = std::chrono::duration<double>(kLongestCrawlDelay).count();
  return Duration(static_cast<Duration::rep>(std::min(seconds, most) * 1e6));
}

// The agent stands in the User-Agent as a word of its own.
bool names(std::string_view user_agent, std::string_view agent) {
  for (auto at = user_agent.find(agent); at != std::string_view::npos;
       at = user_agent.find(agent, at + 1)) {
    const auto end = at + agent.size();
    const bool begins = at == 0 || !is_token_char(user_agent[at - 1]);
    const bool ends = end == user_agent.size() || !is_token_char(user_agent[end]);
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace

// RFC 9309 §2.2.1: groups for the same agent are one; of several delays the longest counts.
void RobotsFile::add(const std::vector<std::string>& agents, Duration delay) {
  for (const std::string& agent : agents) {
    const auto same = groups_.find(agent);
    if (same != groups_.end()) {
      same->second = std::max(same->second, delay);
    } else if (groups_.size() < kMaxAgents) {
      groups_.emplace(agent, delay);
    }
  }
}

RobotsFile RobotsFile::parse(std::string_view text) {
  RobotsFile file;
  text = text.substr(0, kMaxRobotsSize);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<std::string> agents;  // of the group that is being read
  Duration delay{};                 // its own
  bool in_rules = false;            // its User-agent lines are over
  while (!text.empty()) {
    const auto line_end = text.find_first_of("\r\n");
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(line_end == std::string_view::npos ? text.size() : line_end + 1);
    line = line.substr(0, line.find('#'));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string key = lowered(trimmed(line.substr(0, std::min<std::size_t>(colon, 64))));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (key == "user-agent") {
      if (std::exchange(in_rules, false)) {
        file.add(std::exchange(agents, {}), std::exchange(delay, {}));
      }
      const bool fits = !value.empty() && value.size() <= kMaxAgentSize;
      if (fits && agents.size() < kMaxAgents) agents.push_back(lowered(value));
    } else if (key == "crawl-delay") {
      in_rules = true;
      delay = std::max(delay, delay_of(value).value_or(Duration(0)));
    } else if (key == "allow" || key == "disallow") {
      in_rules = true;
    }
  }
  file.add(agents, delay);
  return file;
}

Duration RobotsFile::crawl_delay(std::string_view user_agent) const {
  const std::string who = lowered(user_agent.substr(0, kMaxUserAgent));
  const auto everybody = groups_.find("*");
  Duration delay = everybody != groups_.end() ? everybody->second : Duration(0);
  std::size_t longest = 0;
  for (const auto& [agent, its_delay] : groups_) {
    if (agent.size() <= longest || !names(who, agent)) continue;
    longest = agent.size();
    delay = its_delay;
  }
  return delay;
}

}  // namespace sluice
