#include "checkpoint/file_status.hpp"

#include <system_error>

#include "base/error.hpp"

namespace vpp {

namespace fs = std::filesystem;

fs::file_status status_of(const fs::path& path) {
    std::error_code problem;
    const fs::file_status status = fs::symlink_status(path, problem);
    if (fs::status_known(status)) return status;
    throw Error(ErrorKind::Io, "cannot look at " + path.string() + ": " + problem.message());
}

bool is_there(const fs::path& path) {
    return fs::exists(status_of(path));
}

bool is_folder(const fs::path& path) {
    return fs::is_directory(status_of(path));
}

bool is_other_than_folder(const fs::path& path) {
    const fs::file_status status = status_of(path);
    return fs::exists(status) && !fs::is_directory(status);
}

}  // namespace vpp
