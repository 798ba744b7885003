// One rank of a job in which something goes wrong: comm_fault SCENARIO RANK. The ranks pass a token round as an engine
// would, with a deadline of 2 s; at round 20 the named rank does what the scenario says.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "comm/mpi_session.hpp"
#include "comm/mpi_transport.hpp"

namespace {

using namespace vpp;

/// The driver measures from here to the end of mpirun.
void mark() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::printf("MARK %lld\n",
                static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
    std::fflush(stdout);
}

void go_wrong(const std::string& scenario) {
    mark();
    if (scenario == "stop") raise(SIGSTOP);
    if (scenario == "sleep") std::this_thread::sleep_for(std::chrono::seconds(60));
    if (scenario == "deaf") kill(getppid(), SIGSTOP);  // mpirun, which this test lets go on later
    if (scenario == "throw" || scenario == "deaf") throw Error(ErrorKind::NotFinite, "loss is nan");
}

void pass_token(Transport& transport, const std::string& scenario, bool chosen) {
    const int next = (transport.rank() + 1) % transport.size();
    const int before = (transport.rank() + transport.size() - 1) % transport.size();
    constexpr size_t kBytes = 100000;
    for (int round = 0; round < 200; ++round) {
        const Channel channel{4, round, Direction::Forward};
        transport.set_position("stage " + std::to_string(transport.rank()) + ", F of microbatch " +
                               std::to_string(round));
        transport.post_receive(before, channel, kBytes);
        if (transport.rank() > 0) transport.receive(before, channel);
        if (round == 20 && chosen) {
            if (scenario == "leave") return mark();
            if (scenario == "skip") {
                mark();
                continue;
            }
            go_wrong(scenario);
        }
        const bool grows = scenario == "grow" && round == 20 && chosen;
        transport.send(next, channel, Buffer(grows ? 2 * kBytes : kBytes));
        if (transport.rank() == 0) transport.receive(before, channel);
    }
    transport.finish_sends();
}

int launch_rank() {
    const char* text = std::getenv("OMPI_COMM_WORLD_RANK");
    return text != nullptr ? std::atoi(text) : 0;
}

int run(const std::string& scenario, int chosen, Watchdog& watchdog, std::unique_ptr<MpiSession>& session) {
    const int rank = launch_rank();
    if (scenario == "start" && rank == chosen) go_wrong("stop");
    session = std::make_unique<MpiSession>(MpiSessionOptions{&watchdog, 2, 5, rank});
    MpiTransportOptions options;
    options.deadline_seconds = 2;
    options.watchdog = &watchdog;
    MpiTransport transport(*session, options);
    transport.set_position("start");
    try {
        pass_token(transport, scenario == "swallow" ? "stop" : scenario, rank == chosen);
        transport.set_position("the end of the job");
        barrier(transport);
    } catch (const Error& error) {
        if (scenario == "swallow") std::this_thread::sleep_for(std::chrono::seconds(60));
        std::fprintf(stderr, "error: %s\n", error.what());
        session->abort(exit_code(error.kind()));
        _exit(exit_code(error.kind()));
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::unique_ptr<MpiSession> session;
    const auto start = std::chrono::steady_clock::now();
    Watchdog watchdog({.on_fatal = [&session, start](const std::string& text, int code) {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        std::fprintf(stderr, "fatal: %s\n", text.c_str());
        if (!session) std::fprintf(stderr, "TURN of rank %d after %.3f s\n", launch_rank(), seconds.count());
        if (session) session->abort(code);
        _exit(code);
    }});
    const int result = run(argv[1], std::atoi(argv[2]), watchdog, session);
    session.reset();
    return result;
}
