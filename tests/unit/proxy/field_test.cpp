#include "proxy/http/field.h"

#include <doctest/doctest.h>

#include <string>

#include "proxy/http/head.h"

using namespace sluice;

TEST_CASE("field: names are known whatever their case") {
  struct Row {
    std::string name;
    FieldName id;
  };
  const Row rows[] = {
      {"Accept", FieldName::accept},
      {"CONNECTION", FieldName::connection},
      {"content-length", FieldName::content_length},
      {"Content-Type", FieldName::content_type},
      {"Date", FieldName::date},
      {"Expect", FieldName::expect},
      {"Authorization", FieldName::authorization},
      {"WWW-Authenticate", FieldName::www_authenticate},
      {"hOST", FieldName::host},
      {"HTTP2-Settings", FieldName::http2_settings},
      {"Keep-Alive", FieldName::keep_alive},
      {"Max-Forwards", FieldName::max_forwards},
      {"Proxy-Authorization", FieldName::proxy_authorization},
      {"Proxy-Status", FieldName::proxy_status},
      {"Proxy-Connection", FieldName::proxy_any},
      {"PROXY-AUTHENTICATE", FieldName::proxy_any},
      {"proxy-x", FieldName::proxy_any},
      {"TE", FieldName::te},
      {"Trailer", FieldName::trailer},
      {"Transfer-Encoding", FieldName::transfer_encoding},
      {"Upgrade", FieldName::upgrade},
      {"Via", FieldName::via},
      {"", FieldName::other},
      {"Proxy-", FieldName::proxy_any},
      {"Proxy", FieldName::proxy_any},
      {"Proxys", FieldName::other},
      {"Hosts", FieldName::other},
      {"Content_Length", FieldName::other},
      {"Content-Lengthy", FieldName::other},
      {"X-Forwarded-For", FieldName::other},
      {"1", FieldName::other},
      {"\xe5", FieldName::other},
      {"[\\]", FieldName::other},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(field_name(row.name) == row.id);
  }
}

TEST_CASE("field: what stays on one connection, and what no trailer may say") {
  for (const char* name :
       {"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate",
        "TE", "Transfer-Encoding", "Upgrade", "HTTP2-Settings"}) {
    CAPTURE(name);
    CHECK(is_hop_by_hop(field_name(name)));
  }
  for (const char* name : {"Host", "Content-Length", "Trailer", "Via", "Date", "X", "Cookie"}) {
    CAPTURE(name);
    CHECK_FALSE(is_hop_by_hop(field_name(name)));
  }
  for (const char* name : {"Transfer-Encoding",
                           "content-length",
                           "Host",
                           "Connection",
                           "Trailer",
                           "TE",
                           "Upgrade",
                           "Via",
                           "Expect",
                           "Proxy-Authorization",
                           "Proxy-Status",
                           "Authorization",
                           "Cookie",
                           "SET-COOKIE",
                           "Cache-Control",
                           "Content-Encoding",
                           "Content-Type",
                           "Content-Range",
                           "Range",
                           "Max-Forwards",
                           "WWW-Authenticate"}) {
    CAPTURE(name);
    CHECK(is_forbidden_in_trailers(name));
  }
  for (const char* name : {"X-Checksum", "Date", "Server-Timing", "grpc-status", "Digest"}) {
    CAPTURE(name);
    CHECK_FALSE(is_forbidden_in_trailers(name));
  }
}

TEST_CASE("field: tokens, white space, lists") {
  CHECK(is_token("!#$%&'*+-.^_`|~09azAZ"));
  for (const char* text :
       {"", " ", "a b", "a:", "a,", "\"a\"", "a/b", "a\x7f", "\xc3\xbc", "a(", "[a]"}) {
    CAPTURE(text);
    CHECK_FALSE(is_token(text));
  }
  CHECK(equals_ignoring_case("Keep-ALIVE", "keep-alive"));
  CHECK_FALSE(equals_ignoring_case("a[", "a{"));  // one bit apart, as letters of two cases are
  CHECK_FALSE(equals_ignoring_case("a", "ab"));
  CHECK(trim(" \t a b\t ") == "a b");
  CHECK(trim(" \t ").empty());
  CHECK(trim("\na\r") == "\na\r");

  const auto elements = [](std::string_view list) {
    std::string out;
    for_each_element(list,
                     [&](std::string_view element) { out += "<" + std::string(element) + ">"; });
    return out;
  };
  CHECK(elements("") == "");
  CHECK(elements(" , ,,\t") == "");
  CHECK(elements("a") == "<a>");
  CHECK(elements("a, b ,,c d,") == "<a><b><c d>");
}

TEST_CASE("head: finds fields by what they are") {
  Head head;
  for (const auto& [name, value] : {std::pair{"Connection", "x, Keep-Alive"},
                                    {"Accept", "a"},
                                    {"connection", "Upgrade"},
                                    {"ACCEPT", "b"}}) {
    head.fields.push_back({name, value, field_name(name)});
  }
  CHECK(head.find(FieldName::accept)->value == "a");
  CHECK(head.find(FieldName::via) == nullptr);
  CHECK(head.lists(FieldName::connection, "upgrade"));
  CHECK(head.lists(FieldName::connection, "keep-alive"));
  CHECK_FALSE(head.lists(FieldName::connection, "close"));
  CHECK_FALSE(head.lists(FieldName::via, "x"));
}
