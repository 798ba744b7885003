// How long links keep what was sent.
#include <gtest/gtest.h>

#include "comm/in_process.hpp"
#include "comm/link_transport.hpp"
#include "support/recorded_links.hpp"
#include "unit/comm/linked_messages.hpp"

namespace vpp {
namespace {

using test::RecordedLinks, test::kBothWays, test::kCapacityBytes, test::linked_message, test::memory_of;

/// Rank 0 sends so many messages; rank 1 takes each and answers at once. How many rank 0 still holds behind each.
template <typename Answer>
std::vector<int64_t> held_by_sender(Transport& bytes, LinkMaker& maker, int num_messages, const Answer& answer) {
    LinkTransport transport(bytes, kBothWays, maker, /*patience_seconds=*/0);
    std::vector<std::weak_ptr<std::byte>> sent;
    std::vector<int64_t> held;
    for (int m = 0; m < num_messages; ++m) {
        const Channel there{3, m, Direction::Forward}, back{3, m, Direction::Backward};
        if (transport.rank() == 0) {
            MemoryPart part = memory_of(1);
            sent.push_back(part.data);
            transport.send(1, there, linked_message(1, std::move(part)));
            transport.post_receive(1, back, kCapacityBytes);
            transport.receive(1, back);
        } else {
            transport.post_receive(0, there, kCapacityBytes);
            transport.receive(0, there);
            transport.send(0, back, answer(m));
        }
        held.push_back(std::count_if(sent.begin(), sent.end(), [](const auto& one) { return !one.expired(); }));
    }
    transport.finish_sends();
    return held;
}

TEST(LinkMemory, WhatHasGoneIsLetGoOfWhileTheStepGoesOn) {
    RecordedLinks recorded;
    int64_t most_held = 0;
    InProcessWorld({.num_ranks = 2, .delay_probability = 0.3}).run([&](Transport& bytes) {
        const auto maker = recorded.maker(bytes.rank());
        const auto held = held_by_sender(bytes, *maker, 10, [](int) { return linked_message(1, memory_of(2)); });
        most_held = std::max(most_held, *std::max_element(held.begin(), held.end()));
    });
    EXPECT_LE(most_held, 1);
}

/// A card that gets on with what it was given only while its rank waits for it: asked a second time, and given nothing
/// in between, it has done all that can be done.
class SlowCard final : public LinkMaker {
  public:
    explicit SlowCard(std::unique_ptr<LinkMaker> inner) : inner_(std::move(inner)) {}
    Bytes make_id() override { return inner_->make_id(); }
    MemoryPart make_memory(size_t num_bytes) override { return inner_->make_memory(num_bytes); }
    void read(const MemoryPart& memory, std::span<std::byte> bytes) override { inner_->read(memory, bytes); }
    void write(const MemoryPart& memory, std::span<const std::byte> bytes) override { inner_->write(memory, bytes); }
    std::unique_ptr<LinkEnd> connect(const Bytes& id, int place, int num_ranks) override {
        return std::make_unique<End>(inner_->connect(id, place, num_ranks), num_given_);
    }

  private:
    class End final : public LinkEnd {
      public:
        End(std::unique_ptr<LinkEnd> inner, int64_t& num_given) : inner_(std::move(inner)), num_given_(num_given) {}
        bool is_ready() override { return inner_->is_ready(); }
        std::vector<MemoryPart> move(std::vector<MemoryPart> sent, const std::vector<size_t>& received) override {
            ++num_given_;
            return inner_->move(std::move(sent), received);
        }
        MemoryPart make_memory(size_t num_bytes) override { return inner_->make_memory(num_bytes); }
        bool deliver(int64_t operation) override { return inner_->deliver(operation); }
        int64_t num_done() override {
            if (std::exchange(asked_at_, num_given_) == num_given_) num_told_ = inner_->num_done();
            return num_told_;
        }
        void set_timed(bool is_timed) override { inner_->set_timed(is_timed); }
        std::vector<std::pair<int64_t, int64_t>> take_times() override { return inner_->take_times(); }
        void abort() noexcept override { inner_->abort(); }

      private:
        std::unique_ptr<LinkEnd> inner_;
        int64_t& num_given_;  ///< to the card
        int64_t asked_at_ = -1, num_told_ = 0;
    };

    std::unique_ptr<LinkMaker> inner_;
    int64_t num_given_ = 0;
};

// Rank 0 is ahead of its card from the first message on; rank 1 takes each at once and says so, with and without a
// device part.
TEST(LinkMemory, ARankDoesNotGetFarAheadOfItsCard) {
    RecordedLinks recorded;
    std::vector<int64_t> held;
    InProcessWorld({.num_ranks = 2}).run([&](Transport& bytes) {
        SlowCard maker(recorded.maker(bytes.rank()));
        const auto answer = [](int m) { return m % 2 == 0 ? linked_message(1) : linked_message(1, memory_of(2)); };
        const std::vector<int64_t> own = held_by_sender(bytes, maker, 12, answer);
        if (bytes.rank() == 0) held = own;
    });
    EXPECT_EQ(held, (std::vector<int64_t>{1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0})) << "it waits at the third";
}

}  // namespace
}  // namespace vpp
