#pragma once
// The manual page of a program, from its commands: roff text for man(7).
#include <string>
#include <utility>
#include <vector>

#include "help/command_page.hpp"

namespace vpp {

/// What stands around the commands.
struct ManualFacts {
    std::string version;                                           ///< "0.1.0"
    std::string description;                                       ///< a paragraph
    std::vector<std::pair<int, std::string>> exit_codes;           ///< code, meaning
    std::vector<std::pair<std::string, std::string>> environment;  ///< variable, meaning
    std::vector<std::pair<std::string, std::string>> files;        ///< path, meaning
};

/// The page in section 1. The same values give the same text: no date is in it.
std::string man_page(const CommandPage& root, const ManualFacts& facts);

}  // namespace vpp
