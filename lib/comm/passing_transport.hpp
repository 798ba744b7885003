#pragma once
// A transport over another one: it passes everything on, and who derives from it says what goes otherwise. An exchange
// is passed on whole: its messages do not come by send() and post_receive().
#include <memory>
#include <utility>
#include <vector>

#include "comm/device_memory.hpp"
#include "comm/transport.hpp"

namespace vpp {

class PassingTransport : public Transport {
  public:
    /// Owns: borrows the transport, which must outlive it.
    explicit PassingTransport(Transport& inner) : inner_(inner) {}
    // Over another one of its kind it would be a copy of that: say Transport& there.
    PassingTransport(const PassingTransport&) = delete;
    PassingTransport& operator=(const PassingTransport&) = delete;
    int rank() const override { return inner_.rank(); }
    int size() const override { return inner_.size(); }
    bool carries_device_memory() const override { return inner_.carries_device_memory(); }
    void carry(std::unique_ptr<DeviceMemory> device) override { inner_.carry(std::move(device)); }
    bool may_hold_device() const override { return inner_.may_hold_device(); }
    bool goes_through_host() const override { return inner_.goes_through_host(); }
    void set_through_host(bool is_so) override { inner_.set_through_host(is_so); }
    void time_parts(bool on) override { inner_.time_parts(on); }
    std::vector<PartSpan> take_part_spans() override { return inner_.take_part_spans(); }
    void send(int peer, const Channel& channel, Buffer message) override {
        inner_.send(peer, channel, std::move(message));
    }
    void post_receive(int peer, const Channel& channel, size_t capacity_bytes) override {
        inner_.post_receive(peer, channel, capacity_bytes);
    }
    void exchange(Exchange messages) override { inner_.exchange(std::move(messages)); }
    Buffer receive(int peer, const Channel& channel) override { return inner_.receive(peer, channel); }
    bool has_arrived(int peer, const Channel& channel) override { return inner_.has_arrived(peer, channel); }
    void finish_sends() override { inner_.finish_sends(); }
    void wait_until(const Wait& what, const std::function<bool()>& done) override { inner_.wait_until(what, done); }
    Watchdog::Phase begin_device_wait(const Wait& what) override { return inner_.begin_device_wait(what); }
    Watchdog::Phase begin_end(const std::string& text, double seconds, int code) override {
        return inner_.begin_end(text, seconds, code);
    }
    double take_wait_seconds() override { return inner_.take_wait_seconds(); }
    void set_deadline(double seconds) override { inner_.set_deadline(seconds); }
    double deadline_seconds() const override { return inner_.deadline_seconds(); }
    void set_position(const std::string& text) override { inner_.set_position(text); }

  private:
    Transport& inner_;
};

}  // namespace vpp
