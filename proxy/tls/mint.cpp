#include "proxy/tls/mint.h"

#include <algorithm>
#include <utility>

#include "proxy/tls/certificate.h"
#include "proxy/tls/file_stamp.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxOrders = 4096;
constexpr Duration kLookAgain = 5s;

std::string stamp(const AuthorityFiles& files) {
  return file_stamp(files.certificate) + " " + file_stamp(files.key);
}

}  // namespace

Mint::Mint(AuthorityFiles files, Clock clock, std::size_t capacity)
    : files_(std::move(files)),
      clock_(clock),
      capacity_(capacity),
      key_(make_p256_key()),
      thread_([this] { run(); }) {}

Mint::~Mint() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

LeafRef Mint::find(std::string_view host) {
  const UtcTime now = clock_();
  const std::lock_guard lock(mutex_);
  // The disk is looked at on the mint's own thread, so one caller in a while goes there.
  return time_to_look(now) ? nullptr : look_up(host, now);
}

// A clock that went back says nothing about how long ago it was.
bool Mint::time_to_look(UtcTime now) const { return now < looked_ || now - kLookAgain >= looked_; }

LeafRef Mint::look_up(std::string_view host, UtcTime now) {
  const auto found = leaves_.find(host);
  if (found == leaves_.end()) return nullptr;
  const Leaf& leaf = *found->second.leaf;
  if (leaf.renew_at <= now || now < leaf.begins) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second.used);
  return found->second.leaf;
}

Mint::Handle Mint::want(std::string_view host, Post post, Callback callback) {
  auto shared = std::make_shared<Callback>(std::move(callback));
  Handle handle(shared);
  const std::lock_guard lock(mutex_);
  const auto same = std::find_if(orders_.begin(), orders_.end(),
                                 [&](const Order& order) { return order.host == host; });
  if (same != orders_.end()) {
    same->waiting.push_back({std::move(post), std::move(shared)});
  } else if (orders_.size() < kMaxOrders) {
    orders_.push_back({std::string(host), {}});
    orders_.back().waiting.push_back({std::move(post), std::move(shared)});
    wake_.notify_one();
  } else {
    post([shared] {
      if (const Callback run = std::exchange(*shared, nullptr)) {
        run(Error{"too many certificates are wanted at once"});
      }
    });
  }
  return handle;
}

std::size_t Mint::minted() const {
  const std::lock_guard lock(mutex_);
  return minted_;
}

void Mint::keep(const std::string& host, const LeafRef& leaf) {
  if (const auto old = leaves_.find(host); old != leaves_.end()) {
    recent_.erase(old->second.used);
    leaves_.erase(old);
  }
  if (leaves_.size() >= capacity_) {
    leaves_.erase(recent_.back());
    recent_.pop_back();
  }
  recent_.push_front(host);
  leaves_[host] = {leaf, recent_.begin()};
}

bool Mint::look_at_files() {
  std::string seen = stamp(files_);
  if (seen == stamp_) return false;
  stamp_ = std::move(seen);
  authority_.reset();
  return true;
}

Result<LeafRef> Mint::make(const std::string& host) {
  const UtcTime now = clock_();
  if (authority_ && !is_valid(authority_->certificate(), now)) authority_.reset();
  if (!authority_) {
    const bool is_there = file_stamp(files_.certificate) != "-";
    auto loaded = Authority::load_or_make(files_, now);
    if (!loaded) return Error{loaded.error()};
    authority_.emplace(std::move(*loaded));
    if (!is_there) stamp_ = stamp(files_);  // what was just made is no change
  }
  auto certificate = authority_->leaf_for(host, *key_, now);
  if (!certificate) return Error{certificate.error()};
  const UtcTime begins = not_before(**certificate), ends = not_after(**certificate);
  return std::make_shared<const Leaf>(Leaf{std::move(*certificate), key_.get(),
                                           now + (ends - now) / 2, authority_->chain(), begins});
}

void Mint::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !orders_.empty(); });
    if (stopping_) return;
    // It stays in the queue while it is made, so that others can join it.
    const std::string host = orders_.front().host;
    if (const UtcTime now = clock_(); time_to_look(now)) {
      looked_ = now;
      lock.unlock();
      const bool changed = look_at_files();
      lock.lock();
      if (changed) {
        leaves_.clear();
        recent_.clear();
      }
    }
    const LeafRef there = look_up(host, clock_());
    lock.unlock();
    const Result<LeafRef> made = there ? Result<LeafRef>(there) : make(host);
    lock.lock();
    if (!there && made) {
      ++minted_;
      keep(host, *made);
    }
    const Order done = std::move(orders_.front());
    orders_.pop_front();
    if (stopping_) return;
    lock.unlock();
    for (const Waiting& waiting : done.waiting) {
      waiting.post([callback = waiting.callback, made] {
        // The handle lives on this loop, so nothing races with it. The callback may drop it.
        if (const Callback run = std::exchange(*callback, nullptr)) run(made);
      });
    }
    lock.lock();
  }
}

}  // namespace sluice
