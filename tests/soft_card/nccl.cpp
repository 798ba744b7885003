// NCCL between soft cards: what vpp calls of it. A communicator is two sockets between each two of its processes, one
// for each way; all are on one host. As with NCCL, a send ends when the other rank receives, or before if it is small,
// what is in one group goes at once and ends together, a group is in progress until a thread of the communicator has
// given it to its stream, which the first of a way does when the other rank has given its own, and one that fails
// stands still until the communicator is aborted. While it is under way it holds multiprocessors of its card, at most
// as many as its communicator's configuration says, and one for which there are none left waits. A communicator has two
// streams beside that of its groups, as NCCL makes them (ncclStrongStreamConstruct), and one waits for each. An abort
// waits for what the communicator has under way, and so for what that waits for, be it of others; aborts in one group
// wait when all have been told. Two ranks on one card are refused unless NCCL_HOSTID has them on different hosts.
#include <nccl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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
    int give() { return std::exchange(socket_, -1); }
    int socket() const { return socket_; }
    bool is_open() const { return socket_ >= 0; }
    void shut() {
        if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
    }
    /// Whether a byte has come, or never will.
    bool has_news() const {
        char byte = 0;
        return ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
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

/// What kernels share of a card of this process.
class Multiprocessors {
  public:
    static Multiprocessors& of(int card) {
        static auto& cards = *new std::map<int, Multiprocessors>;
        static auto& mutex = *new std::mutex;
        const std::lock_guard lock(mutex);
        return cards[card];
    }

    void take(int count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return num_free_ >= count; });
        num_free_ -= count;
    }
    void give(int count) {
        const std::lock_guard lock(mutex_);
        num_free_ += count;
        changed_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int num_free_ = kNumMultiprocessors;
};

int card_of_thread() {
    int card = 0;
    cudaGetDevice(&card);
    return card;
}

/// From this rank to another, or back.
struct Way {
    Connection connection;
    bool is_met = false;  ///< both ranks have used it
};

struct Transfer {
    Way* way;
    std::function<ncclResult_t()> run;
};

/// What a message begins with.
struct Announced {
    size_t num_bytes = 0;
    bool waits = false;  ///< for a byte of who receives it
};

/// What a rank has of a communicator; its threads keep it until they are done.
class Communicator : public std::enable_shared_from_this<Communicator> {
  public:
    Communicator(int rank, int num_ranks, const ncclConfig_t& config)
        : rank_(rank),
          is_blocking_(config.blocking != 0),
          num_blocks_(config.maxCTAs == NCCL_CONFIG_UNDEF_INT ? kMostBlocks : config.maxCTAs),
          sending_(static_cast<size_t>(num_ranks)),
          receiving_(static_cast<size_t>(num_ranks)) {}

    ncclResult_t begin_to_connect(const ncclUniqueId& id) {
        host_.give([self = shared_from_this(), id] { self->connect(id); });
        if (is_blocking_) host_.finish();
        return state_;
    }

    ncclResult_t state() const { return state_; }

    bool has_peer(int rank) const { return rank >= 0 && rank < num_ranks() && rank != rank_; }

    Transfer send(const void* memory, size_t num_bytes, int peer) {
        Way& way = sending_.at(static_cast<size_t>(peer));
        const Announced announced{num_bytes, num_bytes > kMostEagerBytes || ++num_small_ % 2 == 0};
        return {&way, [self = shared_from_this(), &to = way.connection, from = near(memory), announced] {
                    char is_there = 0;
                    const bool went = to.write(&announced, sizeof(announced)) &&
                                      (!announced.waits || to.read(&is_there, 1)) &&
                                      to.write(from, announced.num_bytes);
                    return went ? ncclSuccess : ncclRemoteError;
                }};
    }

    Transfer receive(void* memory, size_t num_bytes, int peer) {
        Way& way = receiving_.at(static_cast<size_t>(peer));
        return {&way, [self = shared_from_this(), &from = way.connection, to = near(memory), num_bytes] {
                    std::memset(to, kGarbage, num_bytes);
                    Announced announced;
                    if (!from.read(&announced, sizeof(announced))) return ncclRemoteError;
                    if (announced.num_bytes != num_bytes) return ncclInvalidUsage;
                    const bool came = (!announced.waits || from.write("", 1)) && from.read(to, num_bytes);
                    return came ? ncclSuccess : ncclRemoteError;
                }};
    }

