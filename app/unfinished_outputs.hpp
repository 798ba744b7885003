#pragma once
// Outputs that take a while: what a signal would leave of them is removed before it ends the process.
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace vpp {

/// While it lives, SIGINT, SIGTERM and SIGHUP remove what this process has begun (base/new_file.hpp, new_folder.hpp)
/// beside and in the outputs, and then end it as they would have.
class UnfinishedOutputs {
  public:
    /// Outputs without a name are none.  Requires: no other one lives.
    explicit UnfinishedOutputs(const std::vector<std::string>& outputs);
    ~UnfinishedOutputs();
    UnfinishedOutputs(const UnfinishedOutputs&) = delete;
    UnfinishedOutputs& operator=(const UnfinishedOutputs&) = delete;

  private:
    void wait_for_signal(int fd) const;

    std::vector<std::filesystem::path> folders_;
    std::thread waiter_;
};

}  // namespace vpp
