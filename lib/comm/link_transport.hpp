#pragma once
// A transport whose messages may lie in the memory of devices: their bytes go over another transport, which says what
// comes, and their device parts over links, in the order in which the sender gives them. Links do not reorder, so a
// rank has to receive what one peer sends it in that order (schedule/message_order.hpp). What replicas exchange goes in
// one operation of their link; other messages between them have no device part.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/inquiry.hpp"
#include "comm/links.hpp"
#include "comm/passing_transport.hpp"

namespace vpp {

/// So many operations of a link may be under way of which the sender knows that the receiver has been given them.
inline constexpr int kSendsBehind = 2;

/// A sent device part goes when the device has computed it, a received one is there for what the device is given behind
/// receive(): all calls let go of the memory of what has gone. A rank can be far ahead of its device, which then holds
/// all that it has sent, so every message says how many of the other rank's this one has taken, and receive() waits for
/// the device where more than kSendsBehind of them are still under way. finish_sends() waits for all, within the
/// deadline. Through the host, parts are behind the bytes of their messages, and wait for no device but the sender's:
/// all while that is set, and always those between two ranks that have no link, for which there may be no room.
/// Then memory is held as links hold it while the device is behind its rank, so that they find as much later. When the
/// deadline passes, a peer is lost or a link fails, all links of this rank are aborted before the error leaves. A link
/// that fails is most often the first that a rank sees of a peer's own error, so it is reported late: the peer knows
/// why.
class LinkTransport final : public PassingTransport {
  public:
    /// Connects this rank's ends of `links` and sends one byte over each, since connections are made by their use.
    /// patience_seconds: from the failure of a link to the error that says so; a job that ends meanwhile says why.
    /// Requires: the same links on every rank. Owns: borrows `bytes` and `maker`, which must outlive it.
    /// Calls: collective over the ranks of the links. Throws: Error{RankLost} behind the deadline; what `maker` throws.
    LinkTransport(Transport& bytes, const std::vector<Link>& links, LinkMaker& maker, double patience_seconds = 3);
    /// Ends all links at once, watched, and drops what is under way. A rank whose peers may still be at work waits for
    /// them first (barrier).
    ~LinkTransport() override;

    bool carries_device_memory() const override { return true; }
    bool may_hold_device() const override { return true; }
    bool goes_through_host() const override { return is_through_host_; }
    void set_through_host(bool is_so) override { is_through_host_ = is_so; }
    void time_parts(bool on) override;
    std::vector<PartSpan> take_part_spans() override;
    void send(int peer, const Channel& channel, Buffer message) override;
    void post_receive(int peer, const Channel& channel, size_t capacity_bytes) override;
    void exchange(Exchange messages) override;
    Buffer receive(int peer, const Channel& channel) override;
    /// Waits for received device parts too. (A message has arrived while its device part may still be under way.)
    void finish_sends() override;

    /// For an error of who computes, which is on its way to where it is told: the links end, and where they do not, as
    /// a card has much to compute first, the job ends with that error. What a call here throws needs none.
    void give_up(const std::exception& error) noexcept;

  private:
    static constexpr int64_t kThroughHost = -1;  ///< in place of an operation's number
    struct Operation {
        Wait what;
        bool device_waits = false;
    };
    struct End {
        Link name;
        std::unique_ptr<LinkEnd> link;
        int64_t num_started = 0;
        std::deque<Operation> under_way;           ///< what was started and has not ended, in order
        std::vector<PartSpan> timed;               ///< what was started while times are kept, in order; without times
        std::deque<MemoryPart> sent_through_host;  ///< the last ones
        std::map<size_t, std::vector<MemoryPart>> spare_memory;  ///< by size, beside what came through the host
    };
    /// Of an exchange, by rank: what has been given to receive and is not yet taken.
    struct Untaken {
        End* end = nullptr;
        int64_t operation = 0;  ///< kThroughHost where there is none
        std::map<int, MemoryPart> parts;
    };
    void connect(const Link& link, int number);
    Bytes agree_on_id(const Link& link, const Channel& channel);
    End& end_of(const Link& link);
    End* find_end(const Link& link);
    std::vector<MemoryPart> start(End& end, const Wait& what, std::vector<MemoryPart> sent,
                                  const std::vector<size_t>& received_bytes);
    void deliver(End& end, int64_t operation, const Wait& what);
    void start_exchange(const Exchange& messages);
    void send_ahead(End& end, int peer, const Channel& channel, const Buffer& message, int64_t taken);
    void send_through_host(End* end, int peer, const Channel& channel, const Buffer& message, int64_t taken);
    MemoryPart make_memory(End* end, size_t num_bytes);
    void fill(MemoryPart part, Buffer& message);
    void take_linked(int peer, const Channel& channel, Buffer& message);
    void take_exchanged(int peer, const Channel& channel, Buffer& message);
    int64_t taken_from(int peer);
    void finish_taken(int peer, int64_t taken);
    void finish(End& end, int64_t number);
    void let_go(End& end);
    void watch_receives();
    void watch_absence();
    void guarded(const std::function<void()>& use);
    template <typename Use>
    void watch(const Link& link, const Use& use) const;
    void abort(const std::string& why, double seconds, int code) noexcept;

    LinkMaker& maker_;
    double patience_seconds_;
    Watchdog::Phase end_;  ///< from the aborting on, until the ends are gone
    std::map<Link, End> ends_;
    std::map<std::pair<int, int>, Untaken> exchanges_;  ///< by number and content
    Watchdog::Phase watched_;                           ///< while the device waits for something
    std::pair<const End*, int64_t> watched_operation_;
    Watchdog::Phase absence_;  ///< while this rank calls nothing here and something is under way
    bool is_through_host_ = false;
    bool is_timed_ = false;
    bool is_aborted_ = false;
};

}  // namespace vpp
