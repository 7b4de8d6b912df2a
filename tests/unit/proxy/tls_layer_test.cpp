#include <doctest/doctest.h>
#include <openssl/pem.h>

#include <memory>

#include "proxy/clock.h"
#include "unit/proxy/tls_support.h"

using namespace sluice;

namespace {

// Both sides of the proxy, joined: our client side answers for "origin.test", and our origin side
// calls it, trusting the CA that signed the leaf. OpenSSL judges by the machine's clock.
struct Joined {
  Joined() : Joined(utc_now()) {}
  explicit Joined(UtcTime leaf_time) : origins(scratch.files().certificate) {
    auto loaded = Authority::load_or_make(scratch.files(), utc_now());
    REQUIRE(loaded);
    authority.emplace(std::move(*loaded));
    auto certificate = authority->leaf_for(host, *key, leaf_time);
    REQUIRE(certificate);
    leaf.emplace(Leaf{std::move(*certificate), key.get(), {}});
  }

  End server(const std::string& name) { return End(clients.accept(*leaf, name, 443)); }
  End server() { return server(host); }
  End client(const std::string& name) {
    auto context = origins.context({});
    REQUIRE(context);
    contexts.push_back(*context);
    return End(sessions.connect(**context, name + ":443", name));
  }
  End client() { return client(host); }

  const std::string host = "origin.test";
  Scratch scratch;
  std::optional<Authority> authority;
  KeyPtr key = make_p256_key();
  std::optional<Leaf> leaf;
  ClientSide clients;
  OriginSide origins;
  OriginSessions sessions;
  std::vector<OriginContextRef> contexts;
};

// All that `from` has to say; the bytes stay good until the next one.
void deliver(End& from, End& to) {
  static std::string wire;
  wire = from.take();
  to.layer.feed(wire);
}

bool say(End& from, End& to, const std::string& text) {
  iovec piece{const_cast<char*>(text.data()), text.size()};
  if (!from.layer.write({&piece, 1})) return false;
  deliver(from, to);
  return read_all(to.layer) == text;
}

}  // namespace

TEST_CASE("layer: a session is made whole and byte by byte, and carries text both ways") {
  for (const std::size_t step : {std::size_t{1} << 20, std::size_t{1}, std::size_t{7}}) {
    CAPTURE(step);
    Joined joined;
    End server = joined.server();
    End client = joined.client();
    shake_hands(client, server, step);
    REQUIRE(client.layer.established());
    REQUIRE(server.layer.established());
    CHECK(SSL_version(client.layer.ssl()) == TLS1_3_VERSION);
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(client.layer.ssl(), &protocol, &size);
    CHECK(std::string(reinterpret_cast<const char*>(protocol), size) == "http/1.1");
    CHECK(say(client, server, "hello"));
    CHECK(say(server, client, std::string(1'000'000, 'x')));
  }
}

TEST_CASE("layer: small pieces share a record") {
  Joined joined;
  End server = joined.server();
  End client = joined.client();
  shake_hands(client, server);
  std::string head = "head", body = "body";
  iovec pieces[] = {{head.data(), head.size()}, {body.data(), body.size()}};
  REQUIRE(client.layer.write(pieces));
  const std::string wire = client.take();
  CHECK(wire.size() < 2 * 22 + 8);  // RFC 8446 §5.2: a record adds 22 bytes
  server.layer.feed(wire);
  CHECK(read_all(server.layer) == "headbody");
}

TEST_CASE("layer: bytes behind the handshake are not lost") {
  Joined joined;
  End server = joined.server();
  End client = joined.client();
  client.layer.handshake();
  deliver(client, server);
  server.layer.handshake();
  deliver(server, client);
  REQUIRE(client.layer.handshake() == Io::moved);
  std::string text = "early";
  iovec piece{text.data(), text.size()};
  REQUIRE(client.layer.write({&piece, 1}));
  deliver(client, server);  // its last flight and the text together
  REQUIRE(server.layer.handshake() == Io::moved);
  CHECK(server.layer.has_unread());
  CHECK(read_all(server.layer) == "early");
  CHECK_FALSE(server.layer.has_more());
}

TEST_CASE("layer: an end is told once, and is an end") {
  Joined joined;
  End server = joined.server();
  End client = joined.client();
  shake_hands(client, server);
  client.layer.close();
  deliver(client, server);
  char buffer[16];
  std::size_t count = 0;
  CHECK(server.layer.read(buffer, sizeof buffer, count) == Io::ended);
  CHECK(server.layer.read(buffer, sizeof buffer, count) == Io::ended);
  CHECK(say(server, client, "half-closed, not dead"));
  client.layer.close();
  CHECK(client.take().empty());
}

