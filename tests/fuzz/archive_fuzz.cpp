// Model files from hostile bytes: whatever comes, a checked directory and judged code, or vpp::Error.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "graph/operator_check.hpp"

namespace {

/// A file in memory.
class MemoryFile {
  public:
    MemoryFile(const uint8_t* data, size_t size) : fd_(::memfd_create("input", MFD_CLOEXEC)) {
        if (fd_ < 0 || ::write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
    }
    ~MemoryFile() { ::close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  private:
    int fd_;
};

void open_archive(const uint8_t* data, size_t size) {
    const MemoryFile file(data, size);
    const vpp::Archive archive(file.path());
    uint64_t stored_bytes = 0;
    for (const auto& [name, record] : archive.records()) {
        if (record.stored) stored_bytes += record.size_bytes;
        const auto text = archive.program().find(name);
        if (text != archive.program().end() && text->second.size() != record.size_bytes) std::abort();
    }
    if (stored_bytes > size) std::abort();
    for (const auto& [name, record] : archive.records()) {
        try {
            archive.check_stored(name, size / 2);
        } catch (const vpp::Error& error) {
            if (error.kind() != vpp::ErrorKind::BadData) std::abort();
        }
    }
    vpp::check_operators(archive, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        open_archive(data, size);
    } catch (const vpp::Error& error) {
        if (error.kind() != vpp::ErrorKind::BadData && error.kind() != vpp::ErrorKind::Refused) std::abort();
    }
    const auto finding = vpp::find_untrusted({reinterpret_cast<const char*>(data), size});
    if (finding && (finding->line < 1 || finding->what.empty())) std::abort();
    return 0;
}
