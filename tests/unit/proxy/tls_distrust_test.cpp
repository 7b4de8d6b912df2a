#include <doctest/doctest.h>

#include "proxy/tls/distrust.h"
#include "proxy/tls/handles.h"

using namespace sluice;

TEST_CASE("distrust: what to do is said once a minute, whatever else went wrong with the host") {
  Distrust distrust;
  const Instant start{100h};
  const auto other = distrust.explain("a.test", -1, "it closed the connection", start);
  CHECK(other.text ==
        "the TLS handshake with a client for a.test failed: it closed the connection");
  CHECK_FALSE(other.unknown_ca);
  for (const int alert : {SSL_AD_UNKNOWN_CA, SSL_AD_BAD_CERTIFICATE, SSL_AD_CERTIFICATE_UNKNOWN}) {
    const auto told = Distrust().explain("a.test", alert, "", start);
    CHECK(told.unknown_ca);
    CHECK(told.text.find("sluice ca export") != std::string::npos);
    CHECK(told.text.find("intercept = false into the policy of a.test") != std::string::npos);
  }
  CHECK(distrust.explain("a.test", SSL_AD_UNKNOWN_CA, "", start + 1s).unknown_ca);
  CHECK(distrust.explain("a.test", SSL_AD_UNKNOWN_CA, "", start + 60s).text.empty());
  CHECK(distrust.explain("a.test", -1, "x", start + 59s).text.empty());
  CHECK(distrust.explain("b.test", SSL_AD_UNKNOWN_CA, "", start + 60s).unknown_ca);
  CHECK(distrust.explain("a.test", SSL_AD_UNKNOWN_CA, "", start + 61s).unknown_ca);
}
