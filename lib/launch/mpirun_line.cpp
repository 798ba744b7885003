#include "launch/mpirun_line.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"

namespace vpp {

namespace {

/// Slots of one entry of --host: "a" is one, "a:4" four.
std::optional<int> slots_of(std::string_view entry) {
    const size_t colon = entry.rfind(':');
    if (colon == std::string_view::npos) return 1;
    int slots = 0;
    const char* end = entry.data() + entry.size();
    const auto [stop, error] = std::from_chars(entry.data() + colon + 1, end, slots);
    if (error != std::errc() || stop != end || slots < 0 || slots > 1 << 20) return std::nullopt;
    return slots;
}

void check_slots(const LaunchRequest& request) {
    if (request.host.empty()) return;
    const std::optional<int> slots = num_slots(request.host);
    if (!slots || *slots >= request.ranks) return;
    const std::string first = request.host.substr(0, request.host.find_first_of(":,"));
    throw Error(ErrorKind::Mesh, "--host " + request.host + " has room for too few ranks (got " +
                                     std::to_string(*slots) + ", expected " + std::to_string(request.ranks) +
                                     "); a name without a number counts as one: try --host " + first + ":" +
                                     std::to_string(request.ranks));
}

}  // namespace

bool is_placed_by_mpirun(const LaunchRequest& request, const HostFacts& host) {
    return !request.host.empty() || !request.hostfile.empty() || !host.allocation.empty();
}

bool is_oversubscribed(const LaunchRequest& request, const HostFacts& host) {
    return !is_placed_by_mpirun(request, host) && request.ranks > std::min(host.cores, host.cpus);
}

std::optional<int> num_slots(const std::string& host) {
    int total = 0;
    for (size_t begin = 0; begin <= host.size();) {
        const size_t end = std::min(host.find(',', begin), host.size());
        const std::optional<int> slots = slots_of(std::string_view(host).substr(begin, end - begin));
        if (!slots) return std::nullopt;
        total += *slots;
        begin = end + 1;
    }
    return total;
}

std::vector<std::string> make_mpirun_line(const LaunchRequest& request, const HostFacts& host) {
    check(request.ranks >= 1, "a job has a rank");
    check_slots(request);
    std::vector<std::string> line{"mpirun", "-q"};
    const auto add = [&line](std::initializer_list<std::string> words) { line.insert(line.end(), words); };
    if (host.is_root) add({"--allow-run-as-root"});
    if (!request.hostfile.empty()) add({"--hostfile", request.hostfile});
    if (!request.host.empty()) add({"--host", request.host});
    if (!request.interface.empty()) {
        // The ranks' messages, and what mpirun and its daemons tell each other.
        for (const char* who : {"btl", "oob"}) {
            add({"--mca", std::string(who) + "_tcp_if_include", request.interface});
        }
    }
    if (is_oversubscribed(request, host)) {
        add({"--oversubscribe"});  // binds no rank and lets waiting ones yield
    } else if (request.threads > 1 || request.ranks <= 2 || !host.gpus.empty()) {
        // mpirun binds one or two ranks to a core each, more of them to a socket each in turn: threads need cores, so
        // does the thread that saves, and neighbours among the cards are mostly those of one socket.
        add({"--bind-to", "none"});
    }
    if (!host.can_copy_between_processes) add({"--mca", "btl_vader_single_copy_mechanism", "none"});
    add({"-x", "OMP_NUM_THREADS=" + std::to_string(request.threads)});
    if (is_placed_by_mpirun(request, host)) {
        for (const std::string& name : request.forwarded) add({"-x", name});
    }
    add({"-np", std::to_string(request.ranks)});
    line.insert(line.end(), request.command.begin(), request.command.end());
    return line;
}

}  // namespace vpp
