#pragma once
// What a user asks of an export; plain values.
#include <string>

namespace vpp {

struct ExportRequest {
    std::string checkpoint;        ///< a checkpoint's folder; empty = the newest of run.dir
    bool initial_weights = false;  ///< what a training would begin with, instead
    std::string safetensors;       ///< file; empty = none
    std::string torchscript;       ///< file, or a folder where the plan's stages have files of their own; empty = none
    std::string strip_prefix;      ///< what the names in the safetensors file leave out in front
    bool overwrite = false;        ///< files that are there already
};

}  // namespace vpp
