// What each address of the admin side answers: the JSON API, the metrics, the page. Takes requests
// that guard.h let through; knows no socket. Admin thread only.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "proxy/admin/event_tail.h"
#include "proxy/admin/history.h"
#include "proxy/admin/key_query.h"
#include "proxy/admin/key_table.h"
#include "proxy/admin/metrics.h"
#include "proxy/admin/reply.h"
#include "proxy/admin/request.h"
#include "proxy/admin/source.h"

namespace sluice {

class AdminApi {
 public:
  // For an answer that waits for a disk: called once, on any thread.
  using Later = std::function<void(AdminReply)>;

  explicit AdminApi(AdminSource& source) : source_(source), table_(source), tail_(source) {}

  // None: `later` will have it. A reply with `stream` is the start of an event stream that goes on
  // with stream_text().
  std::optional<AdminReply> answer(const AdminRequest& request, Later later);

  void order_done() { table_.expire(); }  // before its answer goes out
  void each_minute();                     // call once a minute

  EventTail& tail() { return tail_; }

 private:
  AdminReply read(const AdminRequest& request);
  std::optional<AdminReply> order(const AdminRequest& request, Later later);
  AdminReply probe(bool ready_asked);
  AdminReply metrics();
  AdminReply status();
  AdminReply keys(const AdminRequest& request);
  AdminReply key(std::string_view path);
  AdminReply events(const AdminRequest& request);
  AdminReply anomalies();

  AdminSource& source_;
  KeyTable table_;
  History history_;
  Metrics metrics_;
  EventTail tail_;
};

// Where a stream begins: behind ?after= or Last-Event-ID, or with what happens next.
std::uint64_t stream_start(const AdminRequest& request, std::uint64_t last);
// In the format of server-sent events (HTML §9.2.5).
std::string stream_text(const StoredEvent& event);

}  // namespace sluice
