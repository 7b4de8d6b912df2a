#include "policy/classify.h"

#include <algorithm>
#include <utility>

#include "policy/dialects.h"
#include "policy/host_state.h"

namespace sluice {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }
std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
  return result;
}

// `lowered` is in lower case already.
bool equals(std::string_view text, std::string_view lowered) {
  return text.size() == lowered.size() && std::equal(text.begin(), text.end(), lowered.begin(),
                                                     [](char a, char b) { return lower(a) == b; });
}
bool contains(std::string_view text, std::string_view lowered) {
  return std::search(text.begin(), text.end(), lowered.begin(), lowered.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end();
}

constexpr std::uint16_t payment_required = 402, forbidden = 403, unavailable = 503;

struct BuiltinField {
  std::string_view name, text;
  std::vector<std::uint16_t> status;
};
std::vector<BuiltinField> builtin_fields() {
  return {
      {"cf-mitigated", "challenge", {}},          // Cloudflare
      {"x-amzn-waf-action", "challenge", {202}},  // AWS WAF: a failure in spite of 2xx
      {"x-amzn-waf-action", "captcha", {405}},    // AWS WAF
      {"x-dd-b", "", {401, 403}},                 // DataDome; X-DataDome alone is no block
      {"x-kpsdk-ct", "", {429}},                  // Kasada: not a rate, in spite of 429
      {"location", "/sorry/", {302}},             // Google
  };
}

std::vector<BodyMarker> builtin_bodies() {
  using Meaning = BodyMarker::Meaning;
  std::vector<BodyMarker> markers;
  // YouTube, often with 200. The apostrophe as typed, as typeset, and as JSON and HTML escape it.
  for (std::string_view apostrophe : {"'", "\xE2\x80\x99", "\\u2019", "\\u0027", "&#39;"}) {
    for (std::string_view that : {"", "that "}) {
      markers.push_back({.text = "confirm " + std::string(that) + "you" + std::string(apostrophe) +
                                 "re not a bot"});
    }
  }
  // Its player's answer; the bare word is an ordinary error of OpenID Connect and others.
  for (const char* colon : {":", ": "}) {
    markers.push_back({.text = "\"status\"" + std::string(colon) + "\"LOGIN_REQUIRED\"",
                       .status = {200, 403, 429}});
  }
  markers.push_back({.text = "unusual traffic from your computer network"});  // Google
  for (const char* text : {"_cf_chl_opt", "/cdn-cgi/challenge-platform/", "<title>Just a moment"}) {
    markers.push_back({.text = text, .status = {403, 503}});  // Cloudflare
  }
  markers.push_back({.text = "px-captcha", .status = {403, 429}});  // HUMAN, PerimeterX
  for (const char* text : {"Reference #", "Reference&#32;&#35;"}) {
    markers.push_back({.text = text, .status = {403}, .after = "Access Denied"});  // Akamai
  }
  for (const char* text : {"_Incapsula_Resource", "g-recaptcha", "h-captcha", "cf-turnstile"}) {
    // Not every error: a login form or a contact page may hold a CAPTCHA and be a 401 or a 404.
    markers.push_back({.text = text, .status = {403, 405, 429, 503}});
  }
  markers.push_back({.text = "secondary rate limit",  // GitHub
                     .status = {403, 429},
                     .meaning = Meaning::rate_limited});
  markers.push_back({.text = "regain access on",  // Anthropic, out of money
                     .status = {400},
                     .meaning = Meaning::no_credit,
                     .after = "usage limits"});
  return markers;
}

void append(std::string& said, std::string_view text) {
  if (said.size() < HostState::max_said) {
    said += printable(text, HostState::max_said - said.size());
  }
}

// "Retry-After: 30; x-ratelimit-remaining: 0"
std::string rate_fields(const FieldsView& fields) {
  std::string said;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!speaks_of_rates(fields[i].name)) continue;
    if (!said.empty()) append(said, "; ");
    append(said, fields[i].name);
    append(said, ": ");
    append(said, fields[i].value);
  }
  return said;
}

}  // namespace

std::shared_ptr<const MarkerSet> builtin_body_markers() {
  auto set = MarkerSet::build(builtin_bodies());
  return *set;
}

