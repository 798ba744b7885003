#pragma once
// Graphs written as text in LibTorch's own language.
#include <torch/csrc/jit/ir/irparser.h>

#include <string>
#include <unordered_map>

#include "graph/jit_graph.hpp"

namespace vpp::test {

struct ParsedGraph {
    JitGraph jit;
    std::unordered_map<std::string, torch::jit::Value*> values;
};

inline ParsedGraph parse_graph(const std::string& text) {
    ParsedGraph parsed;
    parsed.jit.graph = std::make_shared<torch::jit::Graph>();
    torch::jit::parseIR(text, parsed.jit.graph.get(), parsed.values, /*parse_tensor_constants=*/true);
    list_ops(parsed.jit);
    return parsed;
}

}  // namespace vpp::test