TEST_CASE("layer: sessions resume, and only where they were made") {
  Joined joined;
  for (const bool resumed : {false, true, true}) {
    End server = joined.server();
    End client = joined.client();
    shake_hands(client, server);
    REQUIRE(client.layer.established());
    CHECK((SSL_session_reused(client.layer.ssl()) == 1) == resumed);
    CHECK((SSL_session_reused(server.layer.ssl()) == 1) == resumed);
    client.layer.close();
    server.layer.close();
  }
  CHECK(joined.sessions.size() == 1);
  // The same ticket at another port: the server does not know it.
  End elsewhere(joined.clients.accept(*joined.leaf, joined.host, 8443));
  End client = joined.client();
  shake_hands(client, elsewhere);
  CHECK(client.layer.established());
  CHECK(SSL_session_reused(client.layer.ssl()) == 0);
}

TEST_CASE("layer: who does not verify is refused, with the reason") {
  SUBCASE("another name") {
    Joined joined;
    End server = joined.server("other.test");
    End client = joined.client("other.test");
    shake_hands(client, server);
    CHECK_FALSE(client.layer.established());
    CHECK(client.layer.error() == "hostname mismatch");
    CHECK(server.layer.alert() == SSL_AD_BAD_CERTIFICATE);
  }
  SUBCASE("expired") {
    Joined joined(utc_now() - kLeafLife - 1s);
    End server = joined.server();
    End client = joined.client();
    shake_hands(client, server);
    CHECK(client.layer.error() == "certificate has expired");
  }
  SUBCASE("a CA that nobody trusts") {
    Joined joined;
    OriginSide stranger("");
    const auto context = stranger.context({});
    REQUIRE(context);
    End server = joined.server();
    End client(joined.sessions.connect(**context, "x", joined.host));
    shake_hands(client, server);
    CHECK(client.layer.error() == "unable to get local issuer certificate");
    CHECK(server.layer.alert() == SSL_AD_UNKNOWN_CA);
  }
}

TEST_CASE("layer: a client that names another host than CONNECT did is turned away") {
  Joined joined;
  End server = joined.server("connect.test");
  End client = joined.client();
  shake_hands(client, server);
  CHECK_FALSE(server.layer.established());
  CHECK(client.layer.alert() == SSL_AD_UNRECOGNIZED_NAME);
  CHECK(misdirected_name(server.layer.ssl()) == joined.host);
}

TEST_CASE("layer: old versions, other protocols and renegotiation are refused") {
  Joined joined;
  End server = joined.server();
  End client = joined.client();
  SUBCASE("TLS 1.1") {
    SSL_set_min_proto_version(client.layer.ssl(), TLS1_VERSION);
    SSL_set_max_proto_version(client.layer.ssl(), TLS1_1_VERSION);
    SSL_set_security_level(client.layer.ssl(), 0);
    shake_hands(client, server);
    CHECK_FALSE(server.layer.established());
  }
  SUBCASE("only HTTP/2") {
    constexpr unsigned char h2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(client.layer.ssl(), h2, sizeof h2);
    shake_hands(client, server);
    CHECK(client.layer.alert() == SSL_AD_NO_APPLICATION_PROTOCOL);
  }
  SUBCASE("renegotiation") {
    SSL_set_max_proto_version(client.layer.ssl(), TLS1_2_VERSION);
    SSL_clear_options(client.layer.ssl(), SSL_OP_NO_RENEGOTIATION);
    shake_hands(client, server);
    REQUIRE(client.layer.established());
    REQUIRE(say(client, server, "still here"));
    SSL_renegotiate(client.layer.ssl());
    SSL_do_handshake(client.layer.ssl());
    deliver(client, server);
    CHECK(read_all(server.layer).empty());
    deliver(server, client);
    char buffer[16];
    std::size_t count = 0;
    CHECK(client.layer.read(buffer, sizeof buffer, count) == Io::failed);
  }
}

TEST_CASE("layer: what is no TLS is refused") {
  Joined joined;
  End server = joined.server();
  server.layer.feed("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(server.layer.handshake() == Io::failed);
  CHECK(server.layer.error() == "http request");
}

TEST_CASE("origin side: files that cannot be used are named, and changed ones are read again") {
  const Scratch scratch;
  OriginSide origins("");
  const auto missing = origins.context({scratch.path() + "/none.pem", "", ""});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().find("none.pem cannot be used") != std::string::npos);
  REQUIRE(Authority::load_or_make(scratch.files(), utc_now()));
  const TlsIdentity identity{scratch.write("extra.pem", content(scratch.files().certificate)), "",
                             ""};
  origins.prepare({identity});
  // From here on, asking reads no file: what it would find has gone.
  std::filesystem::remove(identity.extra_ca);
  const auto first = origins.context(identity);
  REQUIRE(first);
  scratch.write("extra.pem", content(scratch.files().certificate) + "\n");
  CHECK(*origins.context(identity) == *first);  // not looked at yet
  origins.look_again();
  const auto second = origins.context(identity);
  REQUIRE(second);
  CHECK(*second != *first);
  CHECK((*second)->name != (*first)->name);
  origins.look_again();
  CHECK(*origins.context(identity) == *second);
}

