#include "proxy/alerts/webhook.h"

#include <curl/curl.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <utility>

#include "policy/classify.h"
#include "policy/sentence.h"
#include "proxy/alerts/body.h"
#include "proxy/alerts/webhook_url.h"
#include "proxy/owned.h"
#include "proxy/tls/handles.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxAnswer = 120;  // of what the receiver says, for the log

bool trust(SSL_CTX* context, const std::string& extra_ca) {
  if (SSL_CTX_set_default_verify_paths(context) != 1) return false;
  return extra_ca.empty() || SSL_CTX_load_verify_file(context, extra_ca.c_str()) == 1;
}

CURLcode set_trust(CURL*, void* context, void* extra_ca) {
  const bool done =
      trust(static_cast<SSL_CTX*>(context), *static_cast<const std::string*>(extra_ca));
  return done ? CURLE_OK : CURLE_SSL_CACERT_BADFILE;
}

std::size_t keep_answer(char* bytes, std::size_t, std::size_t size, void* out) {
  auto& answer = *static_cast<std::string*>(out);
  answer.append(bytes, std::min(size, kMaxAnswer - answer.size()));
  return size;
}

int is_over(void* ending, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(ending)->load() ? 1 : 0;
}

long milliseconds(Duration duration) { return static_cast<long>(duration / 1ms); }

// The message itself is refused: it would be refused again.
bool is_final(long status) {
  return status == 400 || status == 413 || status == 415 || status == 422;
}

Delivery judge(CURL* curl, const std::string& shown, const std::string& answer) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300) return {};
  Delivery out;
  out.kind = is_final(status) ? Delivery::Kind::never : Delivery::Kind::later;
  out.problem = shown + " answered " + status_name(static_cast<std::uint16_t>(status));
  const std::string said = printable(answer, kMaxAnswer);
  if (said.find_first_not_of(' ') != std::string::npos) out.problem += " (" + said + ")";
  curl_off_t seconds = 0;
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds);
  constexpr curl_off_t most = 24 * 3600;
  out.asked = std::chrono::seconds(std::clamp<curl_off_t>(seconds, 0, most));
  return out;
}

}  // namespace

Result<std::unique_ptr<Webhook>> Webhook::make(WebhookOptions options) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return Error{std::string("libcurl: ") + curl_easy_strerror(ready)};
  if (!options.extra_ca.empty()) {
    const SslContextPtr context(SSL_CTX_new(TLS_client_method()));
    if (!context || !trust(context.get(), options.extra_ca)) {
      return Error{"alerts.extra_ca " + options.extra_ca +
                   " cannot be used: " + take_openssl_error()};
    }
  }
  return std::unique_ptr<Webhook>(new Webhook(std::move(options)));
}

Webhook::Webhook(WebhookOptions options)
    : options_(std::move(options)), shown_(webhook_shown(options_.url)) {}

Delivery Webhook::deliver(const AlertMessage& message, UtcTime now,
                          const std::atomic<bool>& ending) {
  // A handle of its own for each: alerts are rare, and the last connection is stale by then.
  const Owned<CURL, curl_easy_cleanup> handle(curl_easy_init());
  if (!handle) return {Delivery::Kind::later, "libcurl has no memory", 0s};
  CURL* curl = handle.get();
  const std::string body = alert_body(message, options_.machine, now, BodyFor::chat);
  const Owned<curl_slist, curl_slist_free_all> fields(
      curl_slist_append(nullptr, "Content-Type: application/json"));
  std::string answer;
  char problem[CURL_ERROR_SIZE] = {};
  curl_easy_setopt(curl, CURLOPT_URL, options_.url.c_str());
  // Never through a proxy, ours least of all. Empty: not what http_proxy says either.
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  // Whom origins are verified against, not libcurl's own idea of a store.
  curl_easy_setopt(curl, CURLOPT_CAINFO, nullptr);
  curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, set_trust);
  curl_easy_setopt(curl, CURLOPT_SSL_CTX_DATA, &options_.extra_ca);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds(options_.timeout));
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(options_.timeout));
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_over);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &ending);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields.get());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "sluice/" SLUICE_VERSION);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep_answer);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  // It has said that it took it; an answer that does not end changes nothing.
  if (code == CURLE_OK || (status >= 200 && status < 300)) return judge(curl, shown_, answer);
  const std::string why = problem[0] != '\0' ? problem : curl_easy_strerror(code);
  return {Delivery::Kind::later, shown_ + ": " + printable(why, 200), 0s};
}

}  // namespace sluice
