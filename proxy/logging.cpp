#include "proxy/logging.h"

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace sluice {
namespace {

constexpr std::size_t kWaiting = 8192;  // messages; the oldest make room for new ones

// %*: the message as a JSON string, whatever is in it.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string text(message.payload.data(), message.payload.size());
    const std::string quoted =
        nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(quoted.data(), quoted.data() + quoted.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

// %j: sd-daemon(3), the priority at the start of a line.
class JournalPriority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string_view prefix = prefix_of(message.level);
    out.append(prefix.data(), prefix.data() + prefix.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JournalPriority>();
  }

 private:
  static std::string_view prefix_of(spdlog::level::level_enum level) {
    switch (level) {
      case spdlog::level::critical: return "<2>";
      case spdlog::level::err: return "<3>";
      case spdlog::level::warn: return "<4>";
      case spdlog::level::info: return "<6>";
      default: return "<7>";
    }
  }
};

std::unique_ptr<spdlog::formatter> lines(bool json, bool journal) {
  std::string pattern = json      ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%*})"
                        : journal ? "%v"
                                  : "%Y-%m-%d %H:%M:%S.%e %l %v";
  if (journal) pattern = "%j" + pattern;
  const auto clock = json ? spdlog::pattern_time_type::utc : spdlog::pattern_time_type::local;
  auto formatter = std::make_unique<spdlog::pattern_formatter>(clock);
  formatter->add_flag<JsonMessage>('*').add_flag<JournalPriority>('j').set_pattern(pattern);
  return formatter;
}

// systemd.exec(5): $JOURNAL_STREAM is device:inode of the stream; ours may have been redirected
// since.
bool stderr_is(const std::string& journal_stream) {
  struct stat found;
  return fstat(STDERR_FILENO, &found) == 0 &&
         journal_stream == std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino);
}

}  // namespace

void start_logging(const LogConfig& config, const std::string& journal_stream) {
  spdlog::init_thread_pool(kWaiting, 1);
  auto logger = std::make_shared<spdlog::async_logger>(
      "sluice", std::make_shared<spdlog::sinks::stderr_sink_mt>(), spdlog::thread_pool(),
      spdlog::async_overflow_policy::overrun_oldest);
  logger->set_formatter(lines(config.format == "json", stderr_is(journal_stream)));
  logger->set_level(spdlog::level::from_str(config.level));
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
  spdlog::flush_every(std::chrono::seconds(1));
}

void end_logging() { spdlog::shutdown(); }

}  // namespace sluice
