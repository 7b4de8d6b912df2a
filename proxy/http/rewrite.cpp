#include "proxy/http/rewrite.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "proxy/http/nominated.h"

namespace sluice {
namespace {

constexpr unsigned kMostForwards = 1'000'000;

// RFC 9110 §7.6.2: to all other methods Max-Forwards means nothing.
bool counts_forwards(const Head& head) {
  return head.method == "TRACE" || head.method == "OPTIONS";
}

std::size_t size_of(const Head& head) {
  std::size_t size = 0;
  for (const Field& field : head.fields) size += field.name.size() + field.value.size() + 4;
  return size;
}

// Appends to a string for which the room is made once. What does not fit after all makes more.
class Lines {
 public:
  Lines(std::string& out, std::size_t room) : out_(out) {
    const std::size_t before = out.size();
    out.resize(before + room);
    at_ = out.data() + before;
    end_ = out.data() + before + room;
  }
  ~Lines() { out_.resize(static_cast<std::size_t>(at_ - out_.data())); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  Lines& text(std::string_view text) {
    make_room(text.size());
    put(text);
    return *this;
  }
  Lines& number(std::uint64_t number) {
    make_room(kDigits);
    at_ = std::to_chars(at_, at_ + kDigits, number).ptr;
    return *this;
  }
  void field(std::string_view name, std::string_view value) {
    make_room(name.size() + value.size() + 4);
    put(name);
    put(": ");
    put(value);
    put("\r\n");
  }
  void field(std::string_view name, std::uint64_t value) {
    text(name).text(": ").number(value).text("\r\n");
  }

  // RFC 9110 §7.6.3: with the protocol in which the message came.
  void via(const Head& head, std::string_view name) {
    text("Via: 1.").number(head.minor).text(" ").text(name).text("\r\n");
  }
  // Without the names of what will not come (RFC 9110 §6.6.2).
  void trailer(const Field& field, const Nominated& nominated) {
    bool any = false;
    for_each_element(field.value, [&](std::string_view name) {
      if (is_forbidden_in_trailers(name) || nominated.has(name)) return;
      text(std::exchange(any, true) ? ", " : "Trailer: ").text(name);
    });
    if (any) text("\r\n");
  }

  static constexpr std::size_t kDigits = 20;
  // For the start line and the fields that are added, without what they take from elsewhere.
  static constexpr std::size_t kOwn = 256;

 private:
  void put(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void make_room(std::size_t size) {
    if (static_cast<std::size_t>(end_ - at_) < size) grow(size);
  }
  void grow(std::size_t size) {
    const auto used = static_cast<std::size_t>(at_ - out_.data());
    out_.resize(2 * out_.size() + size);
    at_ = out_.data() + used;
    end_ = out_.data() + out_.size();
  }

  std::string& out_;
  char* at_;
  char* end_;
};

}  // namespace

bool wants_upgrade(const Head& head) {
  if (head.minor == 0 || head.framing != Framing::none || head.method != "GET") return false;
  if (!head.lists(FieldName::connection, "upgrade")) return false;
  bool any = false;
  bool refused = false;
  for (const Field& field : head.fields) {
    if (field.id != FieldName::upgrade) continue;
    for_each_element(field.value, [&](std::string_view protocol) {
      any = true;
      refused |= equals_ignoring_case(protocol.substr(0, 2), "h2") ||
                 equals_ignoring_case(protocol.substr(0, 5), "HTTP/");
    });
  }
  return any && !refused;
}

std::string offered_protocols(const Head& request) {
  std::string all;
  for (const Field& field : request.fields) {
    if (field.id == FieldName::upgrade) all.append(field.value).append(",");
  }
  return all;
}

bool switches_as_asked(const Head& response, std::string_view offered) {
  bool any = false, all = true;
  for (const Field& field : response.fields) {
    if (field.id != FieldName::upgrade) continue;
    for_each_element(field.value, [&](std::string_view protocol) {
      bool known = false;
      for_each_element(offered, [&](auto one) { known |= equals_ignoring_case(one, protocol); });
      any = true;
      all &= known;
    });
  }
  return any && all;
}

int max_forwards(const Head& head) {
  if (!counts_forwards(head)) return -1;
  const Field* field = head.find(FieldName::max_forwards);
  if (field == nullptr) return -1;
  unsigned hops = 0;
  const auto end = field->value.data() + field->value.size();
  const auto [rest, error] = std::from_chars(field->value.data(), end, hops);
  if (rest != end || error == std::errc::invalid_argument) return -1;
  const bool too_many = error == std::errc::result_out_of_range || hops > kMostForwards;
  return static_cast<int>(too_many ? kMostForwards : hops);
}

bool has_valid_max_forwards(const Head& head) {
  if (!counts_forwards(head)) return true;
  return std::count_if(head.fields.begin(), head.fields.end(),
                       [](const Field& field) { return field.id == FieldName::max_forwards; }) <= 1;
}

void write_request(std::string& out, const Head& head, const Target& target, std::string_view name,
                   bool upgrade) {
  const Nominated nominated(head);
  const int hops = max_forwards(head);
  const bool expects = head.minor > 0;  // RFC 9110 §10.1.1: HTTP/1.0 knows no 100
  Lines lines(out, size_of(head) + head.method.size() + target.path.size() +
                       target.authority.size() + name.size() + Lines::kOwn);
  lines.text(head.method).text(" ");
  if (target.path.empty()) {
    // RFC 9112 §3.2.4: OPTIONS for a URL without a path is about the server as a whole.
    lines.text(head.method == "OPTIONS" ? "*" : "/");
  } else {
    if (target.path.front() == '?') lines.text("/");
    lines.text(target.path);
  }
  lines.text(" HTTP/1.1\r\n");
  lines.field("Host", target.authority);
  for (const Field& field : head.fields) {
    if (nominated.has(field.name)) continue;
    switch (field.id) {
      case FieldName::host:
      case FieldName::content_length:
      case FieldName::proxy_status: continue;  // RFC 9209 §2: a response's, and Proxy-* stays here
      case FieldName::max_forwards:
        if (hops > 0) {
          lines.field(field.name, static_cast<std::uint64_t>(hops - 1));
          continue;
        }
        break;
      case FieldName::upgrade:
        if (upgrade) lines.field(field.name, field.value);
        continue;
      case FieldName::trailer:
        if (head.framing == Framing::chunked) lines.trailer(field, nominated);
        continue;
      case FieldName::expect:
        if (!expects) continue;
        break;
      default:
        if (is_hop_by_hop(field.id)) continue;
        break;
    }
    lines.field(field.name, field.value);
  }
  if (head.framing == Framing::length) lines.field("Content-Length", head.length);
  if (head.framing == Framing::chunked) lines.field("Transfer-Encoding", "chunked");
  if (upgrade) lines.field("Connection", "Upgrade");
  lines.via(head, name);
  lines.text("\r\n");
}

void write_response(std::string& out, const Head& head, const ResponsePlan& plan,
                    std::string_view name, std::string_view date) {
  const Nominated nominated(head);
  Lines lines(out, size_of(head) + head.phrase.size() + name.size() + date.size() + Lines::kOwn);
  lines.text("HTTP/1.1 ").number(head.status).text(" ").text(head.phrase).text("\r\n");
  bool dated = false;
  // Without a body the length may still be told: what a GET would have had (RFC 9110 §8.6), but
  // never in a 1xx or 204.
  const bool tells_length =
      plan.framing == Framing::none && head.status >= 200 && head.status != 204;
  for (const Field& field : head.fields) {
    if (nominated.has(field.name)) continue;
    switch (field.id) {
      case FieldName::content_length:
        if (!tells_length) continue;
        break;
      case FieldName::date: dated = true; break;
      case FieldName::upgrade:
        if (plan.upgrade) lines.field(field.name, field.value);
        continue;
      case FieldName::trailer:
        if (plan.framing == Framing::chunked) lines.trailer(field, nominated);
        continue;
      default:
        if (is_hop_by_hop(field.id)) continue;
        break;
    }
    lines.field(field.name, field.value);
  }
  if (!dated && head.status >= 200) lines.field("Date", date);
  if (plan.framing == Framing::length) lines.field("Content-Length", head.length);
  if (plan.framing == Framing::chunked) lines.field("Transfer-Encoding", "chunked");
  lines.via(head, name);
  if (plan.upgrade) {
    lines.field("Connection", plan.close ? "Upgrade, close" : "Upgrade");
  } else if (plan.close) {
    lines.field("Connection", "close");
  }
  lines.text("\r\n");
}

}  // namespace sluice
