// A library that is loaded in front of libc (LD_PRELOAD) and makes the disk fail or the clock jump, for one rank of a
// job, without a privilege. What is to happen stands in three variables:
//
//   VPP_DISK_FAULT   "rank call path first count errno delay_ms", as in "1 fsync /checkpoints/ 2 1 5 0": on rank 1 the
//                    2nd and the 1 - 1 following calls of fsync on files whose path has "/checkpoints/" in it take 0 ms
//                    longer and then fail with errno 5 (0: they succeed). Rank -1: every rank. Calls: write fsync
//                    rename pread mkdir flock, and open for reading
//   VPP_DISK_SIZE    "path bytes": a disk of that size holds the folders whose path has "path" in it, and nothing else
//   VPP_CLOCK_JUMP   seconds that the wall clock is off on every rank from one second after the start on
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace {

/// A function of libc. Not kept in a static: its guard would hold up the handler of a signal that comes during the
/// first call and calls the same function.
template <class Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct DiskFault {
    int rank = 0, first = 0, count = 0, error = 0, delay_ms = 0;
    char call[16] = "", path[256] = "";
    bool is_set = false;
    std::atomic<int> seen{0};

    DiskFault() {
        const char* text = std::getenv("VPP_DISK_FAULT");
        const char* own = std::getenv("OMPI_COMM_WORLD_RANK");
        is_set = text && std::sscanf(text, "%d %15s %255s %d %d %d %d", &rank, call, path, &first, &count, &error,
                                     &delay_ms) == 7;
        is_set = is_set && (rank < 0 || rank == (own ? std::atoi(own) : 0));
    }

    /// Whether this call has to fail.
    bool strikes(const char* name, const char* file) {
        if (!is_set || std::strcmp(name, call) != 0 || !std::strstr(file, path)) return false;
        const int number = ++seen;
        if (number < first || number >= first + count) return false;
        if (delay_ms > 0) usleep(static_cast<useconds_t>(delay_ms) * 1000);
        errno = error;
        return error != 0;
    }
};

DiskFault disk_fault;

bool strikes(const char* name, int fd) {
    if (!disk_fault.is_set) return false;
    char link[64], file[4096];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, file, sizeof file - 1);
    file[size < 0 ? 0 : size] = '\0';
    return disk_fault.strikes(name, file);
}

/// Opening for reading; what is made is not touched.
int open_by(const char* name, const char* file, int flags, mode_t mode) {
    if ((flags & O_CREAT) == 0 && disk_fault.strikes("open", file)) return -1;
    return real<int(const char*, int, ...)>(name)(file, flags, mode);
}

/// What is free on a disk of the size that VPP_DISK_SIZE says.
int space_by(const char* name, const char* folder, void* space) {
    const int result = real<int(const char*, void*)>(name)(folder, space);
    char path[256] = "";
    unsigned long long free_bytes = 0;
    const char* text = std::getenv("VPP_DISK_SIZE");
    const bool is_meant = text && std::sscanf(text, "%255s %llu", path, &free_bytes) == 2 && std::strstr(folder, path);
    if (result != 0 || !is_meant) return result;
    // Other ranks may rename and remove meanwhile.
    std::error_code problem;
    for (std::filesystem::recursive_directory_iterator entry(folder, problem), end; entry != end;
         entry.increment(problem)) {
        const auto size = entry->is_regular_file(problem) ? entry->file_size(problem) : 0;
        if (!problem) free_bytes -= std::min<unsigned long long>(free_bytes, size);
    }
    auto* told = static_cast<struct statvfs*>(space);  // as that of 64 bits
    told->f_bavail = free_bytes / told->f_frsize;
    return result;
}

}  // namespace

extern "C" {

int open(const char* file, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return open_by("open", file, flags, mode);
}

int open64(const char* file, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return open_by("open64", file, flags, mode);
}

int mkdir(const char* folder, mode_t mode) {
    return disk_fault.strikes("mkdir", folder) ? -1 : real<int(const char*, mode_t)>("mkdir")(folder, mode);
}

int statvfs(const char* folder, struct statvfs* space) {
    return space_by("statvfs", folder, space);
}

int statvfs64(const char* folder, struct statvfs64* space) {
    return space_by("statvfs64", folder, space);
}

ssize_t write(int fd, const void* data, size_t size) {
    return strikes("write", fd) ? -1 : real<ssize_t(int, const void*, size_t)>("write")(fd, data, size);
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
    return strikes("pread", fd) ? -1 : real<ssize_t(int, void*, size_t, off_t)>("pread")(fd, data, size, offset);
}

int fsync(int fd) {
    return strikes("fsync", fd) ? -1 : real<int(int)>("fsync")(fd);
}

int flock(int fd, int operation) {
    return strikes("flock", fd) ? -1 : real<int(int, int)>("flock")(fd, operation);
}

int rename(const char* from, const char* to) {
    return disk_fault.strikes("rename", to) ? -1 : real<int(const char*, const char*)>("rename")(from, to);
}

int clock_gettime(clockid_t clock, timespec* time) {
    static const auto next = real<int(clockid_t, timespec*)>("clock_gettime");
    static const char* jump = std::getenv("VPP_CLOCK_JUMP");
    static const time_t start = [] {
        timespec now{};
        next(CLOCK_REALTIME, &now);
        return now.tv_sec;
    }();
    const int result = next(clock, time);
    if (jump && clock == CLOCK_REALTIME && time->tv_sec > start + 1) time->tv_sec += std::atol(jump);
    return result;
}

}  // extern "C"