Result<Classifier> Classifier::make(const ClassifyRules& rules,
                                    std::shared_ptr<const MarkerSet> builtin) {
  Classifier result;
  result.rate_limited_ = StatusSet(rules.rate_limited);
  result.server_error_ = StatusSet(rules.server_error);
  result.scan_ = rules.scan;
  for (const auto& field : builtin_fields()) {
    result.field_markers_.push_back(
        {std::string(field.name), std::string(field.text), StatusSet(field.status)});
  }
  std::vector<BodyMarker> bodies;
  for (const Marker& marker : rules.markers) {
    if (marker.in == Marker::Place::body) {
      bodies.push_back({.text = marker.text, .status = marker.status});
    } else {
      const bool location = marker.in == Marker::Place::location;
      result.field_markers_.push_back({location ? "location" : lower(marker.name),
                                       lower(marker.text), StatusSet(marker.status)});
    }
  }
  result.body_markers_ = std::move(builtin);
  if (!bodies.empty()) {
    // The policy's own come first: what they say is more to the point.
    for (auto& marker : builtin_bodies()) bodies.push_back(std::move(marker));
    auto set = MarkerSet::build(std::move(bodies));
    if (!set) return Error{set.error()};
    result.body_markers_ = *set;
  }
  return result;
}

const Classifier::FieldMarker* Classifier::find_field_marker(std::uint16_t status,
                                                             const FieldsView& fields) const {
  for (const FieldMarker& marker : field_markers_) {
    if (!marker.status.admits(status)) continue;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto field = fields[i];
      if (equals(field.name, marker.name) && contains(field.value, marker.text)) return &marker;
    }
  }
  return nullptr;
}

OutcomeKind Classifier::kind_of(std::uint16_t status, const Signal& signal) const {
  if (rate_limited_.contains(status)) return OutcomeKind::rate_limited;
  if (status == unavailable && signal.retry_after) return OutcomeKind::rate_limited;
  if (status == forbidden && signal.exhausted()) return OutcomeKind::rate_limited;
  if (status == payment_required) return OutcomeKind::rate_limited;
  if (server_error_.contains(status)) return OutcomeKind::server_error;
  return status < 400 ? OutcomeKind::success : OutcomeKind::neutral;
}

Outcome Classifier::head(std::uint16_t status, const FieldsView& fields, UtcTime now) const {
  Outcome outcome{.status = status, .signal = read_signal(fields, now)};
  outcome.kind = kind_of(status, outcome.signal);
  if (const FieldMarker* marker = find_field_marker(status, fields)) {
    outcome.kind = OutcomeKind::anti_bot;
    append(outcome.said, marker->name);
    append(outcome.said, marker->text.empty() ? "" : ": " + marker->text);
  }
  if (outcome.kind == OutcomeKind::success || outcome.kind == OutcomeKind::neutral) return outcome;
  outcome.no_credit = status == payment_required && outcome.kind == OutcomeKind::rate_limited &&
                      !rate_limited_.contains(status);
  outcome.wait = outcome.signal.named_wait();
  if (outcome.said.empty()) outcome.said = rate_fields(fields);
  return outcome;
}

MarkerScan Classifier::scan(std::uint16_t status, std::string_view content_type) const {
  if (scan_ == 0 || !is_textual(content_type)) return {};
  return MarkerScan(body_markers_, status, scan_);
}

Outcome Classifier::body(Outcome head, std::size_t index) const {
  using Meaning = BodyMarker::Meaning;
  const BodyMarker& marker = body_markers_->marker(index);
  head.kind =
      marker.meaning == Meaning::anti_bot ? OutcomeKind::anti_bot : OutcomeKind::rate_limited;
  head.no_credit = marker.meaning == Meaning::no_credit;
  head.wait = head.signal.named_wait();
  head.said = printable(marker.text, HostState::max_said);
  return head;
}

bool is_textual(std::string_view content_type) {
  const auto type = lower(trim_spaces(content_type.substr(0, content_type.find(';'))));
  if (type.empty() || type.starts_with("text/")) return true;
  if (type.ends_with("+json") || type.ends_with("+xml")) return true;
  constexpr std::string_view others[] = {"application/json",
                                         "application/xml",
                                         "application/javascript",
                                         "application/x-ndjson",
                                         "application/ecmascript",
                                         "application/x-javascript",
                                         "application/x-www-form-urlencoded"};
  return std::find(std::begin(others), std::end(others), type) != std::end(others);
}

std::string printable(std::string_view bytes, std::size_t limit) {
  std::string text(bytes.substr(0, limit));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = ' ';
  }
  return text;
}

}  // namespace sluice
