#include "policy/sentence.h"

#include <string>

#include "policy/breaker.h"
#include "policy/units.h"

namespace sluice {
namespace {

struct StatusName {
  std::uint16_t code;
  std::string_view name;
};
constexpr StatusName status_names[] = {
    {200, "OK"},
    {202, "Accepted"},
    {302, "Found"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {429, "Too Many Requests"},
    {500, "Internal Server Error"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {529, "Overloaded"},
};

std::string answer(const HostState& state) {
  return state.status == 0 ? "a network failure" : status_name(state.status);
}

std::string why(const HostState& state) {
  switch (state.cause) {
    case Cause::none: return "an earlier failure";
    case Cause::named_time: return answer(state);
    case Cause::consecutive: return "failures in a row, the last of them " + answer(state);
    case Cause::window: return "too many failures, the last of them " + answer(state);
    case Cause::anti_bot: return "an anti-bot answer with status " + answer(state);
    case Cause::probe_failed: return "a probe that met " + answer(state);
    case Cause::operator_act:
      return state.reason.empty() ? "an operator shut it"
                                  : "an operator shut it (" + state.reason + ")";
    case Cause::no_credit: return answer(state) + " (out of credit)";
    case Cause::anomaly: return "an anomaly, " + state.reason;
  }
  return "an earlier failure";
}

// "2026-11-19", the separator, "10:02:11": rounded up to the second. By hand, for every refusal
// says it twice, and printf would be a fifth of what one costs.
std::string date_and_time(UtcTime at, char separator) {
  const auto since_epoch = std::chrono::ceil<std::chrono::seconds>(at.time_since_epoch());
  const auto days = std::chrono::floor<std::chrono::days>(since_epoch);
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  const std::chrono::hh_mm_ss time(since_epoch - days);
  std::string text = "0000-00-00 00:00:00";
  const auto write = [&text](std::size_t end, int value) {
    for (; value > 0 && end > 0; value /= 10) text[--end] = static_cast<char>('0' + value % 10);
  };
  write(4, static_cast<int>(date.year()));
  write(7, static_cast<int>(static_cast<unsigned>(date.month())));
  write(10, static_cast<int>(static_cast<unsigned>(date.day())));
  text[10] = separator;
  write(13, static_cast<int>(time.hours().count()));
  write(16, static_cast<int>(time.minutes().count()));
  write(19, static_cast<int>(time.seconds().count()));
  return text;
}

}  // namespace

std::string status_name(std::uint16_t status) {
  for (const auto& known : status_names) {
    if (known.code == status) return std::to_string(status) + ' ' + std::string(known.name);
  }
  return std::to_string(status);
}

std::string shut_by(const HostState& state) {
  return state.phase == Phase::closed ? std::string() : why(state);
}

std::string clock_time(UtcTime at, UtcTime utc_now) {
  const bool near = at - utc_now < 12h && utc_now - at < 12h;
  const std::string whole = date_and_time(at, ' ') + " UTC";
  constexpr std::size_t clock_size = sizeof("10:02:11 UTC") - 1;
  return near ? whole.substr(whole.size() - clock_size) : whole;
}

std::string iso_time(UtcTime at) { return date_and_time(at, 'T') + "Z"; }

std::string_view cause_word(Cause cause) {
  switch (cause) {
    case Cause::none: return "none";
    case Cause::named_time: return "named-time";
    case Cause::consecutive: return "consecutive";
    case Cause::window: return "window";
    case Cause::anti_bot: return "anti-bot";
    case Cause::probe_failed: return "probe-failed";
    case Cause::operator_act: return "operator";
    case Cause::no_credit: return "no-credit";
    case Cause::anomaly: return "anomaly";
  }
  return "none";
}

std::string_view phase_word(Phase phase) {
  switch (phase) {
    case Phase::closed: return "closed";
    case Phase::open: return "open";
    case Phase::half_open: return "half-open";
  }
  return "closed";
}

std::string sentence(std::string_view key, const HostState& state, Instant now, UtcTime utc_now) {
  std::string text(key);
  switch (phase_at(state, now)) {
    case Phase::closed: return text + " lets requests through";
    case Phase::half_open:
      text += state.leases.empty() ? " waits for a probe after " : " is being probed after ";
      return text + why(state);
    case Phase::open: break;
  }
  text += " is cooling down after " + why(state) + ": ";
  text += format_duration(state.until - now) + " left, until ";
  text += clock_time(utc_now + (state.until - now), utc_now);
  if (state.asked > Duration(0)) {
    text += "; the origin asked for " + format_duration(state.asked) + ", a probe will ask again";
  }
  return text;
}

}  // namespace sluice
