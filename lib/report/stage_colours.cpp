#include "report/stage_colours.hpp"

#include <array>

namespace vpp {

namespace {

struct Colour {
    const char* web;
    int ansi;  ///< of the 256-colour palette
};

constexpr std::array<Colour, 8> kColours{{
    {"#87d7ff", 117},
    {"#afd7af", 151},
    {"#ffd787", 222},
    {"#ffafaf", 217},
    {"#d7afff", 183},
    {"#87d7d7", 116},
    {"#d7af87", 180},
    {"#d0d0d0", 252},
}};

const Colour& colour_of(int stage) {
    return kColours[static_cast<size_t>(stage) % kColours.size()];
}

}  // namespace

std::string stage_colour(int stage) {
    return colour_of(stage).web;
}

std::string painted(const std::string& text, int stage) {
    return "\x1b[30;48;5;" + std::to_string(colour_of(stage).ansi) + "m" + text + "\x1b[0m";
}

}  // namespace vpp
