#pragma once
// Links between threads of one process that behave as NCCL's do on cards and keep a record. Each rank has a queue of
// operations for each of its links; a message moves when what sends it and what receives it are at the heads of their
// queues, and an operation that sends begins only when all that the rank's card waits for is there, since the card
// computes in the order of the calls; it ends when all of its messages have moved. So whatever would stand still on
// cards stands still here, where the world of threads sees it (comm/in_process.hpp).
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
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
    bool one_queue = false;             ///< all links of a rank share a queue, as if they shared a stream
    bool reads_wait_for_sends = false;  ///< reading waits for all that the card does, not for what it computes alone
    bool waits_for_memory = false;      ///< what comes is delivered when it is filled, for tests that compute with it
    int64_t damaged = -1;               ///< the message whose last float arrives with a bit turned; negative: none
    int64_t stuck_after = -1;           ///< so many messages move and no more; negative: all
    std::string failure = {};           ///< what the library says from then on instead of standing still
    std::function<void(size_t num_bytes)> on_memory = {};      ///< called where a rank takes memory for what comes
    std::function<void(int rank, bool is_abort)> on_end = {};  ///< called where an end is aborted, and where it goes
};

/// The links of all ranks.
class RecordedLinks {
  public:
    using Options = RecordedLinksOptions;
    explicit RecordedLinks(Options options = {}) : options_(std::move(options)) {}

    /// Reading waits in `waits`, if given; else what is read is there, or not yet.
    std::unique_ptr<LinkMaker> maker(int rank, Transport* waits = nullptr) {
        return std::make_unique<Maker>(*this, rank, waits);
    }

    int64_t num_links() const { return static_cast<int64_t>(links_.size()); }
    int64_t num_done() const { return num_done_; }
    int64_t num_aborted() const { return num_aborted_; }
    /// Blocks of so many bytes that were made for what comes through the host and are still held.
    int64_t num_held(size_t num_bytes) {
        const std::lock_guard lock(mutex_);
        return std::count_if(made_.begin(), made_.end(),
                             [&](const auto& made) { return made.first == num_bytes && !made.second.expired(); });
    }
    /// How often ranks have aborted some at once.
    int64_t num_at_once() const { return num_at_once_; }
    /// How many operations a sender had under way on one link at once.
    int64_t most_under_way() const { return most_under_way_; }

  private:
    struct Message {
        bool sends = false;
        size_t other = 0;  ///< place of the other rank
        MemoryPart memory;
        bool has_moved = false;
    };
    struct Operation {
        size_t link = 0;
        std::vector<Message> messages;
        std::vector<std::shared_ptr<Operation>> behind;  ///< for which the card waits before it sends
        bool done = false;
        int64_t given = 0, ended = 0;  ///< nanoseconds
    };
    using OperationPtr = std::shared_ptr<Operation>;
    using Queue = std::deque<OperationPtr>;
    /// One end, or of all ends of a rank with one_queue.
    using QueueKey = std::pair<int, size_t>;
    using Ranks = std::vector<int>;  ///< of a link, by place; -1: not yet connected

    class End final : public LinkEnd {
      public:
        End(RecordedLinks& all, int rank, size_t link) : all_(all), rank_(rank), link_(link) {}
        ~End() override { note_end(/*is_abort=*/false); }
        bool is_ready() override { return all_.is_ready(*this); }
        std::vector<MemoryPart> move(std::vector<MemoryPart> sent, const std::vector<size_t>& received) override {
            for (size_t num_bytes : received) {
                if (num_bytes > 0 && all_.options_.on_memory) all_.options_.on_memory(num_bytes);
            }
            return all_.give(*this, sent, received);
        }
        MemoryPart make_memory(size_t num_bytes) override {
            MemoryPart made = make_bytes(num_bytes);
            const std::lock_guard lock(all_.mutex_);
            all_.made_.emplace_back(num_bytes, made.data);
            return made;
        }
        bool deliver(int64_t operation) override { return all_.deliver(*this, static_cast<size_t>(operation)); }
        int64_t num_done() override { return all_.num_done_of(*this); }
        void set_timed(bool is_timed) override { all_.set_timed(*this, is_timed); }
        std::vector<std::pair<int64_t, int64_t>> take_times() override { return all_.take_times(*this); }
        void abort() noexcept override {
            all_.note_abort(*this);
            note_end(/*is_abort=*/true);
        }