    /// All at once, when the stream has done what came before.
    ncclResult_t begin(cudaStream_t stream, std::vector<Transfer> group) {
        if (state_ != ncclSuccess) return ncclInvalidUsage;  // the one before is not yet with its stream
        state_ = ncclInProgress;
        stream_ = &stream_of(stream);
        host_.give([self = shared_from_this(), &queue = stream_of(stream), group = std::move(group)] {
            if (!self->meet(group)) return;
            launch(queue, [self, group] { self->run(group); });
            stream_of(self->waiting_).wait_for(queue.mark());
            if (has_failed()) self->state_ = ncclUnhandledCudaError;
            self->progress_ends();
        });
        if (is_blocking_) host_.finish();
        return is_blocking_ ? ncclSuccess : ncclInProgress;
    }

    void begin_abort() {
        is_aborted_ = true;
        is_aborted_.notify_all();
        host_.finish();  // it may be connecting
        for (Way& way : sending_) way.connection.shut();
        for (Way& way : receiving_) way.connection.shut();
    }
    /// What its stream was given comes behind what that waits for.
    void end_abort() {
        if (stream_ != nullptr) stream_->finish();
        stream_of(waiting_).finish();
        cudaStreamDestroy(waiting_);
        cudaStreamDestroy(idle_);
    }

  private:
    int num_ranks() const { return static_cast<int>(sending_.size()); }

    /// The first time that a way is used both ranks say so, and each waits for the other.
    bool meet(const std::vector<Transfer>& group) {
        std::vector<Way*> unmet;
        for (const Transfer& transfer : group) {
            if (!std::exchange(transfer.way->is_met, true)) unmet.push_back(transfer.way);
        }
        for (Way* way : unmet) way->connection.write("", 1);
        for (Way* way : unmet) {
            while (!is_aborted_ && !way->connection.has_news()) wait_a_little();
            char byte = 0;
            if (is_aborted_ || way->connection.read(&byte, 1)) continue;
            state_ = ncclRemoteError;
        }
        return !is_aborted_ && state_ == ncclInProgress;
    }

    void run(const std::vector<Transfer>& group) {
        card_.take(num_blocks_);
        std::vector<std::thread> at_once;
        for (const Transfer& transfer : group) {
            at_once.emplace_back([&] {
                if (const ncclResult_t result = transfer.run(); result != ncclSuccess) stand_still(result);
            });
        }
        for (std::thread& transfer : at_once) transfer.join();
        card_.give(num_blocks_);
    }

    void progress_ends() {
        ncclResult_t expected = ncclInProgress;  // or what has failed already
        state_.compare_exchange_strong(expected, ncclSuccess);
    }

    void stand_still(ncclResult_t why) {
        if (!is_aborted_) state_ = why;
        is_aborted_.wait(false);
    }

    /// What a rank says first on a connection that it makes.
    struct Hello {
        int rank = 0;
        bool sends = false;
    };

    /// An address under the communicator's name; in no folder: it begins with a zero.
    static sockaddr_un address_of(const ncclUniqueId& id, int64_t number) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path + 1, id.internal, kNameBytes);
        std::memcpy(address.sun_path + 1 + kNameBytes, &number, sizeof(number));
        return address;
    }

    /// Of no rank, and of no other card of what NCCL takes for this host.
    int64_t number_of_card() const {
        const char* host = std::getenv("NCCL_HOSTID");
        const size_t hash =
            std::hash<std::string>()((host ? host : "") + std::string(" ") + std::to_string(card_index_));
        return -1 - static_cast<int64_t>(hash >> 1U);
    }

    /// Whether nobody had that address before; the socket is kept.
    static bool takes_address(Connection& connection, const sockaddr_un& address) {
        const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connection.take(socket);
        return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), kAddressBytes) == 0;
    }

    /// Every rank listens, and connects to those before it.
    void connect(const ncclUniqueId& id) {
        if (!takes_address(own_card_, address_of(id, number_of_card()))) {
            state_ = ncclInvalidUsage;
            return;
        }
        Connection listening;
        const bool is_own = takes_address(listening, address_of(id, rank_));
        const int listener = listening.socket();
        if (!is_own || ::listen(listener, 2 * num_ranks()) != 0) {
            state_ = ncclSystemError;
            return;
        }
        for (int peer = 0; peer < rank_; ++peer) {
            for (const bool sends : {true, false}) {
                Connection& way = (sends ? sending_ : receiving_)[static_cast<size_t>(peer)].connection;
                retry([&] { way.take(connected(address_of(id, peer))); }, way);
                const Hello hello{rank_, sends};
                way.write(&hello, sizeof(hello));
            }
        }
        for (int left = 2 * (num_ranks() - 1 - rank_); left > 0 && !is_aborted_; --left) {
            Connection made;
            retry([&] { made.take(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)); }, made);
            Hello hello;
            if (!made.read(&hello, sizeof(hello))) continue;
            (hello.sends ? receiving_ : sending_).at(static_cast<size_t>(hello.rank)).connection.take(made.give());
        }
        progress_ends();
    }

    static int connected(const sockaddr_un& address) {
        const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), kAddressBytes) == 0) return socket;
        ::close(socket);
        return -1;
    }

    void retry(const std::function<void()>& once, const Connection& connection) {
        while (!is_aborted_) {
            once();
            if (connection.is_open()) return;
            wait_a_little();
        }
    }

    static void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

    static constexpr size_t kNameBytes = 64;
    static constexpr socklen_t kAddressBytes = offsetof(sockaddr_un, sun_path) + 1 + kNameBytes + sizeof(int64_t);

    static constexpr int kMostBlocks = 32;
    static constexpr size_t kMostEagerBytes = size_t{1} << 16U;

    int rank_;
    bool is_blocking_;
    int num_blocks_;
    int card_index_ = card_of_thread();
    Multiprocessors& card_ = Multiprocessors::of(card_index_);
    Connection own_card_;  // an address that another rank with the card does not get
    std::atomic<ncclResult_t> state_ = ncclInProgress;
    std::atomic<bool> is_aborted_ = false;
    std::vector<Way> sending_, receiving_;  // by rank
    int num_small_ = 0;
    Stream* stream_ = nullptr;                   ///< of the operations
    const cudaStream_t waiting_ = new_stream();  ///< waits for every group (NCCL's deviceStream)
    const cudaStream_t idle_ = new_stream();     ///< is there for its hostStream
    Stream& host_ = *new Stream;
};

}  // namespace

}  // namespace vpp::soft_card

