#pragma once
// The options of `vpp checkpoint` and `vpp export`.
#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace vpp {

struct CommandLine;

struct CheckpointArguments {
    std::string where;       ///< a plan, a run folder or a checkpoint's folder
    bool verify = false;     ///< list: read every byte
    bool json = false;       ///< list, show
    bool tensors = false;    ///< show: each tensor
    bool plan = false;       ///< show: the plan's text
    int keep = 0;            ///< prune
    int64_t keep_every = 0;  ///< prune; 0: of no step
    int keep_best = 0;       ///< prune; by validation loss
    bool dry_run = false;    ///< prune: say it only
};

void add_checkpoint_commands(CLI::App& app, CommandLine& line);
void add_export_options(CLI::App& command, CommandLine& line);

}  // namespace vpp
