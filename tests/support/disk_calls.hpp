#pragma once
// What a test's process makes durable and when: its calls of fsync and rename. What is only written a killed process
// leaves behind too, so nothing but these calls tells what outlasts a loss of power. A test that uses them has
// disk_calls.cpp among its sources, whose functions take the place of libc's.
#include <filesystem>
#include <string>
#include <vector>

namespace vpp::test {

/// While it lives, it notes the calls for what lies in a folder, one object at a time.
class DiskCalls {
  public:
    explicit DiskCalls(const std::filesystem::path& folder);
    ~DiskCalls();
    DiskCalls(const DiskCalls&) = delete;
    DiskCalls& operator=(const DiskCalls&) = delete;

    /// Those since the last look, in order, with paths from the folder on: "fsync a/b" or "rename a to b".
    std::vector<std::string> take();
};

}  // namespace vpp::test
