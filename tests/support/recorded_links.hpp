#pragma once
// Links between threads of one process that behave as NCCL's do on cards and keep a record. Each rank has a queue of
// operations for each of its links; an operation ends when it is at the head of its queue at both ends, and a send only
// when what the rank had received before it is there, since its card computes in the order of the calls. So whatever
// would stand still on cards stands still here, where the world of threads sees it (comm/in_process.hpp).
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock_alignment.hpp"
#include "base/error.hpp"
#include "comm/links.hpp"

namespace vpp::test {

struct RecordedLinksOptions {
    bool one_queue = false;         ///< all links of a rank share a queue, as if they shared a stream
    bool waits_for_memory = false;  ///< a receive is ready when its memory is filled, for tests that compute with it
    int64_t damaged = -1;           ///< the message whose last float arrives with a bit turned; negative: none
    int64_t stuck_after = -1;       ///< so many operations end and no more; negative: all
    std::string failure = {};       ///< what the library says from then on instead of standing still
};

/// The links of all ranks.
class RecordedLinks {
  public:
    using Options = RecordedLinksOptions;
    explicit RecordedLinks(Options options = {}) : options_(std::move(options)) {}

    std::unique_ptr<LinkMaker> maker(int rank) { return std::make_unique<Maker>(*this, rank); }

    int64_t num_links() const { return static_cast<int64_t>(links_.size()); }
    int64_t num_done() const { return num_done_; }
    int64_t num_aborted() const { return num_aborted_; }
    /// How many messages a sender had under way on one link at once.
    int64_t most_under_way() const { return most_under_way_; }

  private:
    struct Operation {
        size_t link = 0;
        bool sends = false;
        MemoryPart memory;
        std::vector<std::shared_ptr<Operation>> behind;  ///< of a send: receives of its rank
        bool done = false;
        int64_t given = 0, ended = 0;  ///< nanoseconds
    };
    using OperationPtr = std::shared_ptr<Operation>;
    using Queue = std::deque<OperationPtr>;
    /// One end, or of all ends of a rank with one_queue.
    using QueueKey = std::pair<int, size_t>;
    struct Ends {
        int sender = -1, receiver = -1;
    };

    class End final : public LinkEnd {
      public:
        End(RecordedLinks& all, int rank, size_t link, bool sends)
            : all_(all), rank_(rank), link_(link), sends_(sends) {}
        bool is_ready() override { return all_.is_ready(*this); }
        void send(MemoryPart memory) override {
            check(sends_, "the end that receives sends nothing");
            all_.give(*this, std::move(memory));
        }
        MemoryPart receive(size_t num_bytes) override {
            check(!sends_, "the end that sends receives nothing");
            return all_.give(*this, make_bytes(num_bytes));
        }
        int64_t num_done() override { return all_.num_done_of(*this); }
        void set_timed(bool is_timed) override { all_.set_timed(*this, is_timed); }
        std::vector<std::pair<int64_t, int64_t>> take_times() override { return all_.take_times(*this); }
        void abort() noexcept override { all_.note_abort(*this); }

      private:
        friend class RecordedLinks;
        RecordedLinks& all_;
        int rank_;
        size_t link_;
        bool sends_;
        bool is_aborted_ = false;
        bool is_timed_ = false;
        std::vector<OperationPtr> given_, timed_;
    };

    class Maker final : public LinkMaker {
      public:
        Maker(RecordedLinks& all, int rank) : all_(all), rank_(rank) {}
        Bytes make_id() override { return all_.make_id(); }
        MemoryPart make_memory(size_t num_bytes) override { return make_bytes(num_bytes); }
        std::unique_ptr<LinkEnd> connect(const Bytes& id, bool sends) override {
            return all_.connect(rank_, ByteReader(id).get<uint64_t>(), sends);
        }

      private:
        RecordedLinks& all_;
        int rank_;
    };

    static MemoryPart make_bytes(size_t num_bytes) {
        return {std::shared_ptr<std::byte>(new std::byte[std::max<size_t>(num_bytes, 1)](),
                                           std::default_delete<std::byte[]>()),
                num_bytes};
    }

    Bytes make_id() {
        const std::lock_guard lock(mutex_);
        links_.emplace_back();
        const auto bytes = vpp::bytes_of(static_cast<uint64_t>(links_.size() - 1));
        return {bytes.begin(), bytes.end()};
    }

    std::unique_ptr<LinkEnd> connect(int rank, size_t link, bool sends) {
        const std::lock_guard lock(mutex_);
        (sends ? links_.at(link).sender : links_.at(link).receiver) = rank;
        return std::make_unique<End>(*this, rank, link, sends);
    }

