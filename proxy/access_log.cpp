#include "proxy/access_log.h"

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

namespace sluice {
namespace {

double milliseconds(Duration duration) { return static_cast<double>(duration.count()) / 1000.0; }

std::string dash_if_empty(std::string_view text) { return text.empty() ? "-" : std::string(text); }

// What a client sent must not break the line or a terminal.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) out += c > 0x20 && c < 0x7f && c != '"' ? c : '?';
  return out;
}

}  // namespace

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& where, bool json) {
  std::unique_ptr<AccessLog> log(new AccessLog);
  log->json_ = json;
  try {
    spdlog::sink_ptr sink;
    if (where == "-") {
      sink = std::make_shared<spdlog::sinks::stdout_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(where);
    }
    log->logger_ =
        std::make_shared<spdlog::async_logger>("access", std::move(sink), spdlog::thread_pool(),
                                               spdlog::async_overflow_policy::overrun_oldest);
    log->logger_->set_pattern("%v");
    spdlog::register_logger(log->logger_);  // so that it is flushed with the others
  } catch (const spdlog::spdlog_ex& error) {
    return Error{"the access log " + where + " cannot be written: " + error.what()};
  }
  return log;
}

AccessLog::~AccessLog() { spdlog::drop("access"); }

void AccessLog::write(const AccessEntry& entry) {
  logger_->info(json_ ? format_json(entry) : format_text(entry));
}

std::string format_text(const AccessEntry& entry) {
  return fmt::format(
      "{} {} {} {} {} {} {} {}B/{}B {:.1f}ms {:.1f}ms {}", entry.id, dash_if_empty(entry.client),
      dash_if_empty(printable(entry.user)), printable(entry.method), printable(entry.host),
      dash_if_empty(printable(entry.path)), entry.status, entry.received, entry.sent,
      milliseconds(entry.to_first_byte), milliseconds(entry.total), dash_if_empty(entry.reason));
}

std::string format_json(const AccessEntry& entry) {
  nlohmann::ordered_json line{
      {"id", entry.id},
      {"client", entry.client},
      {"user", entry.user},
      {"method", entry.method},
      {"host", entry.host},
      {"path", entry.path},
      {"status", entry.status},
      {"received", entry.received},
      {"sent", entry.sent},
      {"first_byte_ms", milliseconds(entry.to_first_byte)},
      {"total_ms", milliseconds(entry.total)},
      {"reason", entry.reason},
  };
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sluice