using namespace vpp::soft_card;

struct ncclComm {
    std::shared_ptr<Communicator> communicator;
};

namespace {

/// What this thread has given since its group began: transfers of one communicator and one stream, or aborts.
struct Group {
    int depth = 0;
    std::vector<ncclComm_t> aborted;
    ncclComm_t communicator = nullptr;
    cudaStream_t stream = nullptr;
    std::vector<Transfer> transfers;
};
thread_local Group group;

/// Set, no connection gets memory.
bool is_card_full() {
    return std::getenv("VPP_SOFT_NCCL_FULL") != nullptr;
}

ncclResult_t add(ncclComm_t communicator, cudaStream_t stream, Transfer transfer) {
    ncclGroupStart();
    const bool is_first = group.transfers.empty();
    const bool fits = is_first || (group.communicator == communicator && group.stream == stream);
    group.communicator = communicator;
    group.stream = stream;
    group.transfers.push_back(std::move(transfer));
    const ncclResult_t result = ncclGroupEnd();
    return fits ? result : ncclInvalidUsage;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    if (is_told("VPP_SOFT_NCCL_STARTS", "0")) return ncclSystemError;
    std::random_device random;
    for (char& byte : id->internal) byte = static_cast<char>('a' + random() % 26);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int num_ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
    if (rank < 0 || rank >= num_ranks) return ncclInvalidArgument;
    const ncclConfig_t defaults = NCCL_CONFIG_INITIALIZER;
    *made = new ncclComm{std::make_shared<Communicator>(rank, num_ranks, config == nullptr ? defaults : *config)};
    return (*made)->communicator->begin_to_connect(id);
}

ncclResult_t ncclCommInitRank(ncclComm_t* made, int num_ranks, ncclUniqueId id, int rank) {
    return ncclCommInitRankConfig(made, num_ranks, id, rank, nullptr);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
    *state = is_card_full() ? ncclUnhandledCudaError : communicator->communicator->state();
    return ncclSuccess;
}

const char* ncclGetLastError(ncclComm_t) {
    return is_card_full() ? "Failed to CUDA calloc 4194304 bytes" : "";
}

ncclResult_t ncclGroupStart() {
    ++group.depth;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
    if (--group.depth > 0) return ncclSuccess;
    const Group whole = std::exchange(group, {});
    for (ncclComm_t communicator : whole.aborted) {
        communicator->communicator->end_abort();
        delete communicator;
    }
    if (whole.transfers.empty()) return ncclSuccess;
    return whole.communicator->communicator->begin(whole.stream, whole.transfers);
}

ncclResult_t ncclSend(const void* memory, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
    Communicator& own = *communicator->communicator;
    if (type != ncclUint8 || !own.has_peer(peer)) return ncclInvalidArgument;
    return add(communicator, stream, own.send(memory, count, peer));
}

ncclResult_t ncclRecv(void* memory, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
    Communicator& own = *communicator->communicator;
    if (type != ncclUint8 || !own.has_peer(peer)) return ncclInvalidArgument;
    return add(communicator, stream, own.receive(memory, count, peer));
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
    communicator->communicator->begin_abort();
    ncclGroupStart();
    group.aborted.push_back(communicator);
    return ncclGroupEnd();
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
    return ncclCommAbort(communicator);
}

}  // extern "C"