      private:
        friend class RecordedLinks;
        void note_end(bool is_abort) noexcept {
            if (all_.options_.on_end) all_.options_.on_end(rank_, is_abort);
        }

        RecordedLinks& all_;
        int rank_;
        size_t link_;
        bool is_aborted_ = false;
        bool is_timed_ = false;
        std::vector<OperationPtr> given_, timed_;
    };

    class Maker final : public LinkMaker {
      public:
        Maker(RecordedLinks& all, int rank, Transport* waits) : all_(all), rank_(rank), waits_(waits) {}
        Bytes make_id() override { return all_.make_id(); }
        MemoryPart make_memory(size_t num_bytes) override {
            if (all_.options_.on_memory) all_.options_.on_memory(num_bytes);
            return make_bytes(num_bytes);
        }
        void read(const MemoryPart& memory, std::span<std::byte> bytes) override {
            if (waits_) waits_->wait_until({}, [&] { return all_.has_computed(rank_); });
            std::memcpy(bytes.data(), memory.data.get(), bytes.size());
        }
        void write(const MemoryPart& memory, std::span<const std::byte> bytes) override {
            std::memcpy(memory.data.get(), bytes.data(), bytes.size());
        }
        std::unique_ptr<LinkEnd> connect(const Bytes& id, int place, int num_ranks) override {
            return all_.connect(rank_, ByteReader(id).get<uint64_t>(), place, num_ranks);
        }
        void at_once(const std::function<void()>& aborts) noexcept override {
            ++all_.num_at_once_;
            aborts();
        }

      private:
        RecordedLinks& all_;
        int rank_;
        Transport* waits_;
    };

    static MemoryPart make_bytes(size_t num_bytes) {
        return {std::shared_ptr<std::byte>(new std::byte[std::max<size_t>(num_bytes, 1)](),
                                           std::default_delete<std::byte[]>()),
                num_bytes};
    }

    Bytes make_id() {
        const std::lock_guard lock(mutex_);
        links_.emplace_back();
        const auto number = static_cast<uint64_t>(links_.size() - 1);
        const auto bytes = vpp::bytes_of(number);
        return {bytes.begin(), bytes.end()};
    }

    std::unique_ptr<LinkEnd> connect(int rank, size_t link, int place, int num_ranks) {
        const std::lock_guard lock(mutex_);
        Ranks& ranks = links_.at(link);
        ranks.resize(static_cast<size_t>(num_ranks), -1);
        ranks.at(static_cast<size_t>(place)) = rank;
        return std::make_unique<End>(*this, rank, link);
    }

    bool is_ready(const End& end) {
        const std::lock_guard lock(mutex_);
        check_alive(end);
        const Ranks& ranks = links_[end.link_];
        return std::find(ranks.begin(), ranks.end(), -1) == ranks.end();
    }

    std::vector<MemoryPart> give(End& end, const std::vector<MemoryPart>& sent, const std::vector<size_t>& received) {
        const std::lock_guard lock(mutex_);
        check_alive(end);
        check(sent.size() == links_[end.link_].size() && sent.size() == received.size(), "a place for each rank");
        auto operation = std::make_shared<Operation>(Operation{end.link_, {}, {}, false, steady_nanoseconds(), 0});
        std::vector<MemoryPart> memory(sent.size());
        bool sends = false;
        for (size_t i = 0; i < sent.size(); ++i) {
            if (sent[i].data) operation->messages.push_back({true, i, sent[i], false});
            if (sent[i].data) sends = true;
            if (received[i] == 0) continue;
            memory[i] = make_bytes(received[i]);
            operation->messages.push_back({false, i, memory[i], false});
        }
        std::vector<OperationPtr>& awaited = awaited_[end.rank_];
        std::erase_if(awaited, [](const OperationPtr& other) { return other->done; });
        if (sends) operation->behind = awaited;
        end.given_.push_back(operation);
        if (end.is_timed_) end.timed_.push_back(operation);
        queues_[queue_key(end.rank_, end.link_)].push_back(std::move(operation));
        move();
        const auto under_way =
            std::count_if(end.given_.begin(), end.given_.end(), [](const OperationPtr& given) { return !given->done; });
        if (sends) most_under_way_ = std::max<int64_t>(most_under_way_, under_way);
        return memory;
    }

