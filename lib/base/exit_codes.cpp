#include "base/exit_codes.hpp"

#include "base/error.hpp"

namespace vpp {

const std::vector<std::pair<int, std::string>>& exit_codes() {
    using enum ErrorKind;
    static const std::vector<std::pair<int, std::string>> kCodes = {
        {0, "done"},
        {exit_code(CommandLine), "command line"},
        {exit_code(BadData), "bad data or model file"},
        {exit_code(MissingInput), "missing input"},
        {exit_code(Mesh), "number of ranks does not fit"},
        {exit_code(Bug), "bug in vpp"},
        {exit_code(OutOfMemory), "out of memory"},
        {exit_code(Output), "output cannot be made"},
        {exit_code(Io), "I/O error or disk full"},
        {exit_code(RankLost), "a rank was lost or hangs: start it again"},
        {exit_code(RanksDisagree), "ranks disagree"},
        {exit_code(Refused), "refused by a safety rule"},
        {exit_code(Plan), "plan error"},
        {exit_code(NotFinite), "loss not finite"},
        {exit_code(VerifyDifference), "verify found a difference"},
        {exit_code(Stopped), "stopped by a signal after saving"},
        {exit_code(Interrupted), "stopped at once by a second signal"},
    };
    return kCodes;
}

}  // namespace vpp
