#include "launch/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>

namespace vpp {

namespace {

struct Subnet {
    uint32_t address = 0, mask = 0;
};

/// "10.0.0.0/24"
std::optional<Subnet> read_subnet(const std::string& text) {
    constexpr int kBits = 32;
    const size_t slash = text.find('/');
    if (slash == std::string::npos) return std::nullopt;
    in_addr address{};
    if (inet_pton(AF_INET, text.substr(0, slash).c_str(), &address) != 1) return std::nullopt;
    int bits = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, bits);
    if (error != std::errc() || stop != end || bits < 0 || bits > kBits) return std::nullopt;
    const uint32_t mask = bits == 0 ? 0 : ~uint32_t{0} << (kBits - bits);
    return Subnet{ntohl(address.s_addr) & mask, mask};
}

}  // namespace

std::vector<HostAddress> look_at_addresses() {
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return {};
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(first, freeifaddrs);
    std::vector<HostAddress> found;
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
        sockaddr_in address{};
        std::memcpy(&address, one->ifa_addr, sizeof(address));
        found.push_back({one->ifa_name, ntohl(address.sin_addr.s_addr)});
    }
    return found;
}

std::vector<std::string> interfaces_in(const std::string& list, const std::vector<HostAddress>& addresses) {
    std::vector<std::string> names;
    std::istringstream entries(list);
    for (std::string entry; std::getline(entries, entry, ',');) {
        const std::optional<Subnet> subnet = read_subnet(entry);
        for (const HostAddress& one : addresses) {
            const bool is_meant = subnet ? (one.address & subnet->mask) == subnet->address : one.interface == entry;
            if (is_meant && std::ranges::find(names, one.interface) == names.end()) names.push_back(one.interface);
        }
    }
    return names;
}

}  // namespace vpp