    bool deliver(End& end, size_t number) {
        const std::lock_guard lock(mutex_);
        check_alive(end);
        const OperationPtr& operation = end.given_.at(number);
        if (operation->done) return true;
        if (options_.waits_for_memory) return false;
        awaited_[end.rank_].push_back(operation);
        return true;
    }

    bool has_computed(int rank) {
        const std::lock_guard lock(mutex_);
        const auto is_done = [](const OperationPtr& operation) { return operation->done; };
        const auto queued = [&](const auto& entry) { return entry.first.first == rank && !entry.second.empty(); };
        if (options_.reads_wait_for_sends && std::any_of(queues_.begin(), queues_.end(), queued)) return false;
        return std::all_of(awaited_[rank].begin(), awaited_[rank].end(), is_done);
    }

    int64_t num_done_of(const End& end) {
        const std::lock_guard lock(mutex_);
        check_alive(end);
        int64_t num_done = 0;
        for (const OperationPtr& operation : end.given_) {
            if (!operation->done) continue;
            for (Message& message : operation->messages) message.memory.data = {};
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

    /// The operation of the link at the head of a rank's queue when it may begin, else null.
    OperationPtr head(int rank, size_t link) {
        const Queue& queue = queues_[queue_key(rank, link)];
        if (rank < 0 || queue.empty() || queue.front()->link != link) return nullptr;
        const auto& behind = queue.front()->behind;
        const bool begins = std::all_of(behind.begin(), behind.end(), [](const auto& other) { return other->done; });
        return begins ? queue.front() : nullptr;
    }

    bool move(size_t link) {
        bool moved = false;
        const Ranks& ranks = links_[link];
        for (size_t from = 0; from < ranks.size(); ++from) {
            const OperationPtr sender = head(ranks[from], link);
            if (!sender) continue;
            for (Message& message : sender->messages) {
                if (!message.sends || message.has_moved) continue;
                const OperationPtr receiver = head(ranks[message.other], link);
                if (receiver && !is_stopped()) moved |= move(message, *receiver, from);
            }
        }
        for (int rank : ranks) {
            const OperationPtr first = head(rank, link);
            if (!first || !all_moved(*first)) continue;
            first->done = moved = true;
            first->ended = steady_nanoseconds();
            queues_[queue_key(rank, link)].pop_front();
        }
        return moved;
    }

    static bool all_moved(const Operation& operation) {
        return std::all_of(operation.messages.begin(), operation.messages.end(),
                           [](const Message& message) { return message.has_moved; });
    }

    bool move(Message& sent, Operation& receiver, size_t from) {
        for (Message& received : receiver.messages) {
            if (received.sends || received.other != from || received.has_moved) continue;
            const size_t num_bytes = received.memory.num_bytes;
            check(sent.memory.num_bytes == num_bytes, "both ends of a link move as many bytes");
            std::byte* const data = received.memory.data.get();
            std::memcpy(data, sent.memory.data.get(), num_bytes);
            // Of a float an upper bit of the fraction: none that is lost in a sum, and none that makes it infinite.
            if (num_done_ == options_.damaged) data[std::max<size_t>(num_bytes, 2) - 2] ^= std::byte{0x10};
            sent.has_moved = received.has_moved = true;
            ++num_done_;
            return true;
        }
        return false;
    }

    void move() {
        for (bool moved = true; moved;) {
            moved = false;
            for (size_t link = 0; link < links_.size(); ++link) moved |= move(link);
        }
    }

    const Options options_;
    std::vector<std::pair<size_t, std::weak_ptr<std::byte>>> made_;
    std::mutex mutex_;
    std::vector<Ranks> links_;
    std::map<QueueKey, Queue> queues_;
    std::map<int, std::vector<OperationPtr>> awaited_;  ///< by rank: what its card was told to wait for
    int64_t num_done_ = 0, num_aborted_ = 0, most_under_way_ = 0;
    std::atomic<int64_t> num_at_once_ = 0;
};

}  // namespace vpp::test
