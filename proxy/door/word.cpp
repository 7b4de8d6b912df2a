#include "proxy/door/word.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "proxy/job_name.h"

namespace sluice {
namespace {

constexpr std::size_t kRunLimit = 32;
constexpr std::string_view kNumbered = "numbered";

bool is_run(std::string_view text) {
  return !text.empty() && text.size() <= kRunLimit &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const char* end = text.data() + text.size();
  const auto done = std::from_chars(text.data(), end, out);
  return done.ec == std::errc() && done.ptr == end;
}

// Between single spaces.
std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  for (;;) {
    const auto space = line.find(' ');
    out.push_back(line.substr(0, space));
    if (space == std::string_view::npos) return out;
    line.remove_prefix(space + 1);
  }
}

}  // namespace

std::string introduction(const ExecRun& run) {
  return run.job + " " + run.run + " " + std::to_string(run.max_requests) +
         (run.numbered ? " " + std::string(kNumbered) : "") + "\n";
}

std::optional<ExecRun> read_introduction(std::string_view line) {
  const auto said = words(line);
  const bool numbered = said.size() == 4 && said.back() == kNumbered;
  if (said.size() != 3 && !numbered) return std::nullopt;
  ExecRun run{.job = std::string(said[0]), .run = std::string(said[1]), .numbered = numbered};
  if (run.job.empty() || run.job != job_name(run.job) || !is_run(run.run) ||
      !read_number(said[2], run.max_requests)) {
    return std::nullopt;
  }
  return run;
}

std::string farewell(const JobState& state) {
  return std::to_string(state.requests) + " " + std::to_string(state.held) + " " +
         std::to_string(state.refused) + " " + std::to_string(state.waited / 1us) + " " +
         std::to_string(state.cost) + "\n";
}

std::optional<JobState> read_farewell(std::string_view line) {
  const auto said = words(line);
  JobState state;
  std::int64_t waited = 0;
  if (said.size() != 5 || !read_number(said[0], state.requests) ||
      !read_number(said[1], state.held) || !read_number(said[2], state.refused) ||
      !read_number(said[3], waited) || !read_number(said[4], state.cost)) {
    return std::nullopt;
  }
  state.waited = std::chrono::microseconds(waited);
  return state;
}

}  // namespace sluice