TEST_CASE("origin side: a key with a pass phrase is refused, and nobody is asked for it") {
  const Scratch scratch;
  REQUIRE(Authority::load_or_make(scratch.files(), utc_now()));
  const KeyPtr key = make_p256_key();
  const BioPtr text(BIO_new(BIO_s_mem()));
  char phrase[] = "secret";
  REQUIRE(PEM_write_bio_PKCS8PrivateKey(text.get(), key.get(), EVP_aes_128_cbc(), phrase, 6,
                                        nullptr, nullptr) == 1);
  char* bytes = nullptr;
  const auto size = static_cast<std::size_t>(BIO_get_mem_data(text.get(), &bytes));
  const std::string file = scratch.write("client.key", std::string(bytes, size));
  const auto context = OriginSide("").context({"", scratch.files().certificate, file});
  REQUIRE_FALSE(context);
  CHECK(context.error() == "client_key " + file +
                               " cannot be used: it is encrypted, and there is nobody to ask for "
                               "its pass phrase");
}

TEST_CASE("layer: a session is not made anew from within, whichever side asks") {
  for (const bool client_asks : {true, false}) {
    CAPTURE(client_asks);
    Joined joined;
    End server = joined.server();
    End client = joined.client();
    End& asking = client_asks ? client : server;
    End& asked = client_asks ? server : client;
    for (End* end : {&client, &server}) {
      SSL_set_max_proto_version(end->layer.ssl(), TLS1_2_VERSION);
    }
    SSL_clear_options(asking.layer.ssl(), SSL_OP_NO_RENEGOTIATION);  // one that is not ours
    shake_hands(client, server);
    REQUIRE(server.layer.established());
    REQUIRE(SSL_version(client.layer.ssl()) == TLS1_2_VERSION);
    REQUIRE(SSL_renegotiate(asking.layer.ssl()) == 1);
    asking.layer.handshake();
    deliver(asking, asked);
    CHECK(read_all(asked.layer) == "");
    // RFC 5246 §7.2.2: no_renegotiation, with which the asking side may go on or end.
    const std::string answer = asked.take();
    CHECK(answer.size() > 0);
    CHECK(answer[0] == 0x15);
    CHECK(SSL_num_renegotiations(asked.layer.ssl()) == 0);
    CHECK_FALSE(SSL_renegotiate_pending(asked.layer.ssl()));
  }
}

TEST_CASE("layer: a peer that renews its keys over and over is cut off, whatever else it says") {
  for (const bool speaks : {true, false}) {
    CAPTURE(speaks);
    Joined joined;
    End server = joined.server();
    End client = joined.client();
    shake_hands(client, server);
    Io last = Io::moved;
    int times = 0;
    for (; times < 1100 && last != Io::failed; ++times) {
      REQUIRE(SSL_key_update(client.layer.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1);
      client.layer.handshake();
      std::string text = speaks ? "x" : "";
      iovec piece{text.data(), text.size()};
      REQUIRE(client.layer.write({&piece, 1}));
      deliver(client, server);
      char byte;
      std::size_t count = 0;
      last = server.layer.read(&byte, 1, count);
      CHECK((last == Io::failed || count == text.size()));
    }
    CHECK(times == 1001);
    CHECK(server.layer.error() == "it sends much and says nothing");
  }
}

TEST_CASE("layer: a peer that sends tickets only is cut off, one that also speaks is not") {
  Joined joined;
  End server = joined.server();
  End client = joined.client();
  shake_hands(client, server);
  const auto send_tickets = [&](int times) {
    for (int i = 0; i < times; ++i) {
      REQUIRE(SSL_new_session_ticket(server.layer.ssl()) == 1);
      server.layer.handshake();
    }
    deliver(server, client);
    char byte;
    std::size_t count = 0;
    return client.layer.read(&byte, 1, count);
  };
  for (int round = 0; round < 20; ++round) {
    REQUIRE(send_tickets(50) == Io::blocked);
    REQUIRE(say(server, client, "and on"));
  }
  Io last = Io::blocked;
  for (int round = 0; round < 20 && last == Io::blocked; ++round) last = send_tickets(50);
  CHECK(last == Io::failed);
  CHECK(client.layer.error() == "it sends much and says nothing");
}