    bool is_ready(const End& end) {
        const std::lock_guard lock(mutex_);
        check_alive(end);
        const Ends& ends = links_[end.link_];
        if (ends.sender < 0 || ends.receiver < 0) return false;
        return !options_.waits_for_memory || end.sends_ || end.given_.empty() || end.given_.back()->done;
    }

    MemoryPart give(End& end, MemoryPart memory) {
        const std::lock_guard lock(mutex_);
        check_alive(end);
        std::vector<OperationPtr>& received = received_[end.rank_];
        std::erase_if(received, [](const OperationPtr& operation) { return operation->done; });
        auto operation =
            std::make_shared<Operation>(Operation{end.link_, end.sends_, memory, {}, false, steady_nanoseconds(), 0});
        if (end.sends_) {
            operation->behind = received;
        } else {
            received.push_back(operation);
        }
        end.given_.push_back(operation);
        if (end.is_timed_) end.timed_.push_back(operation);
        queues_[queue_key(end.rank_, end.link_)].push_back(std::move(operation));
        move();
        const auto under_way =
            std::count_if(end.given_.begin(), end.given_.end(), [](const OperationPtr& given) { return !given->done; });
        if (end.sends_) most_under_way_ = std::max<int64_t>(most_under_way_, under_way);
        return memory;
    }

    int64_t num_done_of(const End& end) {
        const std::lock_guard lock(mutex_);
        check_alive(end);
        int64_t num_done = 0;
        for (const OperationPtr& operation : end.given_) {
            if (!operation->done) continue;
            operation->memory.data = {};
            ++num_done;
        }
        return num_done;
    }

    void set_timed(End& end, bool is_timed) {
        const std::lock_guard lock(mutex_);
        end.is_timed_ = is_timed;
    }

    std::vector<std::pair<int64_t, int64_t>> take_times(End& end) {
        const std::lock_guard lock(mutex_);
        std::vector<std::pair<int64_t, int64_t>> times;
        for (const OperationPtr& operation : end.timed_) {
            check(operation->done, "times are asked of what has ended");
            times.emplace_back(operation->given, operation->ended);
        }
        end.timed_.clear();
        return times;
    }

    void note_abort(End& end) noexcept {
        const std::lock_guard lock(mutex_);
        num_aborted_ += end.is_aborted_ ? 0 : 1;
        end.is_aborted_ = true;
    }

    QueueKey queue_key(int rank, size_t link) const { return {rank, options_.one_queue ? 0 : link}; }

    bool is_stopped() const { return options_.stuck_after >= 0 && num_done_ >= options_.stuck_after; }

    void check_alive(const End& end) const {
        check(!end.is_aborted_, "an aborted link is not used");
        if (is_stopped() && !options_.failure.empty()) throw LinkFailure(options_.failure);
    }

    /// The operation of the link at the head of a rank's queue; null when something else is there.
    OperationPtr head(int rank, size_t link, bool sends) {
        if (rank < 0) return nullptr;
        const Queue& queue = queues_[queue_key(rank, link)];
        if (queue.empty() || queue.front()->link != link || queue.front()->sends != sends) return nullptr;
        return queue.front();
    }

    bool move(size_t link) {
        if (is_stopped()) return false;
        const OperationPtr send = head(links_[link].sender, link, true);
        const OperationPtr receive = head(links_[link].receiver, link, false);
        if (!send || !receive) return false;
        const bool is_computed = std::all_of(send->behind.begin(), send->behind.end(),
                                             [](const OperationPtr& earlier) { return earlier->done; });
        if (!is_computed) return false;
        check(send->memory.num_bytes == receive->memory.num_bytes, "both ends of a link move as many bytes");
        std::memcpy(receive->memory.data.get(), send->memory.data.get(), send->memory.num_bytes);
        // Of a float an upper bit of the fraction: no bit that is lost in a sum, and none that makes it infinite.
        if (num_done_ == options_.damaged) receive->memory.data.get()[receive->memory.num_bytes - 2] ^= std::byte{0x10};
        send->done = receive->done = true;
        send->ended = receive->ended = steady_nanoseconds();
        ++num_done_;
        queues_[queue_key(links_[link].sender, link)].pop_front();
        queues_[queue_key(links_[link].receiver, link)].pop_front();
        return true;
    }

    void move() {
        for (bool moved = true; moved;) {
            moved = false;
            for (size_t link = 0; link < links_.size(); ++link) moved |= move(link);
        }
    }

    const Options options_;
    std::mutex mutex_;
    std::vector<Ends> links_;
    std::map<QueueKey, Queue> queues_;
    std::map<int, std::vector<OperationPtr>> received_;
    int64_t num_done_ = 0, num_aborted_ = 0, most_under_way_ = 0;
};

}  // namespace vpp::test
