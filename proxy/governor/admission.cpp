#include "proxy/governor/admission.h"

#include <algorithm>

#include "proxy/clock.h"
#include "proxy/governor/gate.h"
#include "proxy/governor/governor.h"

namespace sluice {
namespace {

// A page that blocks is there by then. What still comes is a stream, and may go on for hours.
constexpr Duration kProbeLook = 3s;

}  // namespace

Hold& Hold::operator=(Hold&& other) noexcept {
  if (this != &other) {
    reset();
    visitor_ = std::move(other.visitor_);
    job_ = std::move(other.job_);
    since_ = other.since_;
  }
  return *this;
}

void Hold::reset() {
  if (!visitor_) return;
  if (const auto job = std::exchange(job_, nullptr)) job->add_wait(monotonic_now() - since_);
  visitor_->asker = nullptr;
  visitor_->gate->leave(*visitor_);
  visitor_.reset();
}

Permit::Permit() noexcept = default;
Permit::Permit(std::unique_ptr<Body> body) noexcept : body_(std::move(body)) {}
Permit::Permit(Permit&&) noexcept = default;
Permit::~Permit() { done(); }

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this != &other) {
    done();
    body_ = std::move(other.body_);
  }
  return *this;
}

Judgement Permit::report(Outcome& outcome, bool safe, Asker* asker, Mailbox* mailbox) {
  body_->reported = true;
  body_->silence = Instant{};
  outcome.ticket = body_->ticket;
  outcome.sent = body_->pace.sent;
  return body_->governor.tell(*body_, outcome, safe, asker, mailbox);
}

void Permit::sent(bool is_sent) {
  if (body_) body_->sent = is_sent;
}

bool Permit::counts() const { return body_ && !body_->taken.empty(); }

Judgement Permit::answered(const Head& response, std::optional<std::size_t> marker, Asker& asker,
                           Mailbox& mailbox) {
  const Classifier& classifier = *body_->journey.match.classifier;
  body_->outcome.emplace(classifier.head(response.status, response.fields, utc_now()));
  if (marker && body_->outcome->kind != OutcomeKind::anti_bot) {
    body_->outcome = classifier.body(*std::move(body_->outcome), *marker);
  }
  body_->sent = true;
  if (!body_->taken.empty()) body_->governor.settle(*body_, &response);
  const OutcomeKind kind = body_->outcome->kind;
  if (kind != OutcomeKind::success && kind != OutcomeKind::neutral) {
    return report(*body_->outcome, replayable(), &asker, &mailbox);
  }
  if (body_->silence != Instant{}) {
    body_->silence = std::min(body_->silence, monotonic_now() + kProbeLook);
  }
  if (!body_->outcome->signal.exhausted()) return {.kind = kind};
  return {.kind = kind,
          .wait = body_->governor.tell_exhausted(*body_, *body_->outcome, asker, mailbox)};
}

MarkerScan Permit::scan(const Head& response) const {
  // There is nothing worse to be found.
  if (body_->outcome && body_->outcome->kind == OutcomeKind::anti_bot) return {};
  const Field* type = response.find(FieldName::content_type);
  return body_->journey.match.classifier->scan(response.status,
                                               type != nullptr ? type->value : std::string_view());
}

Judgement Permit::found(std::size_t marker, Asker& asker, Mailbox& mailbox) {
  const Outcome& head = *body_->outcome;
  Outcome outcome = body_->journey.match.classifier->body(head, marker);
  outcome.amends = body_->reported;
  if (outcome.amends && outcome.kind == head.kind && outcome.no_credit == head.no_credit) {
    return {.kind = head.kind};
  }
  body_->outcome = std::move(outcome);
  return report(*body_->outcome, false, &asker, &mailbox);
}

void Permit::scanned() {
  if (body_ && body_->outcome && !body_->reported) report(*body_->outcome, false, nullptr, nullptr);
}

bool Permit::replayable() const {
  if (!body_) return false;
  const Journey& who = body_->journey;
  const auto& methods = who.match.rules->retry.methods;
  return who.vouched_for || std::find(methods.begin(), methods.end(), who.method) != methods.end();
}

Judgement Permit::failed(OutcomeKind kind, bool nothing_sent, Asker& asker, Mailbox& mailbox) {
  if (!body_ || body_->reported) return {.kind = kind};
  Outcome outcome{.kind = kind};
  return report(outcome, nothing_sent || replayable(), &asker, &mailbox);
}

void Permit::connected() {
  sent(true);
  if (!body_ || body_->reported) return;
  Outcome outcome{.kind = OutcomeKind::success};
  report(outcome, false, nullptr, nullptr);
}

void Permit::done() {
  if (!body_) return;
  scanned();
  if (!body_->reported) {
    Outcome outcome{.kind = OutcomeKind::local};
    report(outcome, false, nullptr, nullptr);
  }
  if (!body_->taken.empty()) body_->governor.settle(*body_, nullptr);
  body_->governor.done(*body_);
  body_.reset();
}

std::optional<Duration> Permit::patience(Instant now) const {
  if (!body_ || body_->silence == Instant{}) return std::nullopt;
  return std::max(body_->silence - now, Duration(0));
}

}  // namespace sluice
