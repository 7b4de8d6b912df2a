#include <doctest/doctest.h>

#include "proxy/inside.h"
#include "proxy/job_name.h"

using namespace sluice;

namespace {

Head request(std::string_view method, std::string_view target, std::string_view host) {
  Head head;
  head.method = method;
  head.target = target;
  if (!host.empty()) head.fields.push_back({"Host", host, FieldName::host});
  return head;
}

}  // namespace

TEST_CASE("inside: what a request in a tunnel may ask for") {
  const Inside secure{"api.test", 8443, "api.test:8443", true};
  const Inside plain{"api.test", 8080, "api.test:8080", false};
  const Inside v6{"::1", 443, "[::1]:443", true};
  struct Row {
    const char* name;
    const Inside& inside;
    Head head;
    int status;  // 0: it may
    std::string_view path;
  };
  const Row rows[] = {
      {"a path", secure, request("GET", "/a?b", "api.test:8443"), 0, "/a?b"},
      {"in capitals, with a final dot", secure, request("GET", "/", "API.test.:8443"), 0, "/"},
      {"without the port", secure, request("GET", "/", "api.test"), 0, "/"},
      {"without Host", secure, request("GET", "/", ""), 0, "/"},
      {"a URL", secure, request("GET", "https://api.test:8443/x", "elsewhere.test"), 0, "/x"},
      {"a URL without a path", secure, request("GET", "https://api.test:8443?q", ""), 0, "?q"},
      {"the server", secure, request("OPTIONS", "*", "api.test:8443"), 0, ""},
      {"plain", plain, request("GET", "http://api.test:8080/", ""), 0, "/"},
      {"an address", v6, request("GET", "/", "[::1]"), 0, "/"},
      {"an address in another form", v6, request("GET", "/", "[0:0::1]:443"), 0, "/"},
      {"another host", secure, request("GET", "/", "other.test:8443"), 421, ""},
      {"another port", secure, request("GET", "/", "api.test:443"), 421, ""},
      {"another host's URL", secure, request("GET", "https://other.test/", "api.test:8443"), 421,
       ""},
      {"another scheme", secure, request("GET", "http://api.test:8443/", ""), 400, ""},
      {"no target", secure, request("GET", "api.test", ""), 400, ""},
      {"a fragment", secure, request("GET", "/#a", "api.test:8443"), 400, ""},
      {"a bad Host", secure, request("GET", "/", "api test"), 400, ""},
      {"a tunnel", secure, request("CONNECT", "api.test:8443", "api.test:8443"), 400, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const InsideTarget found = inside_target(row.inside, row.head);
    CHECK((found.refusal ? found.refusal->status : 0) == row.status);
    if (found.refusal) continue;
    CHECK(found.target.path == row.path);
    CHECK(found.target.host == row.inside.host);
    CHECK(found.target.port == row.inside.port);
  }
}

TEST_CASE("job names are bounded and harmless") {
  CHECK(job_name("") == "");
  CHECK(job_name("nightly-2.x_Y@z+") == "nightly-2.x_Y@z+");
  CHECK(job_name("a b/c\n\"<é") == "a_b_c_____");
  CHECK(job_name(std::string(1000, 'x')).size() == kJobNameLimit);
}
