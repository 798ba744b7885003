// NCCL between soft cards: what vpp calls of it. A communicator is two sockets between two processes of one host, one
// for each way. As with NCCL, a send ends when the other rank receives, an operation is in progress until a thread of
// the communicator has given it to its stream, and one that fails stands still until the communicator is aborted.
#include <nccl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "soft_card/memory.hpp"
#include "soft_card/runtime.hpp"
#include "soft_card/streams.hpp"

namespace vpp::soft_card {

namespace {

class Connection {
  public:
    Connection() = default;
    ~Connection() {
        if (socket_ >= 0) ::close(socket_);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void take(int socket) { socket_ = socket; }
    bool is_open() const { return socket_ >= 0; }
    void shut() {
        if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
    }

    bool write(const void* data, size_t num_bytes) {
        return all(num_bytes, [&](size_t done) {
            return ::send(socket_, static_cast<const char*>(data) + done, num_bytes - done, MSG_NOSIGNAL);
        });
    }
    bool read(void* data, size_t num_bytes) {
        return all(num_bytes,
                   [&](size_t done) { return ::recv(socket_, static_cast<char*>(data) + done, num_bytes - done, 0); });
    }

  private:
    static bool all(size_t num_bytes, const std::function<ssize_t(size_t)>& some) {
        for (size_t done = 0; done < num_bytes;) {
            const ssize_t moved = some(done);
            if (moved <= 0) return false;
            done += static_cast<size_t>(moved);
        }
        return true;
    }

    int socket_ = -1;
};

/// What a rank has of a communicator; its threads keep it until they are done.
class Communicator : public std::enable_shared_from_this<Communicator> {
  public:
    Communicator(int rank, bool is_blocking) : rank_(rank), is_blocking_(is_blocking) {}

    ncclResult_t begin_to_connect(const ncclUniqueId& id) {
        host_.give([self = shared_from_this(), id] { self->connect(id); });
        if (is_blocking_) host_.finish();
        return state_;
    }

    ncclResult_t state() const { return state_; }

    ncclResult_t send(const void* memory, size_t num_bytes, cudaStream_t stream) {
        return begin(stream, [self = shared_from_this(), from = near(memory), num_bytes] {
            size_t expected = 0;
            if (!self->sending_.read(&expected, sizeof(expected))) return ncclRemoteError;
            if (expected != num_bytes) return ncclInvalidUsage;
            return self->sending_.write(from, num_bytes) ? ncclSuccess : ncclRemoteError;
        });
    }

    ncclResult_t receive(void* memory, size_t num_bytes, cudaStream_t stream) {
        return begin(stream, [self = shared_from_this(), to = near(memory), num_bytes] {
            std::memset(to, kGarbage, num_bytes);
            const bool came =
                self->receiving_.write(&num_bytes, sizeof(num_bytes)) && self->receiving_.read(to, num_bytes);
            return came ? ncclSuccess : ncclRemoteError;
        });
    }

    void abort() {
        is_aborted_ = true;
        is_aborted_.notify_all();
        host_.finish();  // it may be connecting
        sending_.shut();
        receiving_.shut();
    }

  private:
    ncclResult_t begin(cudaStream_t stream, std::function<ncclResult_t()> transfer) {
        if (state_ != ncclSuccess) return ncclInvalidUsage;  // the one before is not yet with its stream
        state_ = ncclInProgress;
        host_.give([self = shared_from_this(), &queue = stream_of(stream), transfer = std::move(transfer)] {
            queue.give([self, transfer] {
                const ncclResult_t result = transfer();
                if (result != ncclSuccess) self->stand_still(result);
            });
            self->progress_ends();
        });
        if (is_blocking_) host_.finish();
        return is_blocking_ ? ncclSuccess : ncclInProgress;
    }

    void progress_ends() {
        ncclResult_t expected = ncclInProgress;  // or what has failed already
        state_.compare_exchange_strong(expected, ncclSuccess);
    }

    void stand_still(ncclResult_t why) {
        if (!is_aborted_) state_ = why;
        is_aborted_.wait(false);
    }

    /// Rank 0 listens under the communicator's name.
    void connect(const ncclUniqueId& id) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path + 1, id.internal, kNameBytes);  // in no folder: it begins with a zero
        const auto* name = reinterpret_cast<const sockaddr*>(&address);
        constexpr socklen_t kAddressBytes = offsetof(sockaddr_un, sun_path) + 1 + kNameBytes;
        // The first is the way from rank 0 to rank 1.
        Connection* const ways[] = {rank_ == 0 ? &sending_ : &receiving_, rank_ == 0 ? &receiving_ : &sending_};
        if (rank_ == 0) {
            Connection listener;
            const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            listener.take(socket);
            if (::bind(socket, name, kAddressBytes) != 0 || ::listen(socket, 2) != 0) {
                state_ = ncclSystemError;
                return;
            }
            for (Connection* way : ways) {
                retry([&] { way->take(::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC)); }, *way);
            }
        } else {
            for (Connection* way : ways) {
                retry([&] { way->take(connected(name, kAddressBytes)); }, *way);
            }
        }
        progress_ends();
    }

    static int connected(const sockaddr* name, socklen_t size) {
        const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (::connect(socket, name, size) == 0) return socket;
        ::close(socket);
        return -1;
    }

    void retry(const std::function<void()>& once, const Connection& connection) {
        while (!is_aborted_) {
            once();
            if (connection.is_open()) return;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    static constexpr size_t kNameBytes = 64;

    int rank_;
    bool is_blocking_;
    std::atomic<ncclResult_t> state_ = ncclInProgress;
    std::atomic<bool> is_aborted_ = false;
    Connection sending_, receiving_;
    Stream& host_ = *new Stream;
};

}  // namespace

}  // namespace vpp::soft_card

using namespace vpp::soft_card;

struct ncclComm {
    std::shared_ptr<Communicator> communicator;
};

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    std::random_device random;
    for (char& byte : id->internal) byte = static_cast<char>('a' + random() % 26);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int num_ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
    if (num_ranks != 2 || rank < 0 || rank > 1) return ncclInvalidArgument;
    const bool is_blocking = config == nullptr || config->blocking != 0;
    *made = new ncclComm{std::make_shared<Communicator>(rank, is_blocking)};
    return (*made)->communicator->begin_to_connect(id);
}

ncclResult_t ncclCommInitRank(ncclComm_t* made, int num_ranks, ncclUniqueId id, int rank) {
    return ncclCommInitRankConfig(made, num_ranks, id, rank, nullptr);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
    *state = communicator->communicator->state();
    return ncclSuccess;
}

const char* ncclGetLastError(ncclComm_t) {
    return "";
}

ncclResult_t ncclSend(const void* memory, size_t count, ncclDataType_t type, int, ncclComm_t communicator,
                      cudaStream_t stream) {
    if (type != ncclUint8) return ncclInvalidArgument;
    return communicator->communicator->send(memory, count, stream);
}

ncclResult_t ncclRecv(void* memory, size_t count, ncclDataType_t type, int, ncclComm_t communicator,
                      cudaStream_t stream) {
    if (type != ncclUint8) return ncclInvalidArgument;
    return communicator->communicator->receive(memory, count, stream);
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
    communicator->communicator->abort();
    delete communicator;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
    return ncclCommAbort(communicator);
}

}  // extern "C"
