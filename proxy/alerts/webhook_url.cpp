#include "proxy/alerts/webhook_url.h"

#include <curl/curl.h>

#include <algorithm>
#include <string_view>

#include "proxy/net/address.h"
#include "proxy/owned.h"

namespace sluice {
namespace {

struct Parts {
  CURLUcode problem = CURLUE_OK;
  std::string scheme, host, port;
};

std::string part(CURLU* url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, 0) != CURLUE_OK) return {};
  const Owned<char, curl_free> owned(text);
  return owned.get();
}

// The parser that will be asked to go there.
Parts parts_of(const std::string& text) {
  const Owned<CURLU, curl_url_cleanup> url(curl_url());
  Parts out;
  out.problem = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0);
  if (out.problem != CURLUE_OK) return out;
  out.scheme = part(url.get(), CURLUPART_SCHEME);
  out.host = part(url.get(), CURLUPART_HOST);
  out.port = part(url.get(), CURLUPART_PORT);
  return out;
}

bool is_this_machine(const std::string& host) {
  if (host == "localhost") return true;
  const auto address = parse_ip(host);
  return address && address->is_loopback();
}

}  // namespace

std::string webhook_problem(const std::string& url) {
  if (url.empty()) return {};
  const Parts parts = parts_of(url);
  if (parts.problem != CURLUE_OK) {
    return std::string("not an address of a web server: ") + curl_url_strerror(parts.problem);
  }
  if (parts.scheme == "https") return {};
  if (parts.scheme != "http") return "must begin with https://";
  if (is_this_machine(parts.host)) return {};
  return "must begin with https://, because http:// shows its secret to everybody on the way; "
         "http:// goes to this machine only";
}

std::string webhook_shown(const std::string& url) {
  const Parts parts = parts_of(url);
  return parts.scheme + "://" + parts.host + (parts.port.empty() ? "" : ":" + parts.port) + "/...";
}

std::string without_webhook(std::string line) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  std::string words = line;
  std::transform(words.begin(), words.end(), words.begin(), lower);
  // Also when it is written wrong, or its key is: no other setting is such an address.
  std::size_t from = words.find("http");
  if (const std::size_t key = words.find("webhook"); key != std::string::npos) {
    from = std::min(from, words.find('=', key));
  }
  if (from == std::string::npos) return line;
  for (std::size_t i = from; i < line.size(); ++i) {
    if (std::string_view("\"' =,[]{}").find(line[i]) == std::string_view::npos) line[i] = '*';
  }
  return line;
}

}  // namespace sluice
