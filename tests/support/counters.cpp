// A library that is loaded in front of the others (LD_PRELOAD) and counts what the main thread of a process asks them
// for: blocks of memory, and messages of 1 KiB and more that it starts to send, with their bytes. Shorter ones are
// envelopes and signs of life, whose number depends on how long ranks wait. When the process ends, it writes the counts
// to the file that VPP_COUNTERS names, with the rank behind it.
#define OMPI_SKIP_MPICXX 1  // its old C++ classes would have to be linked
#include <dlfcn.h>
#include <mpi.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace {

long long allocations = 0, messages = 0, message_bytes = 0;
__attribute__((tls_model("initial-exec"))) thread_local bool is_main = false;  // any other model asks malloc for room

void count() {
    if (is_main) ++allocations;
}

struct AtExit {
    AtExit() { is_main = true; }
    ~AtExit() {
        const char* file = std::getenv("VPP_COUNTERS");
        if (!file) return;
        const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
        char path[4096];
        std::snprintf(path, sizeof path, "%s.%s", file, rank ? rank : "0");
        if (FILE* out = std::fopen(path, "w")) {
            std::fprintf(out, "{\"allocations\": %lld, \"messages\": %lld, \"message_bytes\": %lld}\n", allocations,
                         messages, message_bytes);
            std::fclose(out);
        }
    }
} at_exit;

}  // namespace

extern "C" {

// glibc's own names of what stands behind the calls below.
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void* calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void* realloc(void* block, size_t size) {
    count();
    return __libc_realloc(block, size);
}

void* memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void** block, size_t alignment, size_t size) {
    void* found = memalign(alignment, size);
    if (!found) return ENOMEM;
    *block = found;
    return 0;
}

int MPI_Isend(const void* data, int number, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    static const auto send = reinterpret_cast<decltype(&MPI_Isend)>(dlsym(RTLD_NEXT, "MPI_Isend"));
    int size = 0;
    PMPI_Type_size(type, &size);
    const long long bytes = static_cast<long long>(number) * size;
    if (is_main && bytes >= 1024) {
        ++messages;
        message_bytes += bytes;
    }
    return send(data, number, type, to, tag, comm, request);
}
}
